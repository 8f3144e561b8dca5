"""Rows within a radius as FAISS finds them, and neighbours of rows that are in the index."""

from itertools import pairwise

import faiss
import numpy as np
import pytest

import nearkin as nk
from tests.covering import each

X, Q = (np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32) for seed, n in ((0, 300), (1, 6)))


@each("metric", ["l2", "ip", "cosine", "hamming"])
def test_rows_within_a_radius_are_those_of_faiss(metric: str) -> None:
    """A row at the limit itself is not within, by FAISS's rule and for bits too."""
    index = nk.Index.build(X, nk.ITQ(8, random_state=0) if metric == "hamming" else None, metric=metric)
    asked = Q if metric != "cosine" else Q / np.linalg.norm(Q, axis=1, keepdims=True)
    if metric == "hamming":
        asked = index.quantizer.encode(Q)
    for r in {"l2": (4.0, 1e-9, 1e9), "ip": (3.0, -1e9), "cosine": (0.5, 1.0), "hamming": (0, 1, 3, 9)}[metric]:
        limits, scores, ids = index.search_radius(Q, r)
        expected = index.faiss_index.range_search(asked, r)
        np.testing.assert_array_equal(limits, expected[0])
        for first, last in pairwise(limits):
            assert set(ids[first:last]) == set(expected[2][first:last])
            np.testing.assert_allclose(np.sort(scores[first:last]), np.sort(expected[1][first:last]), atol=1e-5)
            assert (np.diff(scores[first:last]) * (1 if metric in ("l2", "hamming") else -1) >= 0).all()


@each("how", [{"oversample": 8}, {"oversample": 8, "among": np.arange(200)}, {"asymmetric": True}])
def test_a_radius_limits_the_scores_of_the_search_that_is_asked_for(how: dict[str, object]) -> None:
    bits = "asymmetric" in how
    quantizer = nk.ITQ(8, random_state=0) if bits else nk.ProductQuantizer(4, 16, random_state=0)
    index = nk.Index.build(X, quantizer, metric="hamming" if bits else "l2", keep_vectors=True)
    scores, ids = index.search(Q, 300, **how)
    r = float(np.sort(scores[np.isfinite(scores)])[100]) + 1e-4
    near = (scores > r) if bits else (scores < r)
    limits, found, names = index.search_radius(Q, r, **how)
    np.testing.assert_array_equal(np.diff(limits), near.sum(axis=1))
    np.testing.assert_allclose(found, scores[near], atol=1e-5)
    assert set(names) == set(ids[near])


def test_a_radius_of_an_index_without_rows_and_one_that_is_no_number() -> None:
    assert [part.tolist() for part in nk.Index.empty(8).search_radius(Q, 1.0)] == [[0] * 7, [], []]
    for r in ("1", None, np.nan, 1j):
        with pytest.raises(ValueError, match="it must be a number"):
            nk.Index.empty(8).search_radius(Q, r)


def test_neighbours_of_rows_are_found_without_them_and_with_equal_ones() -> None:
    rows, names = np.concatenate([X, X[:2]]), [f"row {i}" for i in range(302)]
    index = nk.Index.build(rows, nk.ProductQuantizer(4, 64, random_state=0), names)
    ids = index.similar(["row 1", "row 0", "row 1"], 3)[1]
    assert ids[:, 0].tolist() == ["row 301", "row 300", "row 301"]
    assert (index.similar("row 1", 1, exclude=["row 301"])[1] == ids[0, 1]).all()
    assert index.similar(["row 1", "row 0"], 301, among=["row 1"])[1][:, 0].tolist() == ["", "row 1"]
    assert index.similar([], 3)[1].shape == (0, 3)
    for call in (index.similar, index.vectors):
        with pytest.raises(ValueError, match=r"1 id .* 'row 302'"):
            call(["row 1", "row 302"])


def test_decoded_rows_are_those_that_faiss_reconstructs() -> None:
    index = nk.Index.build(X, nk.ProductQuantizer(4, 16, n_lists=4, random_state=0))
    faiss.extract_index_ivf(index.faiss_index).make_direct_map()
    np.testing.assert_allclose(index.vectors([7, 3]), index.faiss_index.reconstruct_batch([7, 3]), atol=1e-5)
    with pytest.raises(ValueError, match="bits cannot be decoded"):
        nk.Index.build(X, nk.ITQ(8, random_state=0), metric="hamming").vectors([1])


def test_only_ids_of_rows_are_in_an_index() -> None:
    index = nk.Index.build(X[:3], ids=[4, 5, 6])
    assert [id in index for id in (4, np.int32(5), 7, "4", 4.0, None, True, [4])] == [True, True, *[False] * 6]
    assert "a" in nk.Index.build(X[:3], ids=list("abc"))
    assert 2 in nk.Index.build(X[:3])
    assert 2 not in nk.Index.build(X[:3]).remove([2])
