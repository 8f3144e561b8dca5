"""Numbering means nothing: figures are the same however users, items, rows and lines are ordered and named."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.data import Parts, VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.embedding import baselines
from nearkin.index.full_search import FullSearch
from nearkin.jobs.evaluate import exact_neighbors
from nearkin.metrics.ranking import list_metrics, ranking_metrics
from nearkin.metrics.retrieval import graded_values
from tests.covering import each

M, N = 150, 60


@cache
def log() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items and times of histories in baskets of equal time; low item numbers are popular."""
    rng = np.random.default_rng(0)
    chances = 1 / np.arange(1, N + 1)
    items = [rng.choice(N, 8, replace=False, p=chances / chances.sum()) for _ in range(M)]
    return np.repeat(np.arange(M), 8), np.concatenate(items), np.repeat(rng.integers(0, 40, 4 * M), 2)


ORDERS: dict[str, Callable[[int], np.ndarray]] = {
    "same": np.arange,
    "backwards": lambda n: np.arange(n)[::-1],
    "permuted": np.random.default_rng(7).permutation,
    "text": lambda n: np.array([f"id {number:03d}" for number in np.arange(n)[::-1]]),
}
NAMED = "same", "permuted", "text"
SPLITS: dict[str, Callable[[nk.Interactions, int], Parts]] = {
    "random": lambda pairs, seed: nk.data.split_random(pairs, random_state=seed),
    "time": lambda pairs, seed: nk.data.split_by_time(pairs),
    "leave-last-out": lambda pairs, seed: nk.data.split_leave_last_out(pairs, random_state=seed),
    "last two": lambda pairs, seed: nk.data.split_leave_last_out(pairs, n_test=2, random_state=seed),
}


def renumbered(order: str, seed: int = 0) -> nk.Interactions:
    """The same log with users and items named in another order, and its lines shuffled."""
    users, items, times = log()
    lines = np.random.default_rng(seed).permutation(len(users))
    make = ORDERS[order]
    return nk.Interactions.from_pairs(make(M)[users][lines], make(N)[items][lines], timestamps=times[lines])


def popular_share(parts: Parts) -> float:
    """The share of the test pairs among the ten most popular items of training."""
    counts = np.bincount(parts.train.indices, minlength=N)
    return float(np.isin(parts.test.indices, np.argsort(-counts)[:10]).mean())


@each("split", SPLITS)
def test_a_split_holds_out_alike(split: str) -> None:
    figures = {
        order: [popular_share(SPLITS[split](renumbered(order, seed), seed)) for seed in range(6)] for order in NAMED
    }
    spread = max(np.std(values) for values in figures.values())
    means = {order: np.mean(values) for order, values in figures.items()}
    assert np.ptp(list(means.values())) <= 1.5 * spread + 1e-9, f"{means}, standard deviation {spread:.3f}"


def test_baselines_rank_alike() -> None:
    def figure(baseline: Callable[..., tuple[np.ndarray, np.ndarray]], order: str) -> list[float]:
        parts = nk.data.split_by_time(renumbered(order), valid=0, test=0.2)
        return [list_metrics(baseline(parts.train, 7, random_state=s)[1], parts.test, k=7)["ndcg@7"] for s in range(3)]

    for baseline in map(vars(baselines).get, ("popularity", "item_knn", "graph_filter", "sparse_ease")):
        found = {order: figure(baseline, order) for order in NAMED}
        spread = max(np.std(values) for values in found.values())
        means = {order: np.mean(values) for order, values in found.items()}
        assert np.ptp(list(means.values())) <= 1.5 * spread + 1e-9, f"{means}, standard deviation {spread:.4f}"


@each("kind", ["reals", "integers", "copies", "all equal"])
def test_ranking_metrics_are_exactly_equal(kind: str) -> None:
    rng = np.random.default_rng(3)
    P, Q = rng.standard_normal((M, 4)), rng.standard_normal((N, 4))
    if kind == "integers":
        P, Q = P.round(), Q.round()
    elif kind == "copies":
        Q = Q[np.arange(N) % 5]
    elif kind == "all equal":
        Q = np.ones_like(Q)
    parts = nk.data.split_by_time(renumbered("same"), valid=0, test=0.2)
    seen, test = parts.train.matrix(), parts.test.matrix()
    first = ranking_metrics(P, Q, test, seen=seen, k=(3, 20, 100))
    for order in ("backwards", "permuted"):
        users, items = ORDERS[order](M), ORDERS[order](N)
        again = ranking_metrics(P[users], Q[items], test[users][:, items], seen=seen[users][:, items], k=(3, 20, 100))
        assert again == pytest.approx(first, abs=1e-9), order


