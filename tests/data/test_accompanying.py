"""Neighbour lists, qrels, labels and ids: the same values from every format, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.data import read_column, read_features, read_judgements, read_neighbors
from nearkin.metrics.retrieval import graded_values

QRELS = pd.DataFrame({"query-id": ["q1", "q1", "q2"], "corpus-id": ["d1", "d2", "d1"], "score": [1, 0, 2]})


def test_neighbours_keep_large_whole_numbers(tmp_path: Path, subtests: pytest.Subtests) -> None:
    truth = np.array([[2**24 + 1, 3], [4, -1]])  # float32 would round the first
    np.save(tmp_path / "a.npy", truth)
    np.savez(tmp_path / "a.npz", gt=truth)
    np.hstack([np.full((2, 1), 2), truth]).astype("<i4").tofile(tmp_path / "a.ivecs")
    np.savetxt(tmp_path / "a.csv", truth, "%d", delimiter=",", header="first,second", comments="")
    pq.write_table(pa.table({"ids": truth.tolist()}), tmp_path / "a.parquet")
    hits = pd.DataFrame({"query": [0, 0, 1, 1], "id": truth.ravel()})
    hits.groupby("query", sort=False).id.apply(list).to_frame().to_parquet(tmp_path / "hits.parquet", index=False)
    for path in sorted(tmp_path.iterdir()):
        with subtests.test(path.name):
            assert read_neighbors(path).tolist() == truth.tolist()


def test_columns_of_numbers_and_of_text(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for values in (np.arange(4), np.array(["a", "b", "007", "d "])):
        np.save(tmp_path / "a.npy", values)
        np.savez(tmp_path / "a.npz", ids=values[:, None])
        pq.write_table(pa.table({"id": values}), tmp_path / "a.parquet")
        pd.DataFrame({"label": values}).to_csv(tmp_path / "a.csv", index=False)
        (tmp_path / "a.txt").write_text("\n".join(map(str, values)))
        for path in sorted(tmp_path.iterdir()):
            with subtests.test(path.name):
                assert read_column(path, 4).tolist() == values.tolist()
                with pytest.raises(ValueError, match="4 values, and 5 are needed"):
                    read_column(path, 5)


def test_labels_of_several_classes(tmp_path: Path, subtests: pytest.Subtests) -> None:
    rows = pd.DataFrame({"name": ["x", "y", "z"], "a": [0, 1, 1], "b": [1, 1, 0]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", rows[["a", "b"]].to_numpy())
    for name in ("t.csv:a,b", "t.npy"):
        with subtests.test(name):
            assert read_column(tmp_path / name, 3, several=True).tolist() == rows[["a", "b"]].to_numpy().tolist()
    with pytest.raises(ValueError, match="several columns"):
        read_column(tmp_path / "t.csv", 3, several=True)


def test_qrels_of_every_program_are_the_same(tmp_path: Path, subtests: pytest.Subtests) -> None:
    lines = QRELS.to_numpy().tolist()
    for grade in ("{}", "{}.0"):
        (tmp_path / "a.txt").write_text("".join(f"{q} 0 {d} {grade.format(g)}\n" for q, d, g in lines))
        (tmp_path / "b.qrels").write_text("".join(f"{q}\tQ0\t{d}\t{grade.format(g)}\n\n" for q, d, g in lines))
        QRELS.to_csv(tmp_path / "c.tsv", index=False, sep="\t")
        QRELS.set_axis(["Query_ID", "doc", "relevance"], axis=1).to_parquet(tmp_path / "d.parquet")
        for source in (QRELS, *sorted(tmp_path.iterdir())):
            with subtests.test(getattr(source, "name", "frame")):
                judged = read_judgements(source)
                assert [*zip(judged.queries, judged.rows, judged.grades, strict=True)] == [tuple(row) for row in lines]


def test_measures_are_those_of_ir_measures_for_the_same_file(tmp_path: Path) -> None:
    ir = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    grades = np.where(rng.random((8, 40)) < 0.4, rng.integers(-2, 4, (8, 40)), 0)
    grades[:, 0] = 1  # each query has a relevant row
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {grades[q, d]}\n" for q in range(8) for d in range(40)))
    judged = read_judgements(tmp_path / "qrels.txt")
    theirs = [*ir.read_trec_qrels(str(tmp_path / "qrels.txt"))]
    found = np.array([rng.permutation(40) for _ in range(8)])
    run = [ir.ScoredDoc(str(q), str(d), -n) for q, row in enumerate(found.tolist()) for n, d in enumerate(row)]
    places = judged.queries.astype(int), judged.rows.astype(int)
    ours = graded_values(found, sp.csr_matrix((judged.grades, places), (8, 40)))
    measures = {"NDCG@10": ir.nDCG @ 10, "MRR@10": ir.RR @ 10, "Recall@100": ir.R @ 100}
    for name, measure in measures.items():
        assert float(ours[name].mean()) == pytest.approx(measure.calc_aggregate(theirs, run)), name


def test_features_go_by_the_column_of_ids(tmp_path: Path, subtests: pytest.Subtests) -> None:
    items = pd.DataFrame({"year": [1990, 2010, None], "item": ["a", "b", "c"], "genre": ["Drama|War", "", "War"]})
    items.to_csv(tmp_path / "a.csv", index=False)
    items.to_parquet(tmp_path / "a.parquet")
    for source in (items, tmp_path / "a.csv", tmp_path / "a.parquet"):
        with subtests.test(str(source)[-9:]):
            ids, features, names = read_features(source)
            assert ids.tolist() == ["a", "b", "c"]
            assert names == ["year", "genre=Drama", "genre=War"]
            np.testing.assert_allclose(sp.csr_matrix(features).toarray()[:, 1:], [[1, 1], [0, 0], [0, 1]])
            np.testing.assert_allclose(sp.csr_matrix(features).toarray()[:, 0], np.array([-1, 1, 0]) * 1.5**0.5)


def test_features_of_a_frame_go_by_its_index_of_ids(rng: np.random.Generator) -> None:
    pairs = nk.Interactions.from_pairs([0, 1, 2], [30, 10, 20])
    price = pd.DataFrame({"price": [10.0, 20.0, 30.0, 40.0]}, index=[10, 20, 30, 40])
    for frame in (price, price.sample(frac=1, random_state=1)):
        features = pairs.with_features(right=frame).right_features
        assert features is not None
        assert features[:, 0].tolist() == pairs.right_ids.tolist()
    with pytest.raises(ValueError, match="lacks 1 id, the first is 10"):
        pairs.with_features(right=price.drop(index=10))


def test_what_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    refused: list[tuple[Any, str, Any, str]] = [
        (read_neighbors, "flat.npy", np.arange(3), r"has shape \(3,\); neighbours must be"),
        (read_neighbors, "half.npy", np.array([[0.5]]), "must hold whole numbers"),
        (read_neighbors, "above.npy", np.array([[2**63 + 1]], np.uint64), r"above 2\^63"),  # became a negative number
        (read_neighbors, "hits.csv", "query,rank,id\n0,1,5\n", "groupby.*to_parquet"),
        (read_column, "wide.npy", np.ones((3, 2)), r"has shape \(3, 2\); it must be \(n,\)"),
        (read_column, "two.csv", "a,b\n1,2\n", "several columns .*two.csv:a"),
        (read_column, "gap.csv:a", "a,b\n1,2\n,3\n", "missing values in 1 cell: '' in line 3"),
        (read_judgements, "q.txt", "q1 0 d1\n", "line 1: 3 cells; TREC's qrels have four"),
        (read_judgements, "blank.qrels", "\n", "usual name of left"),
        (read_judgements, "inf.txt", "q1 0 d1 inf\n", "'inf' in row 0"),
        (read_judgements, "twice.txt", "q1 0 d1 1\nq1 0 d1 2\n", "two grades of 'd1' for 'q1'"),
        (read_judgements, "named.csv", "one,two,three\nq,d,1\n", "usual name of left .* and of grade .*; rename"),
        (read_features, "two.csv", "a,b\n1,2\n", "id_column=..., of a, b"),
        (read_features, "again.csv", "item,year\na,1\na,2\n", "repeats ids"),
        (read_features, "huge.csv", "item,year\na,inf\nb,2\n", "infinite number"),
        (read_features, "alone.csv", "item\na\nb\n", "no column but 'item'"),
    ]
    for read, name, content, why in refused:
        path = tmp_path / name.partition(":")[0]
        path.write_text(content) if isinstance(content, str) else np.save(path, content)
        with subtests.test(name), pytest.raises(ValueError, match=why):
            read(tmp_path / name)
