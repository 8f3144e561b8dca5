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
from nearkin.jobs.sweep import Bench, Sweep, choose, lower_bound, sweep_file
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
    X = (rng.normal(size=(1500, 6)) @ rng.normal(size=(6, 16)) + 0.1 * rng.normal(size=(1500, 16))).astype(np.float32)
    folder = tmp_path_factory.mktemp("sweep")
    np.save(folder / "X.npy", X[:1200])
    np.save(folder / "Q.npy", X[1200:])
    return folder / "X.npy", X[1200:]


@pytest.fixture(scope="module")
def found(data) -> Sweep:
    return sweep_file(nk.data.open_vectors(data[0]), data[1], target=0.6, rate=1, random_state=3)


def test_codes_double_until_one_keeps_enough_and_the_shortest_is_chosen(found: Sweep, data) -> None:
    sizes = [trial[1].n_bytes for trial in found.trials]
    assert sizes == [4, 8, 16, 32]  # two bytes a column hold floats of half precision
    assert found.trials[-1][1].method == "ScalarQuantizer"
    choice = found.chosen()
    assert choice.low >= 0.6
    assert all(trial[1].low < 0.6 for trial in found.trials if trial[1].n_bytes < choice.n_bytes)
    assert found.chosen(rescored=True).n_bytes <= choice.n_bytes


@pytest.mark.parametrize("rescored", [False, True])
def test_what_evaluate_prints_is_the_recall_that_the_answer_named(found: Sweep, data, rescored: bool, tmp_path) -> None:
    """The commands under an answer, typed as they stand, queries, seed and oversampling included."""
    path, _ = data
    choice = found.chosen(rescored=rescored)
    files = {"queries": str(path.with_name("Q.npy")), "ids": None, "query_ids": None, "qrels": None}
    commands = found.commands(choice, str(path), files)
    make, judge = (shlex.split(command.replace(" idx", f" {tmp_path / 'idx'}"))[1:] for command in commands)
    assert run(*make).exit_code == 0
    judged = run_json(*judge)
    assert judged["10-recall@10"] == pytest.approx(choice.mean, abs=1e-12)
    assert judged["searches"][-1]["bytes_kept"] == 1200 * choice.vectors_bytes(16)


def test_vectors_are_kept_in_the_fewest_bytes_that_keep_enough(found: Sweep, data) -> None:
    """At a target that int8 meets and at one that it misses."""
    X, Q = np.load(data[0]), data[1]
    bench = Bench(X, Q, ExactNeighbours.of(X, Q, 10), "l2")
    by_int8, exact = bench.measure(4, 0.5)[4], bench.measure(4)[4]
    assert (by_int8.kept, exact.kept) == ("int8", "float32")
    assert (by_int8.vectors_bytes(16), by_int8.record(16)["kept_vectors_bytes"]) == (20, 20)
    assert bench.measure(4, lower_bound(by_int8.recall) + 1e-9)[4].kept != "int8"


def test_a_rate_that_no_code_reaches_leaves_no_choice(found: Sweep) -> None:
    assert choose(found.trials, 0.5, rate=1) is not None
    assert choose(found.trials, 0.5, rate=1e12) is None


def test_without_queries_rows_are_held_out_and_that_is_said(data) -> None:
    made = sweep_file(nk.data.open_vectors(data[0]), target=0.5, k=5)
    assert made.queries_are_rows
    assert len(made.bench.X) + len(made.bench.Q) == 1200
    assert "vectors held out of the file" in made.judged_by()
    assert "which the index holds too" in made.notes()[0]
    assert len(made.commands(made.trials[0][1], "X.npy", {"queries": None, "ids": None})) == 1


@pytest.mark.parametrize("queries", [True, False], ids=["queries", "held out"])
@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
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


@each(("name", "value"), [("target", 1.5), ("k", 0), ("metric", "hamming"), ("rate", -1)])
def test_bad_questions_are_refused_before_any_work(data, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"target|k |metric|rate"):
        sweep_file(nk.data.open_vectors(data[0]), data[1], **{name: value})  # pyright: ignore[reportArgumentType]


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


def test_queries_of_another_kind_are_named(data) -> None:
    shifted = data[1] + np.float32(5)
    made = sweep_file(nk.data.open_vectors(data[0]), shifted, target=0.5)
    assert made.query_shift > 0.1
    assert any("another kind than the vectors" in note for note in made.notes())
