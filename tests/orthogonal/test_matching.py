import numpy as np
import pytest
import torch

from nearkin.orthogonal import greedy_matching, max_weight_matching, random_matching
from tests.covering import each
from tests.reference.givens import all_matchings, greedy_matching_by_sorting

FUNCTIONS = [greedy_matching, max_weight_matching]


def symmetric(n: int, rng: np.random.Generator, levels: int | None = None) -> np.ndarray:
    W = rng.integers(levels, size=(n, n)).astype(float) if levels else rng.random((n, n))
    return np.triu(W, 1) + np.triu(W, 1).T


def weight(W, pairs) -> float:
    return float(W[pairs[:, 0], pairs[:, 1]].sum())


@each("n", [1, 2, 3, 8, 17, 64])
@each("levels", [None, 3, 1])
def test_greedy_is_the_sorted_greedy_with_ties_by_index(n, levels, rng):
    W = symmetric(n, rng, levels)
    before, expected = W.copy(), greedy_matching_by_sorting(W)
    np.testing.assert_array_equal(greedy_matching(W), expected)
    np.testing.assert_array_equal(greedy_matching(torch.from_numpy(W)).numpy(), expected)
    np.testing.assert_array_equal(W, before)
    if levels:
        np.testing.assert_array_equal(greedy_matching(W.astype(int)), expected)


@each("n", [1, 2, 7, 12])
def test_a_maximum_has_disjoint_sorted_pairs_and_leaves_at_most_one_out(n, rng):
    pairs = max_weight_matching(symmetric(n, rng))
    assert pairs.shape == (n // 2, 2)
    assert len(np.unique(pairs)) == 2 * (n // 2)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (np.diff(pairs[:, 0]) > 0).all()


@each("seed", range(5))
def test_maximum_is_the_best_of_all_and_the_others_are_ordered_below(seed):
    W = symmetric(8, np.random.default_rng(seed))
    best = max(sum(W[i, j] for i, j in matching) for matching in all_matchings(list(range(8))))
    assert weight(W, max_weight_matching(W)) == pytest.approx(best)
    greedy = weight(W, greedy_matching(W))
    assert best / 2 <= greedy <= best + 1e-9, f"greedy {greedy}, maximum {best}"


def test_random_matching_by_every_generator():
    for generator in (3, np.random.default_rng(3), torch.Generator().manual_seed(3)):
        pairs = np.asarray(random_matching(9, generator))
        assert len(np.unique(pairs)) == 8
        assert (pairs[:, 0] < pairs[:, 1]).all()
    np.testing.assert_array_equal(random_matching(10, 5), random_matching(10, 5))
    seen = {tuple(map(tuple, random_matching(4, s))) for s in range(60)}
    assert len(seen) == 3, "all three matchings of four axes appear"


@each("function", FUNCTIONS)
def test_batches_and_tensors(function, rng):
    W = np.stack([symmetric(6, rng) for _ in range(4)]).reshape(2, 2, 6, 6)
    pairs = function(W)
    assert pairs.shape == (2, 2, 3, 2)
    np.testing.assert_array_equal(pairs[1, 0], function(W[1, 0]))
    tensor = function(torch.from_numpy(W[0, 1]))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), pairs[0, 1])


@each("function", FUNCTIONS)
def test_bad_weights(function, rng):
    W = symmetric(4, rng)
    for given, error, match in (
        (W[:3], ValueError, "square"),
        (np.triu(W), ValueError, "not symmetric"),
        (W.tolist(), TypeError, "list"),
    ):
        with pytest.raises(error, match=match):
            function(given)
    with pytest.raises(ValueError, match="n is 0"):
        random_matching(0)
    torch.testing.assert_close(
        function(weights := torch.as_tensor(symmetric(4, rng))),
        function(weights.requires_grad_()),  # without a warning
    )


@each("function", FUNCTIONS)
@each("value", [np.nan, np.inf, -np.inf])
@each("dtype", [np.float32, np.float64])
def test_weights_that_are_not_finite_do_not_run_off_the_row(function, value, dtype, rng):
    for n in (2, 5, 64):
        W = symmetric(n, rng).astype(dtype)
        W[0, 1] = W[1, 0] = value
        for given in (W, np.full_like(W, value), torch.from_numpy(W)):
            for check_input in (True, False):
                with pytest.raises(ValueError, match="NaN or infinity"):
                    function(given, check_input=check_input)


def test_asymmetric_weights_without_a_locally_heaviest_pair_are_refused():
    W = np.array([[0.0, 3, 2, 1], [1, 0, 3, 2], [3, 1, 0, 2], [1, 2, 3, 0]])
    with pytest.raises(ValueError, match="not symmetric"):
        greedy_matching(W, check_input=False)
