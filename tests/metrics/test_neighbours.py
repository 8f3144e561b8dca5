"""Neighbours kept, where rows lie at one distance: beside counting the slow way, query by query."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import nearkin as nk
from nearkin.metrics.neighbours import ExactNeighbours, drawn_order, with_ties
from nearkin.metrics.retrieval import without_self
from tests.covering import each


def tied_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.integers(0, 3, size=(300, 8)).astype(np.float32)
    return X, rng.integers(0, 3, size=(25, 8)).astype(np.float32)


def scores(X: np.ndarray, Q: np.ndarray, metric: str) -> np.ndarray:
    """Smaller is nearer; exact for small integers."""
    return ((Q[:, None] - X) ** 2).sum(axis=2) if metric == "l2" else -Q @ X.T


@each("metric", ["l2", "ip"])
@each("k", [1, 10, 300])
def test_it_is_the_most_that_an_exact_list_could_share(rng: np.random.Generator, metric: str, k: int) -> None:
    """All rows nearer than the k-th neighbour, and of those as near as it as many as have a place."""
    X, Q = tied_rows(rng)
    found, shared = np.stack([rng.permutation(len(X))[:k] for _ in Q]), 0
    for far, ids in zip(scores(X, Q, metric), found, strict=True):
        limit = np.sort(far)[k - 1]
        shared += (far[ids] < limit).sum() + min((far[ids] == limit).sum(), k - (far < limit).sum())
    kept = nk.metrics.knn_recall(found, X, Q, metric)
    assert kept == pytest.approx(shared / found.size)
    assert nk.metrics.recall_k_at_k(found, ExactNeighbours.of(X, Q, k, metric).ids, k) <= kept + 1e-12


def test_a_lossless_code_keeps_all_neighbours_whatever_the_order_of_ties(rng: np.random.Generator) -> None:
    X, Q = tied_rows(rng)
    order = rng.permutation(len(X))
    found = order[nk.Index.build(X[order]).search(Q, 10)[1]]
    assert nk.metrics.knn_recall(found, X, Q) == 1
    assert nk.metrics.recall_k_at_k(found, nk.Index.build(X).search(Q, 10)[1], 10) < 0.95


def test_the_lists_stay_exact_at_every_depth(rng: np.random.Generator) -> None:
    """Of any depth n, the rows nearer than the n-th neighbour and as many at its distance as have a place."""
    X, Q = tied_rows(rng)
    exact = ExactNeighbours.of(X, Q, 40)
    found = np.stack([rng.permutation(len(X))[:60] for _ in Q])
    found[:, -5:] = -1  # places that stayed empty
    far, cuts = scores(X, Q, "l2"), [(1, 20), (7, 60), (40, 60)]
    for (n, depth), shares in exact.recalls(found, cuts).items():
        for share, distances, ids in zip(shares, far, found[:, :depth], strict=True):
            limit, own = np.sort(distances)[n - 1], distances[ids[ids >= 0]]
            places = n - (distances < limit).sum()
            assert share == pytest.approx(((own < limit).sum() + min((own == limit).sum(), places)) / n)


@each("tied", [False, True])
def test_recalls_are_means_over_all_orders_of_equal_scores(rng: np.random.Generator, tied: bool) -> None:
    X, Q = tied_rows(rng)
    if not tied:
        X = X + 0.01 * rng.normal(size=X.shape).astype(np.float32)
    exact, cuts = ExactNeighbours.of(X, Q, 8), [(1, 1), (1, 5), (8, 8), (3, 12)]
    levels = np.sort(rng.integers(0, 4, (len(Q), 30)), axis=1)
    others = [np.setdiff1d(rng.permutation(len(X))[:60], near)[:22] for near in exact.ids]
    found = rng.permuted(np.hstack([others, exact.ids]), axis=1)
    drawn = []
    for _ in range(150):
        order = np.lexsort((rng.random(levels.shape), levels), axis=1)
        drawn.append(exact.recalls(np.take_along_axis(found, order, axis=1), cuts))
    for cut, values in exact.recalls(found, cuts, levels).items():
        means = [one[cut].mean() for one in drawn]
        assert values.mean() == pytest.approx(np.mean(means), abs=4 * np.std(means) / len(means) ** 0.5), cut


def test_answers_go_on_to_the_last_row_of_equal_score(rng: np.random.Generator) -> None:
    levels = np.sort(rng.integers(0, 9, (40, 200)), axis=1).astype(np.float32)
    seen = []
    for some, near, ids in with_ties(
        lambda some, c: (levels[some, :c], np.tile(np.arange(c), (len(some), 1))), 40, 10, 200
    ):
        assert (near == levels[some, : near.shape[1]]).all()
        assert (near.shape[1] == 200) or (near[:, -1] > near[:, 9]).all()
        again = drawn_order(near, ids, some)
        assert (np.take_along_axis(near, again, axis=1) == near).all()
        seen += some.tolist()
    assert sorted(seen) == list(range(40))


def test_near_ties_of_large_rows_are_settled_exactly() -> None:
    """float32 distances of these rows from far off the middle are wrong by more than the rows differ."""
    X = 1000 + np.arange(64)[:, None] * np.array([[0.01, 0.0]])
    X = X.astype(np.float32)
    found = np.arange(10)[None]
    assert nk.metrics.knn_recall(found, X, X[:1]) == 1


@each(
    ("retrieved", "ids", "error", "words"),
    [
        ([[0.5]], None, ValueError, "row numbers"),
        ([["a"]], None, ValueError, "give the ids"),
        ([[0], [1]], None, ValueError, "one row for each of the 1"),
        ([[9]], None, ValueError, "retrieved holds 9, and X has the vectors 0 to 2"),
        ([[-2]], None, ValueError, "retrieved holds -2"),
        ([[7]], [4, 5], ValueError, "one id for each vector"),
        ([[7]], [4, 4, 5], ValueError, "each once"),
        ([[7]], [4, 5, 6], ValueError, "which ids lacks"),
        ([["7"]], [1, 2, 3], TypeError, "ids must be of one type"),
    ],
)
def test_what_cannot_be_judged(retrieved: Any, ids: list[int] | None, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nk.metrics.knn_recall(retrieved, np.eye(3), np.eye(3)[:1], ids=ids)


@each(("ids", "nothing"), [(["a", "b", "c"], ""), ([7, 8, 9], -1)])
def test_a_place_without_a_row_keeps_no_neighbour(ids: list[str] | list[int], nothing: str | int) -> None:
    """Whichever row is the nearest: nothing found is no row at all."""
    X = np.eye(3)
    assert nk.metrics.knn_recall([[nothing]] * 3, X, X, ids=ids) == 0
    for names in (np.array(["a", "b", "c"], object), pd.Series(["a", "b", "c"], dtype="string")):
        assert nk.metrics.knn_recall([["b"]], X, X[1:2], ids=names) == 1


def test_a_row_leaves_its_own_list() -> None:
    """The second row is not in its list, which loses its last place."""
    found = without_self(np.array([[4, 0, 7], [5, 6, 2], [9, 8, 2]]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(found, [[4, 7], [5, 6], [9, 8]])
