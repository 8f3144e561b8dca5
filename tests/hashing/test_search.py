"""Search helpers: refusals, cut k, and re-ranking."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing.bits import asymmetric_index, binary_index, hamming_search, nearest_candidates


def test_k_is_cut_at_the_number_of_codes(rng):
    codes = rng.integers(0, 256, (5, 2), dtype=np.uint8)
    distances, ids = hamming_search(codes[:1], codes, 50)
    assert distances.shape == ids.shape == (1, 5)
    assert (distances[0, 0], ids[0, 0]) == (0, 0)


@pytest.mark.parametrize(
    ("codes", "error", "message"),
    [
        (np.zeros((3, 2)), TypeError, "codes has dtype float64; it must be uint8"),
        (np.zeros((3, 4), np.uint8), ValueError, r"codes has shape \(3, 4\); it must be uint8 \(n, 2\)"),
        (np.zeros((0, 2), np.uint8), ValueError, "n >= 1"),
    ],
)
def test_bad_codes_are_named(codes, error, message):
    with pytest.raises(error, match=message):
        hamming_search(np.zeros((1, 2), np.uint8), codes, 1)


def test_inverted_lists_need_codes_to_train_on():
    with pytest.raises(ValueError, match="pass codes=encode"):
        binary_index(2, n_lists=4)
    with pytest.raises(ValueError, match="n_lists is 9"):
        binary_index(2, n_lists=9, codes=np.zeros((3, 2), np.uint8))


def test_asymmetric_index_holds_every_sign_pattern():
    index = asymmetric_index(8)
    index.add_sa_codes(np.arange(256, dtype=np.uint8)[:, None])
    query = 2.0 ** np.arange(8, dtype=np.float32)  # the inner product spells the byte
    scores, ids = index.search(query[None], 256)
    np.testing.assert_array_equal(ids[0], np.arange(256)[::-1])
    np.testing.assert_allclose(scores[0], 2 * ids[0] - 255)


def test_rescore_orders_candidates_by_distance():
    vectors = np.array([[0.0], [5.0], [1.0], [9.0]])
    distances, ids = nearest_candidates(np.array([[4.0]]), vectors, np.array([[3, 0, 2]]), 2)
    np.testing.assert_array_equal(ids, [[2, 0]])
    np.testing.assert_array_equal(distances, [[9.0, 16.0]])


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("oversample", 0)])
def test_bad_counts_are_named(rng, name, value):
    X = rng.standard_normal((30, 6))
    hasher = nk.ITQ(4, random_state=0).fit(X)
    arguments = {"k": 2, "vectors": X, name: value}
    with pytest.raises(ValueError, match=f"{name} is 0"):
        hasher.search(X[:2], hasher.encode(X), **arguments)


def test_vectors_of_another_width_are_named(rng):
    X = rng.standard_normal((30, 6))
    hasher = nk.ITQ(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="vectors has 5 columns; it must have 6"):
        hasher.search(X[:2], hasher.encode(X), 2, vectors=X[:, :5])


def test_the_one_nearest_can_be_asked_for_and_none_cannot(rng):
    X = rng.standard_normal((30, 8)).astype(np.float32)
    hasher = nk.PCAHash(8).fit(X)
    distances, ids = hasher.search(X[:4], hasher.encode(X), k=1)
    assert distances.shape == ids.shape == (4, 1)
    assert (distances == 0).all()
    with pytest.raises(ValueError, match="k is 0; it must be an integer of at least 1"):
        hasher.search(X[:4], hasher.encode(X), k=0)
