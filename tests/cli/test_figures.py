"""Printed figures, each computed again by a few lines of NumPy: issue 28, part D."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.run import bytes_on_disk
from tests.cli.conftest import load, run, run_json


def test_the_sizes_are_of_codes_and_of_the_folder(files: Path, tmp_path: Path) -> None:
    """D3: "8 times smaller" stood over a folder larger than the data."""
    args = ("compress", f"{files}/data.npz:base", "--bytes", 4, "--centroids", 16, "--keep-vectors")
    record = run_json(*args, "--out", tmp_path / "idx")
    idx = tmp_path / "idx"
    on_disk = sum(path.stat().st_size for path in idx.rglob("*") if path.is_file())
    raw = load(files)["base"].astype(np.float32).nbytes
    assert record["bytes_on_disk"] == on_disk > raw
    assert record["compression"] == raw / 600 / 4
    text = " ".join(run(*args, "--out", idx, "--overwrite").stdout.split())
    on_disk = bytes_on_disk(idx)  # seconds are other digits
    assert "bytes per vector 4 compression 8 " in text
    assert f"bytes on disk {on_disk:,} " in text
    page = tmp_path / "page.html"
    run_json("report", idx, "--out", page)
    assert f">{on_disk:,}<" in page.read_text()


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_the_distortion_has_a_scale(files: Path, tmp_path: Path, metric: str) -> None:
    """D9: what is left of the variance, and the neighbours kept, which `evaluate` prints again."""
    base, idx = f"{files}/data.npz:base", tmp_path / "idx"
    options = ("--bytes", 1, "--centroids", 16, "--metric", metric, "--out", idx)
    record = run_json("compress", base, *options)
    X = load(files)["base"].astype(np.float64)
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    quantizer = nk.Index.load(idx).quantizer
    decoded = quantizer.decode(quantizer.encode(X.astype(np.float32)))
    left_over = ((X - decoded) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert record["variance_kept"] == pytest.approx(1 - left_over, abs=1e-5)
    assert record["judged_by"].startswith("200 vectors of")
    assert run_json("evaluate", idx, "--base", base, "-k", 10)["10-recall@10"] == record["10-recall@10"]
    queries = f"{files}/data.npz:query"
    judged = run_json("compress", base, *options[:-2], "--queries", queries, "--out", idx, "--overwrite")
    again = run_json("evaluate", idx, queries, "--base", base, "-k", 10)
    assert again["10-recall@10"] == judged["10-recall@10"]
    shown = run("compress", base, *options, "--overwrite").stdout
    assert f"nearkin evaluate {shlex.join([str(idx), '--base', str(base)])} -k 10" in shown


@pytest.mark.parametrize("trained_on", ["all", "some"])
def test_a_recall_says_of_which_queries_it_is(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained_on: str
) -> None:
    """Vectors that the codes were trained on have a higher recall than others, and queries of another kind a third one;
    `evaluate` and the report say it in the same words. A terminal folds long names of files, and cut them."""
    monkeypatch.setenv("COLUMNS", "80")
    if trained_on == "some":
        monkeypatch.setattr(sys.modules["nearkin.jobs.compress"], "TRAINED", 64)
    base, idx, queries = f"{files}/data.npz:base", tmp_path / "idx", f"{files}/data.npz:query"
    shown = " ".join(run("compress", base, "--bytes", 4, "--centroids", 16, "--out", idx).stdout.split())
    known = "trained on (new ones have a lower recall)" if trained_on == "all" else "not trained on"
    words = f"200 vectors of {base}, {known}, each without itself"
    bare = "".join(words.split())  # lines of a terminal may end in a long name
    assert re.search(r"10-recall@10 0.\d+ recall interval 0.\d+ to 0.\d+ judged by ", shown)
    assert bare in shown.replace(" ", "")
    assert "Note: queries of another kind than the vectors have another recall; give some as --queries" in shown
    assert bare in "".join(run("evaluate", idx, "--base", base).stdout.split())
    made, judged = (json.loads((idx / f"{name}.json").read_text()) for name in ("run", "evaluation"))
    assert judged["10-recall@10"] == made["10-recall@10"]
    if trained_on == "some":
        unseen = np.delete(load(files)["base"], nk.data.open_vectors(base).draw(64, 0), axis=0)
        assert made["distortion"] == pytest.approx(nk.Index.load(idx).quantizer.distortion(unseen), rel=1e-5)
    run("report", idx, "--overwrite")
    assert words in (idx / "report.html").read_text()
    asked = run(
        "compress", base, "--bytes", 4, "--centroids", 16, "--queries", queries, "--out", tmp_path / "asked"
    ).stdout
    assert "judged by 20 queries" in " ".join(asked.split())
    assert "Note: queries" not in asked
    run("remove", idx, 3)
    np.save(tmp_path / "left.npy", np.delete(load(files)["base"], 3, axis=0))
    changed = run_json("evaluate", idx, "--base", tmp_path / "left.npy")["judged_by"]
    assert ", trained on (new ones have a lower recall)," in changed  # which of them were is not known any more


@pytest.mark.parametrize("command", ["embed", "train"])
def test_the_cut_the_pairs_and_the_users_that_judge_are_printed(command: str, tmp_path: Path) -> None:
    """D11: dates of an ISO column, and who is judged."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(600)
    rows = list(zip(rng.integers(0, 40, 600), rng.integers(0, 30, 600), days.astype(str), strict=True))
    table = tmp_path / "log.csv"
    table.write_text("user,item,when\n" + "".join(f"u{u},i{i},{day}\n" for u, i, day in rows))
    args = (command, table, "--timestamp", "when", "--split", "time", "--dim", 8, "--loss", "all-pairs")
    args += ("--bytes", 4, "--out", tmp_path / "out") if command == "train" else ("--out", tmp_path / "out")
    text = " ".join(run(*args).stdout.split())
    record = json.loads((tmp_path / "out/run.json").read_text())
    first: dict[tuple[int, int], str] = {}
    for user, item, day in rows:
        first.setdefault((user, item), day)
    last = sorted(first.values())[-record["held_out"]["pairs"] :]
    judged = {pair for pair, day in first.items() if day >= last[0]}
    assert len(judged) == record["held_out"]["pairs"] == pytest.approx(0.1 * len(first), abs=1)
    assert len({user for user, _ in judged}) == record["held_out"]["left"]
    assert (
        f"{len(judged)} pairs of {record['held_out']['left']} ids (user), first seen from {last[0]} 00:00:00 UTC"
        in text
    )
    run_json("report", tmp_path / "out")
    assert f"first seen from {last[0]}" in (tmp_path / "out/report.html").read_text() or command == "train"


def test_cosine_refuses_rows_without_a_direction(files: Path) -> None:
    """A zero query named three arbitrary rows, and `add` took a zero row."""
    X = load(files)["base"][:40].copy()
    index = nk.Index.build(X, metric="cosine")
    X[[7, 9]] = 0
    updated, built = (lambda X: index.update(np.arange(40), X)), (lambda X: nk.Index.build(X, metric="cosine"))
    for call in (index.search, index.add, updated, built):
        with pytest.raises(ValueError, match="has 2 rows of zeros among 40, the first is row 7; a zero row has no"):
            call(X)
    assert len(index) == 40
    assert nk.Index.build(X).search(X[:1], 3)[1].shape == (1, 3), "by distance a zero row is a row like others"
