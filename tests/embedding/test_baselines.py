"""Popularity and item-kNN against their definitions on dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

import nearkin as nk
from benchmarks.two_tower.linear_rivals import graph_filter as exact_filter
from nearkin.embedding import graph_filter, item_knn, popularity, sparse_ease
from nearkin.embedding.baselines import _shuffled, _similar_items
from tests.covering import each

PAIRS = nk.Interactions.from_matrix(sp.random(40, 30, density=0.2, random_state=0, format="csr"))
X = (PAIRS.matrix().toarray() > 0).astype(float)


def check(scores: np.ndarray, numbers: np.ndarray, wanted: np.ndarray) -> None:
    """Best first, and as good as the dense scores' best; ties may come in any order."""
    for row in range(40):
        order = np.sort(wanted[row][np.isfinite(wanted[row])])[::-1][: numbers.shape[1]]
        kept = numbers[row][numbers[row] >= 0]
        assert len(kept) == len(set(kept.tolist())) == len(order)
        np.testing.assert_allclose(wanted[row][kept], order, rtol=1e-5)
        np.testing.assert_allclose(scores[row, : len(kept)], order, rtol=1e-5)


def test_popularity_counts_pairs() -> None:
    wanted = np.tile(X.sum(0), (40, 1))
    wanted[X > 0] = -np.inf
    check(*popularity(PAIRS, 8), wanted)


@each("n_neighbours", [5, 30])
def test_item_knn_adds_up_votes(n_neighbours: int) -> None:
    cosines = X.T @ (X / X.sum(1, keepdims=True)) / np.sqrt(np.maximum(np.outer(X.sum(0), X.sum(0)), 1e-9))
    np.fill_diagonal(cosines, 0)
    kept, places = np.zeros_like(cosines), np.argsort(_shuffled(PAIRS, 0)[1])
    for j in range(30):
        best = np.lexsort((places, -cosines[j]))[:n_neighbours]
        kept[j, best] = cosines[j, best]
    wanted = X @ kept
    wanted[(X > 0) | (wanted <= 0)] = -np.inf
    check(*item_knn(PAIRS, 8, n_neighbours=n_neighbours), wanted)


def test_the_graph_filter_is_the_exact_one_where_all_neighbours_are_kept() -> None:
    assert [set(row) for row in graph_filter(PAIRS, 8)[1]] == [set(row) for row in exact_filter(PAIRS, 8)]


@each("n_neighbours", [4, 29])
def test_sparse_ease_regresses_every_right_on_its_neighbours(n_neighbours: int) -> None:
    G = X.T @ X
    cosines = G / np.sqrt(np.maximum(np.outer(X.sum(0), X.sum(0)), 1e-9))
    np.fill_diagonal(cosines, 0)
    shuffled, order = _shuffled(PAIRS, 0)  # which of equal neighbours are kept is open
    kept = _similar_items(shuffled, n_neighbours, 1.0).toarray()[np.ix_(np.argsort(order), np.argsort(order))] > 0
    largest = np.sort(cosines, 1)[:, -n_neighbours:].sum(1)
    np.testing.assert_allclose((cosines * kept).sum(1), largest, rtol=1e-5)
    B = np.zeros((30, 30))
    for j in range(30):
        near = np.flatnonzero(kept[j])
        B[near, j] = np.linalg.solve(G[np.ix_(near, near)] + 5.0 * np.eye(len(near)), G[near, j])
    wanted = X @ B
    wanted[(X > 0) | (wanted <= 0)] = -np.inf
    check(*sparse_ease(PAIRS, 8, n_neighbours=n_neighbours, ridge=5.0), wanted)


def test_rights_without_neighbours_have_no_score() -> None:
    pairs = nk.Interactions.from_pairs([0, 1, 1, 2], [0, 1, 2, 3])
    assert sparse_ease(pairs, 2)[1].tolist() == [[-1, -1], [-1, -1], [-1, -1]]


def test_a_ridge_too_small_for_equal_rights_is_refused() -> None:
    pairs = nk.Interactions.from_pairs([0, 0, 0, 1, 1, 1, 2, 2, 2], 3 * [0, 1, 2])
    sparse_ease(pairs, 2)
    with pytest.raises(ValueError, match="ridge is 1e-300, too small"):
        sparse_ease(pairs, 2, ridge=1e-300)
