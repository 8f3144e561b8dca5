"""Commands print the same figures however users, items, objects and rows are numbered, named and ordered."""

import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run, run_json

pytestmark = pytest.mark.usefixtures("few_draws")
Names = Callable[[int], np.ndarray]
ORDERS: dict[str, Names] = {"same": np.arange, "backwards": lambda n: np.char.mod("id %03d", np.arange(n)[::-1])}


def write(path: Path, header: str, rows: Iterable[Iterable[object]], seed: int) -> Path:
    """A table with its lines shuffled by the seed."""
    lines = list(rows)
    np.random.default_rng(seed).shuffle(lines)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *lines])
    return path


def figures(record: Any, path: str = "") -> dict[str, float]:
    """All numbers of a record by their places."""
    if isinstance(record, dict):
        return {at: value for name, of in record.items() for at, value in figures(of, f"{path}/{name}").items()}
    return {path: float(record)} if isinstance(record, int | float) and not isinstance(record, bool) else {}


def check_alike(found: dict[str, list[dict[str, float]]], least: float) -> None:
    """Means over the seeds differ by less than the seeds do: at most twice the largest deviation, and `least`."""
    first = next(iter(found.values()))[0]
    for name in first:
        values = np.array([[one[name] for one in of] for of in found.values()])
        spread = values.std(axis=1).max()
        assert np.ptp(values.mean(axis=1)) <= max(2 * spread, least), (
            f"{name}: {dict(zip(found, values.tolist(), strict=True))}"
        )


def share_in(lists: Path, pairs: Path) -> float:
    """The share of the pairs of a table that are in the lists of `nearkin recommend`."""
    rows = [list(csv.reader(path.read_text().splitlines())) for path in (lists, pairs)]
    listed = {(row[rows[0][0].index("user")], row[rows[0][0].index("item")]) for row in rows[0][1:]}
    return float(np.mean([(row[0], row[1]) in listed for row in rows[1][1:]]))


