"""A sweep answers with the shortest code that keeps enough, as the same command's index then does."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin._types import Record
from nearkin.jobs.sweep import Bench, lower_bound, sweep
from nearkin.metrics.neighbours import ExactNeighbours
from tests.cli.conftest import run, run_json
from tests.covering import each

best, order = import_module("nearkin.quantization.best"), import_module("nearkin.quantization.order")


@pytest.fixture(autouse=True, scope="module")
def quickly_learned() -> Iterator[None]:
    """In place of the folder's: figures of one module are compared here."""
    listed, few = best.candidates, {"product", "residual", "float16"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "DEFAULTS", replace(order.DEFAULTS, code_steps=30))
        patch.setattr(best, "candidates", lambda *given, **how: [one for one in listed(*given, **how) if one in few])
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(800, 5)) @ rng.normal(size=(5, 8)) + 0.1 * rng.normal(size=(800, 8))).astype(np.float32)
    folder = tmp_path_factory.mktemp("sweep")
    np.save(folder / "X.npy", X[:600])
    np.save(folder / "Q.npy", X[600:])
    return folder / "X.npy", X[600:]


@pytest.fixture(scope="module")
def made(data: tuple[Path, np.ndarray]) -> Record:
    return sweep(data[0], queries=data[0].with_name("Q.npy"), recall=0.6, seed=3)


def test_codes_double_until_one_keeps_enough_and_the_shortest_is_chosen(made: Record) -> None:
    alone = [row for row in made["trials"] if row["oversample"] == 1]
    assert [row["bytes"] for row in alone] == [4, 8, 16]  # two bytes a column hold floats of half precision
    assert alone[-1]["method"] == "ScalarQuantizer"
    assert made["choice"]["recall_low"] >= 0.6
    assert all(row["recall_low"] < 0.6 for row in alone if row["bytes"] < made["choice"]["bytes"])
    assert made["choice_with_vectors"]["bytes"] <= made["choice"]["bytes"]


@pytest.mark.parametrize("place", [0, 2], ids=["choice", "choice_with_vectors"])
def test_what_evaluate_prints_is_the_recall_that_the_answer_named(made: Record, place: int, tmp_path: Path) -> None:
    """The commands under an answer, typed as they stand, queries, seed and oversampling included."""
    choice = made["choice_with_vectors" if place else "choice"]
    commands = made["next"][place : place + 2]
    make, judge = (shlex.split(command.replace(" idx", f" {tmp_path / 'idx'}"))[1:] for command in commands)
    assert run(*make).exit_code == 0
    judged = run_json(*judge)
    assert judged["10-recall@10"] == pytest.approx(choice["recall"], abs=1e-12)
    assert judged["searches"][-1]["bytes_kept"] == 600 * choice["kept_vectors_bytes"]


def test_vectors_are_kept_in_the_fewest_bytes_that_keep_enough(data: tuple[Path, np.ndarray]) -> None:
    """At a target that int8 meets and at one that it misses."""
    X, Q = np.load(data[0]), data[1]
    bench = Bench(X, Q, ExactNeighbours.of(X, Q, 10), "l2")

    def kept(target: float) -> Record:
        return next(row for row in bench.measure(4, target) if row["oversample"] == 4)

    by_int8, exact = kept(0.5), kept(np.inf)
    assert (by_int8["kept_vectors"], by_int8["kept_vectors_bytes"]) == ("int8", 12)
    assert exact["kept_vectors"] == "float32"
    assert kept(by_int8["recall_low"] + 1e-9)["kept_vectors"] != "int8"


def test_without_queries_rows_are_held_out_and_that_is_said(data: tuple[Path, np.ndarray]) -> None:
    made = sweep(data[0], recall=0.5, k=5)
    assert made["queries_are_rows"]
    assert made["queries"] == 120
    assert "120 vectors held out of the file, among 480 vectors" in made["judged_by"]
    assert "which the index holds too" in made["notes"][0]
    assert all(line.startswith("nearkin compress") for line in made["next"])


@pytest.mark.parametrize("queries", [True, False], ids=["queries", "held out"])
@pytest.mark.parametrize("metric", ["ip", "cosine"])  # the other tests are by l2
def test_every_metric_has_an_answer(metric: str, queries: bool, tmp_path: Path) -> None:
    """By cosine every sweep ended with an error of a method that has no codes for it."""
    X = np.random.default_rng(0).normal(size=(640, 8)) * np.linspace(0.5, 2, 640)[:, None]
    np.save(tmp_path / "X.npy", X[:600].astype(np.float32))
    np.save(tmp_path / "Q.npy", X[600:].astype(np.float32))
    how = ["--queries", tmp_path / "Q.npy"] if queries else []
    record = run_json("sweep", tmp_path / "X.npy", *how, "--metric", metric, "--recall", 0.5)
    assert record["metric"] == metric
    assert record["choice"] is not None


def test_the_page_holds_the_choice_and_the_curve(data, tmp_path: Path) -> None:
    record = run_json("sweep", data[0], "--recall", 0.5, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"{record['choice']['recall']:.4g}" in page
    assert "<svg" in page


@each(("name", "value"), [("recall", 1.5), ("k", 0), ("metric", "hamming")])
def test_bad_questions_are_refused_before_any_work(data: tuple[Path, np.ndarray], name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value!r}"):
        sweep(data[0], **{name: value})  # pyright: ignore[reportArgumentType]


def test_a_folder_of_pairs_is_swept_by_inner_product(tmp_path: Path) -> None:
    """It was judged by l2, and the command made an index by ip."""
    pairs = nk.data.planted_interactions(80, 300, random_state=0).interactions
    lines = [f"u{i},p{j}" for i in range(80) for j in pairs.indices[pairs.indptr[i] : pairs.indptr[i + 1]]]
    (tmp_path / "pairs.csv").write_text("user,item\n" + "\n".join(lines))
    run_json("embed", tmp_path / "pairs.csv", "--dim", 8, "--loss", "all-pairs", "--out", tmp_path / "emb")
    made = run_json("sweep", tmp_path / "emb", "--recall", 0.5)
    assert made["metric"] == "ip"
    assert (made["queries"], made["queries_are_rows"]) == (80, False)  # the left side asks
    assert "--metric ip" in made["choice"]["command"]
    assert json.dumps(made)


def test_the_lower_bound_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    below = [lower_bound(rng.binomial(10, 0.8, 200) / 10) <= 0.8 for _ in range(2000)]
    assert 0.96 < np.mean(below) < 0.99, np.mean(below)
    assert lower_bound(np.ones(200)) == pytest.approx(0.025 ** (1 / 200), abs=0.005)  # Clopper and Pearson
    assert lower_bound(np.full(200, 1.5)) < lower_bound(np.full(200, 1.6))  # shares of NDCG may be above 1
    assert lower_bound(np.zeros(3)) == 0


def test_queries_of_another_kind_are_named(data: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    np.save(tmp_path / "far.npy", data[1] + np.float32(5))
    made = sweep(data[0], queries=tmp_path / "far.npy", recall=0.5)
    assert made["query_shift"] > 0.1
    assert any("another kind than the vectors" in note for note in made["notes"])
