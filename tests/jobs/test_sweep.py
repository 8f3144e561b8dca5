"""A sweep answers with the shortest code that keeps enough, as the same command's index then does."""

import itertools
import json
import shlex
import time
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.methods import CodeSize, find_method
from nearkin.jobs.pages import html_command, sweep_page
from nearkin.jobs.sweep import (
    METHODS,
    Bench,
    Comparison,
    Search,
    Searches,
    Sweep,
    choose,
    frontier,
    lower_bound,
    sweep,
)
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.quantization.best import candidates
from tests.cli.conftest import refused, run, run_json
from tests.covering import each


@pytest.fixture(autouse=True)
def quickly_learned(few_steps: None) -> None:
    """In place of the folder's: figures of whole fits are compared here."""


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
    return sweep(nk.data.open_vectors(data[0]), data[1], target=0.6, methods=("product",), random_state=3)


@pytest.fixture(scope="module")
def of_two_methods(data) -> Sweep:
    return sweep(
        nk.data.open_vectors(data[0]), data[1], target=0.5, methods=("product", "residual"), rate=1, random_state=3
    )


def test_the_choice_is_the_shortest_of_the_trials_that_keep_enough(found: Sweep) -> None:
    assert found.chosen() is not None
    assert found.chosen().low >= 0.6
    shorter = [trial[1] for trial in found.comparison.trials if trial[1].n_bytes < found.chosen().n_bytes]
    assert all(code.low < 0.6 for code in shorter)
    assert found.chosen().n_bytes - 1 in [code.n_bytes for code in shorter]  # to a byte
    assert found.chosen(rescored=True) is not None
    assert found.chosen(rescored=True).n_bytes <= found.chosen().n_bytes


@pytest.mark.parametrize("rescored", [False, True])
def test_what_evaluate_prints_is_the_recall_that_the_answer_named(
    of_two_methods: Sweep, data, rescored: bool, tmp_path
) -> None:
    """The commands under an answer, typed as they stand, seed and lists and oversampling included."""
    path, _ = data
    choice = of_two_methods.chosen(rescored=rescored)
    answers = of_two_methods.answers(str(path), str(path.with_name("Q.npy")))
    text, commands = answers[rescored]
    assert f"recall {choice.mean:.4f}" in text
    make, judge = (shlex.split(command.replace(" idx", f" {tmp_path / 'idx'}"))[1:] for command in commands)
    assert run(*make).exit_code == 0
    judged = run_json(*judge)
    assert judged["10-recall@10"] == pytest.approx(choice.mean, abs=1e-12)
    assert judged["searches"][-1]["bytes_kept"] == 1200 * choice.vectors_bytes(16)


@pytest.mark.parametrize("rescored", [False, True])
def test_one_code_has_one_figure(found: Sweep, data, rescored: bool) -> None:
    """The table ranked by exact vectors what the sentence and the command ranked by int8."""
    choice, (columns, rows) = found.chosen(rescored=rescored), found.rows()
    row = dict(zip(columns, next(r for r in rows if r[:2] == [choice.n_bytes, choice.method]), strict=True))
    trial = next(t for t in found.comparison.trials if choice in t.values())
    assert [row["codes"], row["x4"]] == [round(trial[o].mean, 4) for o in (1, 4)]
    assert trial[4].kept == "int8"
    X, Q = np.load(data[0]), data[1]
    made = find_method(choice.method).make(CodeSize(choice.n_bytes), 3)
    index = nk.Index.build(X, made, keep_vectors="int8")
    truth = nk.Index.build(X).search(Q, 10)[1]
    searched = nk.metrics.recall_k_at_k(index.search(Q, 10, oversample=4)[1], truth, 10)
    assert row["x4"] == pytest.approx(searched, abs=0.01)  # of equal codes at the last place the index takes the first
    won = [r for r in found.record("X")["trials"] if r["won"] and (r["oversample"] > 1) == rescored]
    assert [(r["value"], r["bytes"], r["kept_vectors"]) for r in won] == [
        (choice.mean, choice.n_bytes, "int8" if rescored else None)
    ]