def test_graded_values_are_means_over_all_orders_of_equal_scores() -> None:
    rng = np.random.default_rng(6)
    scores = np.sort(rng.integers(0, 4, (30, 12)), axis=1)
    grades = sp.csr_matrix(rng.integers(0, 4, (30, 12)) * (rng.random((30, 12)) < 0.4) + np.eye(30, 12, dtype=int))
    grades = grades[np.diff(grades.indptr) > 0]
    scores = scores[: grades.shape[0]]
    found = rng.permuted(np.tile(np.arange(12), (len(scores), 1)), axis=1)
    drawn = []
    for _ in range(200):
        order = np.lexsort((rng.random(scores.shape), scores), axis=1)
        drawn.append(graded_values(np.take_along_axis(found, order, axis=1), grades))
    for name, values in graded_values(found, grades, scores).items():
        means = [float(one[name].mean()) for one in drawn]
        error = np.std(means) / len(means) ** 0.5
        assert values.mean() == pytest.approx(np.mean(means), abs=4 * error + 1e-12), name


@each(("kind", "own"), [("bits", False), ("bits", True), ("bytes", False), ("lists", True), ("copies", False)])
def test_recall_by_codes_is_the_mean_over_orders_of_equal_codes(kind: str, own: bool) -> None:
    """Rows sorted by class, and codes of four bits; `Index.search` takes the first rows among equal ones."""
    rng = np.random.default_rng(5)
    X = (2 * rng.normal(size=(6, 8))[np.arange(400) * 6 // 400] + rng.normal(size=(400, 8))).astype(np.float32)
    X, Q, k = X.round() if kind == "copies" else X, X[::10] if own else X[::10] + 1, 10
    lists = {"n_lists": 4} if kind == "lists" else {}
    codes = nk.ITQ(4, random_state=0) if kind == "bits" else nk.ProductQuantizer(2, 4, random_state=0, **lists)
    codes, exact, alone, rescored = codes.fit(X), [], [], []
    for seed in range(3 if own else 12):
        at = np.random.default_rng(seed).permutation(400) if seed else np.arange(400)
        metric = "hamming" if kind == "bits" else "l2"
        index = nk.Index.build(X[at], codes, ids=at, metric=metric, keep_vectors=True)
        rows = np.argsort(at)[::10] if own else None
        truth = exact_neighbors(VectorFile("X", array_rows(X[at])), Q, k, own=at, queries_are=rows)
        alone.append(truth.recall(index.search(Q, k)[1]).mean())
        if seed > 2:
            continue
        found = (FullSearch(index, Q, k, times, at[rows] if own else None) for times in (None, 3))
        means = [[v.mean() for v in each.recalls(truth, [(1, 1), (1, k), (k, k)]).values()] for each in found]
        exact.append(means[0])
        rescored.append(means[1])
    np.testing.assert_allclose(exact, [exact[0]] * 3, rtol=1e-9)
    assert np.ptp(rescored, axis=0)[2] < 0.15, rescored
    if not own:
        assert exact[0][2] == pytest.approx(np.mean(alone[1:]), abs=2 * np.std(alone[1:])), alone


def test_comparisons_are_held_out_alike() -> None:
    """Lines sorted by the first object, and shuffled: each object has the same share of the held-out answers."""
    answers = nk.data.comparisons_from_vectors(np.random.default_rng(5).standard_normal((20, 2)), 2000, random_state=0)
    for by in ("rows", "questions"):
        for order in (np.argsort(answers.indices[:, 0], kind="stable"), np.arange(2000)[::-1]):
            shares = [
                nk.data.split_comparisons(answers.take(order), by=by, random_state=seed)[1].indices[:, 0].mean()
                for seed in range(5)
            ]
            assert np.mean(shares) == pytest.approx(answers.indices[:, 0].mean(), abs=0.6)
