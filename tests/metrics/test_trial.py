"""Paired differences, whose interval holds the true mean as often as it says, and the choice that they make."""

import numpy as np
import pytest

from nearkin._exact import nearest
from nearkin.metrics.trial import HeldOut, Trial, mean_interval, paired_difference
from tests.covering import each

LOSSES = {"one of ten": [0.1], "all of ten": [1.0], "both": [0.1, 0.1, 0.1, 1.0], "any": [*np.arange(1, 11) / 10]}


@each("kind", [*LOSSES])
@each(("n", "recall"), [(n, r) for n in (50, 200, 1000) for r in (0.9, 0.95, 0.99, 0.997, 0.999, 0.9997)])
def test_the_interval_of_a_mean_recall_covers_it(n: int, recall: float, kind: str) -> None:
    """Queries lose one of their ten neighbours, all of them, or either; near 1 more than 95 % of intervals hold it."""
    lost = np.array(LOSSES[kind])
    rate = (1 - recall) / lost.mean()
    if rate > 1 - 1e-9:
        return
    rng = np.random.default_rng([n, round(1e4 * recall)])
    values = 1 - rng.choice(lost, (300, n)) * (rng.random((300, n)) < rate)
    low, high = np.array([mean_interval(of) for of in values]).T
    covered = np.mean((low <= recall) & (recall <= high))
    assert covered > 0.9, covered  # .94 in a longer simulation, four standard errors less
    assert covered < 0.985 or n * rate < 100, covered
    assert low.min() >= 0
    assert high.max() <= 1
    assert (high > low).all()


@each("size", [0.1, 1.0])
@each(("n", "rate"), [(50, 0.5), (200, 0.1), (1000, 0.01), (1000, 0.002)])
def test_the_interval_of_a_difference_covers_it(n: int, rate: float, size: float) -> None:
    """Some queries lose or gain one of ten, or all; losses alone are the worst case, where none may show."""
    for gains in (0.0, 0.2, 0.5):
        rng = np.random.default_rng([n, round(10 * gains)])
        draws = rng.random((300, n))
        moved = size * np.where(draws < rate * gains, 1, np.where(draws < rate, -1, 0))
        found = [paired_difference(of, np.zeros(n)) for of in moved]
        true = size * rate * (2 * gains - 1)
        assert np.mean([each.low <= true <= each.high for each in found]) > 0.9


def test_differences_beyond_1_widen_their_range() -> None:
    one = np.random.default_rng(0).normal(size=500)
    wide, narrow = paired_difference(50 * one, np.zeros(500)), paired_difference(one / 4, np.zeros(500))
    assert wide.high - wide.low == pytest.approx(200 * (narrow.high - narrow.low), rel=0.1)


def test_few_queries_prove_nothing() -> None:
    for n in range(1, 6):
        found = paired_difference(np.full(n, 0.5), np.zeros(n))
        assert not found.clear
        assert found.low <= 0 < found.high
        assert "a tie, +0.5000" in str(found)
    assert paired_difference(np.ones(6), np.zeros(6)).clear
    assert paired_difference([0.25], [0.75]).error == 0.5
    assert not paired_difference([0.3, 0.1], [0.3, 0.1]).clear
    for one, other in (([0.1, 0.2], [0.1]), ([], []), ([[0.1]], [[0.1]])):
        with pytest.raises(ValueError, match="one for each query"):
            paired_difference(one, other)


def made(*candidates: tuple[str, list[float], float]) -> Trial:
    trial = Trial()
    for name, values, cost in candidates:
        trial.add(name, np.array(values), cost)
    return trial


BASE = np.array([0.5, 0.4, 0.3, 0.6, 0.2, 0.1])