def test_vectors_are_kept_in_the_fewest_bytes_that_keep_enough(found: Sweep, data) -> None:
    """At a target that int8 meets and at one that it misses."""
    choice = found.chosen(rescored=True)
    assert (choice.kept, choice.vectors_bytes(16), choice.record(16)["kept_vectors_bytes"]) == ("int8", 20, 20)
    assert "MB of vectors as int8" in found.answers("X.npy")[1][0]
    assert "--keep-vectors=int8" in found.answers("X.npy")[1][1][0]
    X, Q = np.load(data[0]), data[1]
    bench = Bench(X, X, Q, ExactNeighbours.of(X, Q, 10), "l2")
    by_int8, exact = bench.measure("int8", 16, 0.5)[4], bench.measure("int8", 16)[4]
    assert (by_int8.kept, exact.kept) == ("int8", "float32")
    assert bench.measure("int8", 16, lower_bound(by_int8.recall) + 1e-9)[4].kept != "int8"


def test_a_rate_that_no_code_reaches_leaves_no_choice(of_two_methods: Sweep) -> None:
    assert choose(of_two_methods.comparison.trials, 0.5, rate=1) is not None
    assert choose(of_two_methods.comparison.trials, 0.5, rate=1e12) is None


def test_oversampled_recall_is_that_of_kept_vectors(found: Sweep, data) -> None:
    path, Q = data
    trial = found.comparison.trials[0]
    X = np.load(path)
    quantizer = find_method("product").make(CodeSize(trial[4].n_bytes), 3)
    index = nk.Index.build(X, quantizer, keep_vectors=trial[4].kept)
    truth = nk.Index.build(X).search(Q, 10)[1]
    recall = nk.metrics.recall_k_at_k(index.search(Q, 10, oversample=4)[1], truth, 10)
    assert trial[4].mean == pytest.approx(recall, abs=1e-3)


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("method", ["residual", "product-residual"])
def test_residual_codes_are_judged_as_they_are_searched(method: str, data) -> None:
    X, Q = np.load(data[0]), data[1]
    truth = nk.Index.build(X).search(Q, 10)[1]
    trial = Bench(X, X, Q, ExactNeighbours.given(truth), "l2", 0).measure(method, 8)
    index = nk.Index.build(X, find_method(method).make(CodeSize(8), 0).fit(X))
    assert trial[1].mean == pytest.approx(nk.metrics.recall_k_at_k(index.search(Q, 10)[1], truth, 10), abs=1e-12)
    assert all(search.rate > 0 for search in trial.values())


def test_without_queries_rows_are_held_out_and_that_is_said(data) -> None:
    made = sweep(nk.data.open_vectors(data[0]), target=0.5, methods=("product",), k=5)
    assert made.queries_are_rows
    assert len(made.bench.X) + len(made.bench.Q) == 1200
    assert "vectors held out of the file" in made.judged_by()
    assert "which the index holds too" in made.notes()[0]
    assert len(made.answers("X.npy")[0][1]) == 1


def test_a_sure_code_is_measured_whatever_the_time(data) -> None:
    """With little time nothing was measured, and no code was said to keep what int8 keeps."""
    made = sweep(nk.data.open_vectors(data[0]), data[1], target=0.95, seconds=1e-9)
    assert [trial[1].method for trial in made.comparison.trials] == ["int8"]
    assert "Time was over" in made.notes()[-1]
    assert "int8; recall" in made.answers("X.npy")[0][0]


@pytest.mark.parametrize("queries", [True, False], ids=["queries", "held out"])
@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_all_methods_that_rank_by_a_metric_are_tried(metric: str, queries: bool, tmp_path: Path) -> None:
    """By cosine every sweep ended with an error of a method that has no codes for it."""
    X = np.random.default_rng(0).normal(size=(340, 8)) * np.linspace(0.5, 2, 340)[:, None]
    np.save(tmp_path / "X.npy", X[:300].astype(np.float32))
    np.save(tmp_path / "Q.npy", X[300:].astype(np.float32))
    how = ["--queries", tmp_path / "Q.npy"] if queries else []
    record = run_json("sweep", tmp_path / "X.npy", *how, "--metric", metric, "--recall", 0.5, "--minutes", 0.01)
    assert record["metric"] == metric
    assert {trial["method"] for trial in record["trials"]} > {"int8"}
    assert record["choice"] is not None


def test_a_method_without_codes_for_the_metric_is_named(data) -> None:
    with pytest.raises(ValueError, match="metric for residual-norms is 'cosine'"):
        sweep(nk.data.open_vectors(data[0]), data[1], metric="cosine", methods=["int8", "residual-norms"])


