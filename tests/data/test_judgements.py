"""Relevance judgements in every spelling, and what ir-measures makes of the same files."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.metrics.retrieval import graded_values
from tests.covering import covering, each

pl = pytest.importorskip("polars", reason="needs polars")

PAIRS = [(1, 10), (1, 20), (2, 10), (13, 7)]
GRADES = [1, 0, 2, -1]


def test_every_spelling_keeps_every_line(tmp_path: Path) -> None:
    forms = covering(("{}", "q{}", "0{}"), ("{}", "d{}", "00{}"), ("{}", "{}.0", "{:+d}", "{:02d}"))
    heads = ("", "query-id\tcorpus-id\tscore\n", "qid\tdocno\trel\n", "one\ttwo\tthree\n")
    for query, row, grade in forms:
        named = [(query.format(q), row.format(d), grade.format(g)) for (q, d), g in zip(PAIRS, GRADES, strict=True)]
        texts = {
            "trec.txt": "".join(f"{q} 0 {d} {g}\n" for q, d, g in named),
            "trec.tsv": "".join(f"{q}\tQ0\t{d}\t{g}\n" for q, d, g in named),
            **{f"{n}.tsv": head + "".join("\t".join(line) + "\n" for line in named) for n, head in enumerate(heads)},
        }
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            found = nk.data.read_judgements(tmp_path / name)
            assert found.grades.tolist() == GRADES, text
            assert [*zip(found.queries, found.rows, strict=True)] == [line[:2] for line in named], text


def test_tables_go_by_names_and_else_by_position(tmp_path: Path) -> None:
    frame = pd.DataFrame(PAIRS, columns=["query_id", "doc_id"]).assign(relevance=GRADES, iteration="0")
    for name in ("t.csv", "t.csv.gz"):
        frame.to_csv(tmp_path / name, index=name == "t.csv.gz")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.iloc[:, :3].to_excel(tmp_path / "without.xlsx", index=False, header=False)
    np.savez(tmp_path / "t.npz", **{str(name): values for name, values in frame.iloc[:, :3].items()})
    renamed = frame.iloc[:, [0, 3, 1, 2]].set_axis(["a", "b", "c", "d"], axis=1)
    for source in (frame, pl.from_pandas(frame), renamed, *sorted(tmp_path.iterdir())):
        found = nk.data.read_judgements(source)
        assert found.grades.tolist() == GRADES, source
        assert found.rows.tolist() == [str(d) for _, d in PAIRS], source


@each(
    ("text", "message"),
    [
        ("q1 0 d1 inf\nq1 0 d2 1\n", "grade inf in row 0"),
        ("q1,d1,1\nq1,d1,2\n", "two grades of 'd1' for 'q1'"),
        ("a,b,c,d,1\n", "5 columns .*TREC's four"),
        ("query-id\tcorpus-id\tscore\n", "a header and no rows"),
        ("q1 0 d1 1\nq1 0 d2 good\n", "holds 'good'"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        nk.data.read_judgements(tmp_path / "bad.txt")


def test_measures_are_those_of_ir_measures_for_the_same_file(tmp_path: Path) -> None:
    ir = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    grades = np.where(rng.random((8, 40)) < 0.4, rng.integers(-2, 4, (8, 40)), 0)
    grades[:, 0] = 1  # each query has a relevant row
    lines = [f"{q} 0 {d} {grades[q, d]}\n" for q in range(8) for d in range(40)]
    with gzip.open(tmp_path / "qrels.txt.gz", "wt") as file:
        file.writelines(lines)
    judged = nk.data.read_judgements(tmp_path / "qrels.txt.gz")
    (tmp_path / "qrels.txt").write_text("".join(lines))
    theirs = [*ir.read_trec_qrels(str(tmp_path / "qrels.txt"))]
    found = np.array([rng.permutation(40) for _ in range(8)])
    run = [ir.ScoredDoc(str(q), str(d), -n) for q, row in enumerate(found.tolist()) for n, d in enumerate(row)]
    places = judged.queries.astype(int), judged.rows.astype(int)
    ours = graded_values(found, sp.csr_matrix((judged.grades, places), (8, 40)))
    measures = {"NDCG@10": ir.nDCG @ 10, "MRR@10": ir.RR @ 10, "Recall@100": ir.R @ 100}
    for name, measure in measures.items():
        assert float(ours[name].mean()) == pytest.approx(measure.calc_aggregate(theirs, run)), name


def test_the_first_line_is_no_count_of_the_others(tmp_path: Path) -> None:
    """As of Matrix Market's files: query 5, row 7, grade 12 above twelve lines."""
    path = tmp_path / "q.txt"
    path.write_text("5 7 12\n" + "".join(f"{1 + n % 5} {1 + n % 7} 1\n" for n in range(12)))
    assert nk.data.read_judgements(path).grades.tolist() == [12] + [1] * 12
