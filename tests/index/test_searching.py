"""Codes of sums are searched from tables, or decoded once for all queries, as FAISS finds them by one for each."""

import numpy as np

from nearkin import Index, ProductQuantizer
from nearkin.index import code_tables, searching
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from tests.covering import each

X = np.random.default_rng(0).normal(size=(900, 12)).astype(np.float32)
MADE = {
    "flat": ResidualQuantizer(3, 16, max_iter=1, random_state=0),
    "bytes": ResidualQuantizer(2, 256, max_iter=1, random_state=0),
    "odd bits": ResidualQuantizer(2, 8, max_iter=1, random_state=0),
    "product": ProductResidualQuantizer(2, 2, 16, max_iter=1, random_state=0),
    "lists": ResidualQuantizer(3, 16, n_lists=7, max_iter=1, random_state=0),
    "product lists": ProductResidualQuantizer(2, 2, 16, n_lists=7, max_iter=1, random_state=0),
}


@each("kind", MADE)
def test_the_slow_twin_is_faiss(kind, monkeypatch):
    """One query and eleven by tables, sixty by decoded rows; neighbours at one distance may change places."""
    monkeypatch.setattr(code_tables, "_DECODED", 12 * 70)
    monkeypatch.setattr(searching, "_BLOCK", 2000)
    monkeypatch.setattr(searching, "_MANY", 20)
    index = Index.build(X, MADE[kind], n_probe=3 if "lists" in kind else None)
    few = [X[:1] + 0.1, X[5:16] + 0.1]
    for Q in few if kind in ("bytes", "odd bits") else [*few, X[:60] + 0.1]:
        (scores, found), (expected, ids) = index.search(Q, 10), index.faiss_index.search(Q, 10)
        np.testing.assert_allclose(scores, expected, rtol=1e-4)
        assert (found == ids).mean() > (0.98 if len(Q) == 60 else 0.95)


def test_queries_of_a_fast_scan_at_a_time_change_no_result(monkeypatch):
    index = Index.build(X, ProductQuantizer(4, 16, n_lists=7, max_iter=1, random_state=0), n_probe=3)
    expected = index.search(X[:80], 5)
    monkeypatch.setattr(searching, "_LISTS_TABLES", 1)
    for one, other in zip(index.search(X[:80], 5), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_list_that_few_queries_visit_leaves_places_empty():
    index = Index.build(X[:40], MADE["lists"].fit(X), n_probe=1)
    scores, ids = index.search(X, 30)
    assert (ids == -1).any()
    assert np.isinf(scores[ids < 0]).all()
    np.testing.assert_array_equal((ids >= 0).sum(1) > 0, (index.faiss_index.search(X, 30)[1] >= 0).sum(1) > 0)


def test_long_rows_in_float64_are_divided_before_they_lose_their_range() -> None:
    np.testing.assert_allclose(searching.normalised([[3e60, 4e60], [0.0, 0.0]]), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert searching.normalised(np.array([[3, 4]])).dtype == np.float32