def test_fewer_rows_than_centroids_are_swept_by_scalar_codes(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 4)))
    made = sweep(nk.data.open_vectors(tmp_path / "X.npy"), np.zeros((30, 4)), target=0.5)
    assert {trial[1].method for trial in made.comparison.trials} <= {"int4", "int6", "int8", "float16"}


def test_the_page_holds_answers_and_table(of_two_methods: Sweep) -> None:
    text = sweep_page(of_two_methods, "X <b>.npy").html()
    assert "<span>nearkin</span> <span>compress</span>" in text
    assert "X <b>" not in text
    assert "searched with <code><span>--" in text  # an option does not break, nor become two dashes and a word


def test_no_word_of_a_command_breaks() -> None:
    """A browser breaks a line behind each hyphen: "--bytes 4" was read as "- -bytes 4"."""
    line = html_command("nearkin compress 'my file.npy' --bytes 4")
    assert line.endswith("<span>--bytes</span> <span>4</span></code>")


@each(("name", "value"), [("target", 1.5), ("k", 0), ("metric", "hamming"), ("methods", ("none", "x")), ("rate", -1)])
def test_bad_questions_are_refused_before_any_work(data, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"target|k |metric|method|rate"):
        sweep(nk.data.open_vectors(data[0]), data[1], **{name: value})  # pyright: ignore[reportArgumentType]


def test_queries_with_gaps_are_refused(data, tmp_path: Path) -> None:
    """NaN was said to be "(inf)" once, and was swept here in silence."""
    Q = data[1][:5].copy()
    Q[3, 2] = np.nan
    np.save(tmp_path / "Q.npy", Q)
    refused("NaN", "sweep", data[0], "--queries", tmp_path / "Q.npy")


def test_commands_stand_on_one_line_each_and_name_the_seed(data) -> None:
    """The command lacked --seed, and lines were broken at 80 columns, also within a command."""
    queries = data[0].with_name("Q.npy")
    options = ("--recall", 0.5, "--methods", "product", "--seed", 3)
    shown = run("sweep", data[0], "--queries", queries, *options)
    assert shown.exit_code == 0
    commands = [line.strip() for line in shown.stdout.splitlines() if line.startswith("  nearkin ")]
    assert commands[0].startswith(f"nearkin compress {data[0]} --method product --bytes ")
    assert commands[0].endswith("--seed 3 --out idx")
    assert commands[1].startswith(f"nearkin evaluate idx {queries} --base {data[0]} -k 10")


def test_a_folder_of_pairs_is_swept_by_inner_product(tmp_path: Path) -> None:
    """It was judged by l2, and the command made an index by ip."""
    pairs = nk.data.planted_interactions(80, 60, random_state=0).interactions
    lines = [f"u{i},p{j}" for i in range(80) for j in pairs.indices[pairs.indptr[i] : pairs.indptr[i + 1]]]
    (tmp_path / "pairs.csv").write_text("user,item\n" + "\n".join(lines))
    run_json("embed", tmp_path / "pairs.csv", "--dim", 8, "--loss", "all-pairs", "--out", tmp_path / "emb")
    made = run_json("sweep", tmp_path / "emb", "--recall", 0.5)
    assert made["metric"] == "ip"
    assert (made["queries"], made["queries_are_rows"]) == (80, False)  # the left side asks
    assert "--metric ip" in made["choice"]["command"]
    assert json.dumps(made)


