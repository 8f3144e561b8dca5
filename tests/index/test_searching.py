"""One decoding for all queries finds what FAISS finds by one for each."""

import faiss
import numpy as np
import pytest

from nearkin import Index
from nearkin.index import searching
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer

X = np.random.default_rng(0).normal(size=(900, 12)).astype(np.float32)
MADE = {
    "flat": ResidualQuantizer(3, 16, max_iter=1, random_state=0),
    "product": ProductResidualQuantizer(2, 2, 16, max_iter=1, random_state=0),
    "lists": ResidualQuantizer(3, 16, n_lists=7, max_iter=1, random_state=0),
    "product lists": ProductResidualQuantizer(2, 2, 16, n_lists=7, max_iter=1, random_state=0),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("queries", [1, 60])
def test_the_slow_twin_is_faiss(kind, queries, monkeypatch):
    monkeypatch.setattr(searching, "_BLOCK", 2000)
    index = Index.build(X, MADE[kind], n_probe=3 if "lists" in kind else None)
    Q = X[:queries] + 0.1
    (scores, found), (expected, ids) = index.search(Q, 10), index.faiss_index.search(Q, 10)
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    assert (found == ids).mean() > 0.98  # neighbours at one distance may change places


def test_rows_far_from_the_origin_are_found_by_products_too():
    """|q|^2 - 2 qy + |y|^2 in float32 is all rounding at 1e4: rows and queries are compared about the rows' middle."""
    far = X + 1e4
    index = Index.build(far, ResidualQuantizer(3, 16, max_iter=1, random_state=0))
    ids = index.faiss_index.search(far[:60], 10)[1]
    assert (index.search(far[:60], 10)[1] == ids).mean() > 0.9


def test_rows_are_decoded_once_for_all_queries(monkeypatch):
    index = Index.build(X, MADE["lists"], n_probe=7)
    monkeypatch.setattr(faiss.IndexIVFResidualQuantizer, "search", None)
    assert index.search(X[:60], 3)[1].shape == (60, 3)


def test_a_list_that_few_queries_visit_leaves_places_empty():
    index = Index.build(X[:40], MADE["lists"].fit(X), n_probe=1)
    scores, ids = index.search(X, 30)
    assert (ids == -1).any()
    assert np.isinf(scores[ids < 0]).all()
    np.testing.assert_array_equal((ids >= 0).sum(1) > 0, (index.faiss_index.search(X, 30)[1] >= 0).sum(1) > 0)


def test_long_rows_in_float64_are_divided_before_they_lose_their_range() -> None:
    np.testing.assert_allclose(searching.normalised([[3e60, 4e60], [0.0, 0.0]]), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert searching.normalised(np.array([[3, 4]])).dtype == np.float32


@pytest.mark.parametrize("n_lists", [0, 4])
def test_tables_answer_alike_on_any_number_of_threads(n_lists: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(600, 16)).astype(np.float32)
    index = Index.build(X, ResidualQuantizer(3, 16, n_lists=n_lists, max_iter=1, random_state=0), n_probe=3)
    before, found = faiss.omp_get_max_threads(), []
    for threads in (1, 3):
        faiss.omp_set_num_threads(threads)
        try:
            found.append(index.search(X[:7], 5))
        finally:
            faiss.omp_set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