def in_report(folder: Path) -> dict[str, float]:
    """The figures among the answers of a report, and its claims: 0 for a tie, else the sign of the difference."""
    assert run("report", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    answers = page[page.index("<h3>quality") :].partition("</section>")[0]
    found = {f"value {n}": float(value) for n, value in enumerate(re.findall(r"<td[^>]*>(0\.\d+)</td>", answers))}
    claims = re.findall(r">(a tie, )?([+-])\d\.\d+ \(95 % interval", answers)
    assert len(found) > 6, answers
    assert claims, answers
    return found | {f"claim {n}": 0.0 if tie else float(f"{sign}1") for n, (tie, sign) in enumerate(claims)}


def log() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users of four groups who take items of their group, the low numbers most, in baskets of equal time."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(80), 8)
    chances = 1 / np.arange(1, 13)
    taken = [user % 4 * 12 + rng.choice(12, 8, replace=False, p=chances / chances.sum()) for user in range(80)]
    return users, np.concatenate(taken), 10 * np.repeat(rng.integers(0, 30, 320), 2)


@pytest.mark.parametrize("split", ["random", "time"])
def test_embed_and_evaluate_pairs(tmp_path: Path, split: str) -> None:
    found: dict[str, list[dict[str, float]]] = {}
    users, items, times = log()
    late = times >= np.quantile(times, 0.85)
    for order, make in ORDERS.items():
        columns = make(80)[users], make(48)[items], times
        found[order] = []
        for seed in range(2):
            early, later = (
                write(tmp_path / f"{name}.csv", "user,item,time", zip(*(c[rows] for c in columns), strict=True), seed)
                for name, rows in (("early", ~late), ("late", late))
            )
            out = tmp_path / f"{order} {seed}"
            how = ("--dim", 8, "--loss", "all-pairs", "--split", split, "--seed", seed)
            made, later_on = run_json("embed", early, "--out", out, *how), run_json("evaluate", out, later)
            assert run("recommend", out, "--all", "-k", 10, "--out", tmp_path / "lists.csv").exit_code == 0
            record = {"embed": made["quality"], "evaluate": later_on["quality"]}
            record["recommend"] = share_in(tmp_path / "lists.csv", later)
            if split == "random":
                record["report"] = in_report(out)
            found[order].append(figures(record))
            (tmp_path / "lists.csv").unlink()
    check_alike(found, 0.05)


@pytest.mark.usefixtures("no_pictures")
def test_embed_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin.jobs.embed_comparisons.MAX_ELLIPSES", 0)
    rng = np.random.default_rng(0)
    objects = rng.normal(size=(20, 2))
    asked = nk.data.comparisons_from_vectors(objects, 1_500, noise=0.5, random_state=0).indices
    found: dict[str, list[dict[str, float]]] = {}
    for order, make in ORDERS.items():
        found[order] = []
        for seed in range(2):
            answers = write(tmp_path / "answers.csv", "anchor,near,far", make(20)[asked].tolist(), seed)
            how = ("--dim", 2, "--out", tmp_path / f"{order} {seed}", "--seed", seed)
            found[order].append(figures({"error": run_json("embed", answers, *how)["held_out_error"]}))
    check_alike(found, 0.03)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows in the order of their class and queries, with labels: many codes of four bits are equal."""
    rng = np.random.default_rng(1)
    labels, asked = np.repeat(np.arange(5), 60), np.arange(25) % 5
    centres = 1.5 * rng.normal(size=(5, 8))
    X, Q = (centres[of] + rng.normal(size=(len(of), 8)) for of in (labels, asked))
    return X.astype(np.float32), Q.astype(np.float32), labels, asked


@pytest.mark.parametrize("kind", ["bytes", "bits", "copies"])
def test_evaluate_an_index(tmp_path: Path, rows: tuple[np.ndarray, ...], kind: str) -> None:
    """Recall, precision, mAP and NDCG are expected values over the orders of equal scores: exactly equal."""
    X, Q, labels, asked = rows
    if kind == "copies":
        X, Q = X.round() // 2, Q.round() // 2
    codes = {"bits": nk.ITQ(4, random_state=0), "bytes": nk.ProductQuantizer(2, 4, random_state=0)}
    quantizer = codes[kind].fit(X) if kind in codes else None
    relevant = [(query, row) for query in range(25) for row in range(300) if asked[query] == labels[row]]
    relevant = [pair for pair in relevant if (pair[0] + pair[1]) % 3]
    np.save(tmp_path / "Q.npy", Q)
    np.save(tmp_path / "query_labels.npy", asked)
    files = [f"{tmp_path}/{name}" for name in ("Q.npy", "labels.npy", "query_labels.npy", "qrels.tsv")]
    found: list[dict[str, float]] = []
    for order, make in ORDERS.items():
        at = np.random.default_rng(3).permutation(300) if found else np.arange(300)
        names = make(300)
        metric = "hamming" if kind == "bits" else "l2"
        nk.Index.build(X[at], quantizer, ids=names[at], metric=metric).save(tmp_path / order)
        np.save(tmp_path / "labels.npy", labels[at])
        np.save(tmp_path / "base.npy", X[at])
        graded = [(f"{query}", names[row], 1 + row % 2) for query, row in relevant]
        write(tmp_path / "qrels.tsv", "query-id,corpus-id,score", graded, 1)
        (tmp_path / "qrels.tsv").write_text((tmp_path / "qrels.tsv").read_text().replace(",", "\t"))
        options = zip(("--labels", "--query-labels", "--qrels"), files[1:], strict=True)
        given = [part for option in options for part in option]
        record = run_json("evaluate", tmp_path / order, files[0], "--base", tmp_path / "base.npy", *given)
        searches = {f"{n}": each for n, each in enumerate(record["relevance"]["searches"])}
        measures = {name: value for name, value in record.items() if name.startswith(("mAP", "precision", "1-", "10-"))}
        found.append(figures({"relevance": searches} | measures))
    assert len(found[0]) > 8
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_sweep_and_its_grades(tmp_path: Path, rows: tuple[np.ndarray, ...]) -> None:
    X, Q, labels, asked = rows
    found: dict[str, list[dict[str, float]]] = {}
    np.save(tmp_path / "Q.npy", Q)
    for order in ORDERS:
        at, found[order] = np.random.default_rng(len(found)).permutation(300) if found else np.arange(300), []
        np.save(tmp_path / "X.npy", X[at])
        same = [(query, place, 1) for query in range(25) for place in np.flatnonzero(labels[at] == asked[query])]
        qrels = write(tmp_path / "qrels.csv", "query-id,corpus-id,score", same, 1)
        for seed in range(2):
            how = (tmp_path / "X.npy", "--queries", tmp_path / "Q.npy", "--seed", seed)
            records = run_json("sweep", *how, "--recall", 0.6), run_json("sweep", *how, "--qrels", qrels)
            found[order].append({f"{n}": record["trials"][0]["recall"] for n, record in enumerate(records)})
    check_alike(found, 0.05)