@each(
    ("lead", "costs", "winner"),
    [
        ([0.1, 0.11, 0.09, 0.1, 0.1, 0.1], (1, 2), "new"),  # clear: the expensive one
        ([0.3, -0.3, 0.03, 0, 0, 0], (1, 2), "old"),  # level: the cheap one
        ([0.3, -0.3, 0.03, 0, 0, 0], (2, 1), "new"),
        ([0.3, -0.3, 0.03, 0, 0, 0], (1, 1), "new"),  # level and equally cheap: the larger mean
        ([0.0] * 6, (1, 1), "old"),  # equal: the first
        ([-0.1, -0.1, -0.11, -0.1, -0.1, -0.1], (2, 1), "old"),
        ([1e-13] * 6, (1, 2), "old"),  # rounding is no lead
    ],
)
def test_within_a_standard_error_the_cheaper_wins(lead: list[float], costs: tuple[float, float], winner: str) -> None:
    trial = made(("old", list(BASE), costs[0]), ("new", list(BASE + lead), costs[1]))
    assert trial.winner() == winner
    assert {record["candidate"]: record["won"] for record in trial.table()} == {n: n == winner for n in ("old", "new")}


def test_differences_are_paired_not_those_of_means() -> None:
    """Queries differ far more than candidates: only query by query is the lead clear."""
    noise = np.random.default_rng(0).random(50)
    trial = made(("cheap", list(noise), 0), ("dear", list(noise + np.linspace(0.001, 0.003, 50)), 1))
    assert trial.winner() == "dear"
    assert trial.table()[0]["error"] < 1e-3 < noise.std() / 50**0.5
    assert trial.table()[1]["error"] == 0  # of the best, to itself


def test_a_winner_among_some_and_with_one_query() -> None:
    trial = made(("a", [0.1, 0.2], 0), ("b", [0.8, 0.9], 1), ("c", [0.5, 0.6], 2))
    assert (trial.winner(), trial.winner("a", "c"), trial.best("a", "c")) == ("b", "c", "c")
    assert made(("a", [0.1], 0), ("b", [0.9], 1)).winner() == "a"  # a single query proves nothing


def test_records_and_callback_tell_the_same() -> None:
    seen: list[dict] = []
    trial = Trial(lambda step, record: seen.append({"step": step, **record}), total=2)
    trial.add(8, BASE, 8, seconds=3.0)
    trial.add(16, BASE + 0.1, 16)
    assert [record["step"] for record in seen] == [1, 2]
    assert seen[0].items() >= {"total": 2, "objective": -BASE.mean(), "candidate": 8, "cost": 8, "seconds": 3.0}.items()
    table = trial.table()
    assert [set(record) - {"seconds"} for record in table] == [{"candidate", "value", "error", "cost", "won"}] * 2
    assert (table[0]["seconds"], [record["won"] for record in table]) == (3.0, [False, True])


def test_rows_are_split_into_queries_and_rows_to_find(rng: np.random.Generator) -> None:
    X = rng.normal(size=(6_000, 2))
    for n, asked, searched in ((6_000, 1_000, 4_096), (400, 100, 300), (3, 0, 3)):
        held = HeldOut.split(X[:n])
        assert (len(held.queries), len(held.rows)) == (asked, searched)
        np.testing.assert_array_equal(
            np.concatenate([held.queries, held.rows]), X[: asked + searched].astype(np.float32)
        )
    given = HeldOut.split(X, X[:2_500], "ip")
    assert (len(given.queries), len(given.rows), given.metric) == (834, 4_096, "ip")


@each("metric", ["l2", "ip"])
@each("kind", ["all equal", "two values", "rounded"])
def test_recall_is_the_mean_over_orders_of_rows_that_tie(rng: np.random.Generator, kind: str, metric: str) -> None:
    """The first of equal rows were found: sorted rows had another recall than shuffled ones."""
    rows = np.sort(rng.integers(-9, 9, (200, 3)).astype(np.float32), axis=0)
    queries = rows[::10] + 1
    decoded = {"all equal": 0 * rows, "two values": np.sign(rows), "rounded": (rows / 4).round()}[kind]
    first = HeldOut.of(rows, queries, metric).recall(decoded)
    drawn = []
    for _ in range(15):
        at = rng.permutation(200)
        held = HeldOut.of(rows[at], queries, metric)
        np.testing.assert_allclose(held.recall(decoded[at]), first, atol=1e-9)
        drawn.append(held.truth.recall(nearest(decoded[at], queries, 10, metric)[1]))
    error = 2 * np.std(drawn, axis=0).mean() / 15**0.5
    assert np.mean(drawn) == pytest.approx(first.mean(), abs=error + 1e-9)