class Planted:
    """A bench whose recall is known: .1 for every doubling of the bytes, of every query."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def cost(self, method: str, n_bytes: int) -> float:
        return 0.0

    def measure(self, method: str, n_bytes: int, target: float) -> Searches:
        self.asked.append(method)
        share = min(0.99, 0.2 + 0.1 * np.log2(n_bytes) + (0.03 if method == "residual" else 0))
        noise = np.tile([-0.005, 0.005], 500)
        return {1: Search(method, n_bytes, 1, share + noise, 100.0)}


def test_sizes_close_in_on_the_target_in_few_trainings() -> None:
    bench = Planted()
    made = Comparison(bench, 0.7, 200, np.inf)
    made.run(["product"])
    best = choose(made.trials, 0.7)
    assert best is not None
    assert best.n_bytes == 33  # .2 + .1 log2(32) = .7, and the confidence
    assert len(bench.asked) <= 5, bench.asked


def test_what_cannot_be_shorter_is_not_trained() -> None:
    bench = Planted()
    made = Comparison(bench, 0.5, 200, np.inf)
    made.run(["product", "residual", "product-residual"])
    best = choose(made.trials, 0.5)
    assert best is not None
    assert (best.method, best.n_bytes) == ("residual", 7)
    assert bench.asked.count("product-residual") == 1  # the look that told


class Slow(Planted):
    """As Planted, and every code takes the seconds that it says."""

    spent = 0.0

    def cost(self, method: str, n_bytes: int) -> float:
        return {"product": 4.0, "residual": 15.0, "product-residual": 30.0}[method]

    def measure(self, method: str, n_bytes: int, target: float) -> Searches:
        self.spent += self.cost(method, n_bytes)
        recall = super().measure(method, n_bytes, target)[1].recall
        return {o: Search(method, n_bytes, o, np.minimum(1.0, recall + (0.35 if o > 1 else 0)), 100.0) for o in (1, 16)}


@each("seconds", [30.0, 60.0, 120.0, 600.0])
def test_little_time_is_spent_on_short_answers_first(seconds: float) -> None:
    """With 42 seconds all went into slow methods, and no product code of a byte was tried; with 18 one was. And with 30
    seconds all went into codes to rescore, and the answer by codes alone was the scalar one."""
    bench = Slow()
    made = Comparison(bench, 0.7, 200, seconds)
    made.run(["product", "residual", "product-residual"])
    best = choose(made.trials, 0.7, rescored=True)
    assert best is not None
    assert best.n_bytes <= 3
    alone = choose(made.trials, 0.7)
    assert alone is not None
    assert 27 <= alone.n_bytes <= 40  # 33 of product and 27 of residual codes are enough
    assert bench.spent <= seconds
    assert made.out_of_time == (seconds < 600)


def test_the_candidates_are_those_of_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Axis codes and bytes of norms were not tried. And a slow clock changes nothing."""
    bench, seen = Planted(), set[tuple[str, int]]()
    monkeypatch.setattr(time, "perf_counter", itertools.count(0, 1e6).__next__)
    monkeypatch.setattr(
        Planted, "measure", lambda _, *args: seen.add(args[:2]) or {1: Search(*args[:2], 1, np.zeros(9))}
    )
    Comparison(bench, 0.7, 32, 1e9, norms=True).run(METHODS)
    best = {(one.name, n) for n in range(1, 513) for one in candidates(n, 32, 256, norms=True)}
    assert {name for name, _ in seen} == {name for name, _ in best}
    assert seen <= best


def test_the_lower_bound_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    below = [lower_bound(rng.binomial(10, 0.8, 200) / 10) <= 0.8 for _ in range(2000)]
    assert 0.96 < np.mean(below) < 0.99, np.mean(below)
    assert lower_bound(np.ones(200)) == pytest.approx(0.025 ** (1 / 200), abs=0.005)  # Clopper and Pearson
    assert lower_bound(np.full(200, 1.5)) < lower_bound(np.full(200, 1.6))  # shares of NDCG may be above 1
    assert lower_bound(np.zeros(3)) == 0


def test_the_frontier_holds_what_nothing_shorter_beats() -> None:
    sizes = ((4, 0.5), (8, 0.4), (16, 0.9), (20, 0.8))
    trials = [{1: Search("a", size, 1, np.full(5, recall))} for size, recall in sizes]
    assert [code.n_bytes for code in frontier(trials)] == [4, 16]
    assert choose(trials, 0.95) is None


def test_queries_of_another_kind_are_named(data) -> None:
    shifted = data[1] + np.float32(5)
    made = sweep(nk.data.open_vectors(data[0]), shifted, target=0.5, methods=("int8",))
    assert made.query_shift > 0.1
    assert any("another kind than the vectors" in note for note in made.notes())


def test_searches_at_a_depth_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scalar codes of 300 columns were timed for ten seconds before anything else."""
    X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    bench = Bench(X, X, X[:20], ExactNeighbours.of(X, X[:20], 10), "l2")
    searches = []
    searched = nk.Index.search
    monkeypatch.setattr(nk.Index, "search", lambda *a, **kw: searches.append(1) or searched(*a, **kw))
    depths = bench.measure("int8", 8)
    assert len(searches) == 1 + len(depths)
