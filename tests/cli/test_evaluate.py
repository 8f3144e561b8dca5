"""`nearkin evaluate` against the measures computed by hand, and `nearkin report` of what it found."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import nearkin as nk
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.jobs.evaluate import evaluate_folder, exact_neighbors, rows_as_queries
from nearkin.jobs.outputs import write_vectors
from tests.cli.conftest import load, refused, run, run_json
from tests.covering import each


@each("metric", ["l2", "ip", "cosine"])
def test_truth_from_the_base_vectors_in_the_metric_of_the_index(
    files: Path, compressed: Callable[..., Path], metric: str
) -> None:
    """Enough bytes and rescoring find everything: so truth and answers follow the same metric, under ids too."""
    folder = compressed("--metric", metric, "--keep-vectors", "--ids", files / "ids.txt")
    data = f"{files}/data.npz"
    record = run_json("evaluate", folder, f"{data}:query", "--base", f"{data}:base", "--oversample", 60, "-k", 10)
    assert record["10-recall@10"] == 1


@each("options", [(), ("--ids", "ids.txt")])
def test_map_by_label_agrees_with_scikit_learn(
    files: Path, compressed: Callable[..., Path], options: tuple[str, ...], tmp_path: Path
) -> None:
    folder = compressed("--centroids", 256, *(files / o if o == "ids.txt" else o for o in options))  # no equal scores
    labels, query_labels = np.load(files / "labels.npy"), np.load(files / "query_labels.npy")
    args = ["--labels", files / "labels.npy", "--query-labels", files / "query_labels.npy"]
    record = run_json("evaluate", folder, f"{files}/data.npz:query", *args)
    index = nk.Index.load(folder)
    index.ids = None
    _, ranking = index.search(load(files)["query"], 600)
    scores = np.empty(ranking.shape)
    np.put_along_axis(scores, ranking, -np.arange(600.0)[None], axis=1)
    expected = np.mean([average_precision_score(labels == q, s) for q, s in zip(query_labels, scores, strict=True)])
    assert record["mAP"] == pytest.approx(expected)
    assert record["precision@1"] == np.mean(labels[ranking[:, 0]] == query_labels)
    rows = [tmp_path / "labels.npy", tmp_path / "query_labels.npy"]
    for path, classes in zip(rows, (labels, query_labels), strict=True):
        np.save(path, np.eye(labels.max() + 1, dtype=int)[classes])  # a column for each label
    again = run_json("evaluate", folder, f"{files}/data.npz:query", "--labels", rows[0], "--query-labels", rows[1])
    assert (again["mAP"], again["precision@1"]) == (record["mAP"], record["precision@1"])
    (tmp_path / "both.csv").write_text("\n".join(["name,label", *(f"r{i},{c}" for i, c in enumerate(labels))]))
    (tmp_path / "asked.txt").write_text("".join(f"{c}\n" for c in query_labels))
    given = f"{tmp_path}/both.csv:id=label", tmp_path / "asked.txt"
    again = run_json("evaluate", folder, f"{files}/data.npz:query", "--labels", given[0], "--query-labels", given[1])
    assert (again["mAP"], again["precision@1"]) == (record["mAP"], record["precision@1"])
    np.save(rows[0], np.full((600, 2), 7))
    result = run("evaluate", folder, f"{files}/data.npz:query", "--labels", rows[0], "--query-labels", rows[1])
    assert "labels.npy has columns with other values than 0 and 1" in result.stderr


def test_labels_next_to_ids_are_matched_by_them(files: Path, compressed: Callable[..., Path], tmp_path: Path) -> None:
    """Rows of a table of labels were taken in its own order."""
    ids, labels = (files / "ids.txt").read_text().split(), np.load(files / "labels.npy")
    rows = [f"{name},{label}\n" for name, label in zip(ids, labels, strict=True)]
    folder, query = compressed("--ids", files / "ids.txt"), f"{files}/data.npz:query"
    found = []
    for order in (rows, rows[::-1]):
        (tmp_path / "labels.csv").write_text("id,kind\n" + "".join(order))
        given = "--labels", f"{tmp_path}/labels.csv:kind", "--query-labels", files / "query_labels.npy"
        found.append(run_json("evaluate", folder, query, *given)["mAP"])
    assert found[0] == found[1]


def test_a_report_of_an_index_saved_from_python(tmp_path: Path, rng: np.random.Generator) -> None:
    nk.Index.build(rng.normal(size=(10, 4))).save(tmp_path / "idx")
    run_json("report", tmp_path / "idx")
    page = (tmp_path / "idx/report.html").read_text()
    assert "Saved from Python" in page
    assert "Not evaluated yet" in page


@each("source", ["base", "truth"])
def test_all_recalls_are_of_the_one_search_that_is_printed(
    files: Path, compressed: Callable[..., Path], source: str
) -> None:
    """With --oversample the 1-recall@1 was of a search for one, and the 10-recall@10 of a search for ten."""
    folder = compressed("--keep-vectors", "--bytes", 2, "--centroids", 16)
    data, asked = f"{files}/data.npz", ("-k", 10, "--oversample", 2)
    record = run_json("evaluate", folder, f"{data}:query", f"--{source}", f"{data}:{source}", *asked)
    hits = run_json("search", folder, f"{data}:query", *asked)["hits"]
    truth = load(files)["truth"][:, :10].tolist()
    found = np.mean([len({*row} & {*hit["ids"]}) / 10 for row, hit in zip(truth, hits, strict=True)])
    assert record["10-recall@10"] == pytest.approx(found, abs=0.05), "some codes of eight bits are equal"
    first = np.mean([row[0] == hit["ids"][0] for row, hit in zip(truth, hits, strict=True)])
    assert record["1-recall@1"] == pytest.approx(first, abs=0.15)
    alone, rescored = record["searches"]
    assert (alone["search"], alone["bytes_kept"], rescored["bytes_kept"]) == ("without rescoring", 0, 600 * 8 * 4)
    write_vectors(turned := files / "turned.parquet", [load(files)["base"][::-1]], (600, 8), np.arange(600)[::-1])
    more = run_json("evaluate", folder, f"{data}:query", "--base", turned, "--oversample", 2, "-k", 100)
    assert "10-recall@10" not in more, "the first ten of a hundred are better than a search for ten"
    assert run("report", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    assert f"{more['100-recall@100']:.4g}" in page
    assert "<svg" in page


def test_rows_of_the_base_are_asked_without_queries(files: Path, compressed: Callable[..., Path]) -> None:
    """No row counts as its own neighbour, and `compress` printed the same share."""
    for options in ((), ("--ids", files / "ids.txt"), ("--method", "oge", "--bytes", 1)):
        folder = compressed(*options)
        record = run_json("evaluate", folder, "--base", f"{files}/data.npz:base", "-k", 10)
        X = load(files)["base"].astype(np.float64)
        index = nk.Index.load(folder)
        names = np.arange(600) if index.ids is None else index.ids
        asked = rows_as_queries(nk.data.open_vectors(f"{files}/data.npz:base"), {})[0]
        distances = ((X[asked, None] - X) ** 2).sum(-1)
        distances[np.arange(len(asked)), asked] = np.inf
        exact = np.argsort(distances, axis=1)[:, :10]
        _, found = index.search(X[asked].astype(np.float32), 11)
        shares = [
            len(set(names[e]) & set([i for i in f if i != names[row]][:10])) / 10
            for row, e, f in zip(asked, exact, found, strict=True)
        ]
        assert record["queries"] == len(asked) == 200
        assert record["10-recall@10"] == pytest.approx(np.mean(shares), abs=0.02), "one of the orders of equal codes"
        kept = json.loads((folder / "run.json").read_text())
        assert kept["10-recall@10"] == record["10-recall@10"]
    refused("queries are missing; give QUERIES, or --base FILE alone", "evaluate", compressed())


def test_the_curve_of_n_probe(files: Path, compressed: Callable[..., Path]) -> None:
    folder, data = compressed("--bytes", 4, "--centroids", 16, "--lists", 16), f"{files}/data.npz"
    args = ("evaluate", folder, f"{data}:query", "--truth", f"{data}:truth", "-k", 10)
    curve = run_json(*args, "--n-probe", "16,1,4")["probing"]
    assert [point["n_probe"] for point in curve] == [1, 4, 16]
    one = run_json(*args, "--n-probe", "1")
    assert one["n_probe"] == 1
    assert curve[0]["10-recall@10"] == pytest.approx(one["10-recall@10"])
    run_json(*args, "--n-probe", "1,4")
    run_json("report", folder)
    assert "probing" in (folder / "report.html").read_text()
    refused("--probe is 'few'", *args, "--n-probe", "few")


def test_several_indexes_in_one_report(files: Path, compressed: Callable[..., Path], tmp_path: Path) -> None:
    small, large = (compressed("--bytes", size, "--centroids", 16, "--metric", "l2") for size in (1, 4))
    refused("has not been evaluated; run nearkin evaluate", "report", small, large, "--out", tmp_path / "both.html")
    for folder in (small, large):
        run_json("evaluate", folder, f"{files}/data.npz:query", "--truth", f"{files}/data.npz:truth", "-k", 10)
    run_json("report", small, large, "--out", tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text()
    assert small.name in page
    assert large.name in page
    np.save(tmp_path / "others.npy", load(files)["query"][::-1])  # as many
    run_json("evaluate", small, tmp_path / "others.npy", "--base", f"{files}/data.npz:base", "-k", 10)
    run_json("report", small, large, "--out", tmp_path / "both.html", "--overwrite")
    page = (tmp_path / "both.html").read_text()
    assert "evaluated with other queries, vectors, k or metric: their recalls do not compare" in page
    assert run("report", small, large).exit_code == 2


def test_an_index_that_changed_while_it_was_judged_keeps_no_evaluation(tmp_path, monkeypatch) -> None:
    """The figures of the old rows would have stood beside the new ones."""
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    nk.Index.build(X).save(tmp_path / "idx")

    def judged_while_changed(*args, **options):
        nk.Index.build(X[:20]).save(tmp_path / "idx", overwrite=True)
        return search(*args, **options)

    search = nk.Index.search
    monkeypatch.setattr(nk.Index, "search", judged_while_changed)
    with pytest.raises(ValueError, match="was changed while it was evaluated"):
        evaluate_folder(tmp_path / "idx", X[:3])
    assert not (tmp_path / "idx" / "evaluation.json").exists()


def test_without_truth_it_says_what_recall_needs(files: Path, compressed: Callable[..., Path]) -> None:
    """Sizes alone came, and not a word about the recall."""
    folder, queries = compressed(), f"{files}/data.npz:query"
    assert "for the recall type --base VECTORS" in run("evaluate", folder, queries).stdout
    assert "for the recall" not in run("evaluate", folder, queries, "--base", f"{files}/data.npz:base").stdout


def test_the_base_of_a_table_in_memory_is_not_changed() -> None:
    """Truth by cosine divided the rows of the caller's own table by their lengths."""
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    before = X.copy()
    exact_neighbors(VectorFile("X", array_rows(X)), X[:3], 2, "cosine")
    assert np.array_equal(X, before)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows r0, r1, ... and queries q0, q1, ... beside two of them, which people graded 2 and 1: `qrels.tsv`."""
    folder, rng = tmp_path_factory.mktemp("judged"), np.random.default_rng(0)
    X = rng.standard_normal((300, 8)).astype(np.float32)
    np.save(folder / "X.npy", X)
    np.save(folder / "Q.npy", X[:40] + 0.1 * rng.standard_normal((40, 8)).astype(np.float32))
    (folder / "ids.txt").write_text("\n".join(f"r{i}" for i in range(300)))
    (folder / "query_ids.txt").write_text("\n".join(f"q{i}" for i in range(40)))
    lines = [line for i in range(40) for line in (f"q{i}\tr{i}\t2", f"q{i}\tr{i + 1}\t1", f"q{i}\tr{i + 2}\t0")]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    lines = [line.replace("\t", " 0 ", 1).replace("\t", " ") for line in (*lines, "q1\tr9\t-1")]
    (folder / "trec.txt").write_text(".0\n".join([*lines, ""]))
    how = ("--bytes", 2, "--ids", folder / "ids.txt", "--keep-vectors", "--out", folder / "idx")
    run_json("compress", folder / "X.npy", *how)
    return folder


@each("form", ["qrels.tsv", "trec.txt"])
def test_relevance_of_the_answers_by_hand(judged: Path, form: str) -> None:
    how = ("--query-ids", judged / "query_ids.txt", "--qrels", judged / form)
    found = run_json("evaluate", judged / "idx", judged / "Q.npy", *how)["relevance"]
    exact, coded, rescored = found["searches"]
    assert [row["search"] for row in found["searches"]] == ["exact", "without rescoring", "rescored by kept vectors"]
    ids = nk.Index.load(judged / "idx").search(np.load(judged / "Q.npy"), 100)[1]
    gains = np.array([[{f"r{i}": 2, f"r{i + 1}": 1}.get(row, 0) for row in ids[i]] for i in range(40)])
    ndcg = (gains[:, :10] / np.log2(np.arange(2, 12))).sum(axis=1) / (2 + 1 / np.log2(3))
    assert coded["NDCG@10"] == pytest.approx(ndcg.mean())
    assert coded["Recall@100"] == pytest.approx((gains > 0).sum(axis=1).mean() / 2)
    change = coded["change"]["NDCG@10"]
    assert change["mean"] == pytest.approx(coded["NDCG@10"] - exact["NDCG@10"])
    assert change["low"] < change["mean"] <= change["high"] < 0.1  # 40 queries
    assert coded["NDCG@10"] <= rescored["NDCG@10"] <= exact["NDCG@10"]
    assert run("evaluate", judged / "idx", judged / "Q.npy", *how).stdout.count("NDCG@10") == 2


def test_qrels_that_cannot_be_used_are_refused(judged: Path) -> None:
    lines = (judged / "qrels.tsv").read_text().splitlines()
    cases = {
        "q1\tr1\tnan": "missing numbers in 1 cell",
        "q1\tr1\t1": "two grades of 'r1' for 'q1'",
        "\n".join(f"q{i}\tx{i}\t1" for i in range(9)): "9 rows of 51 that the index lacks, the first is 'x0'",
    }
    for more, message in cases.items():
        (judged / "bad.tsv").write_text("\n".join([*lines, more]))
        how = ("--query-ids", judged / "query_ids.txt", "--qrels", judged / "bad.tsv")
        refused(message, "evaluate", judged / "idx", judged / "Q.npy", *how)
    refused("--query-ids", "evaluate", judged / "idx", judged / "Q.npy", "--qrels", judged / "qrels.tsv")


def test_sweep_keeps_the_relevance_that_exact_search_has(judged: Path) -> None:
    ids = ("--ids", judged / "ids.txt", "--query-ids", judged / "query_ids.txt", "--qrels", judged / "qrels.tsv")
    how = ("--queries", judged / "Q.npy", *ids, "--recall", 0.9)
    record = run_json("sweep", judged / "X.npy", *how)
    exact = next(trial for trial in record["trials"] if trial["method"] == "ScalarQuantizer")
    assert exact["recall"] == pytest.approx(1, abs=1e-6)
    assert record["choice"]["recall_low"] >= 0.9
    assert "--ids" in run("sweep", judged / "X.npy", *how).stdout
