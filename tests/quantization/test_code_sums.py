"""Refits of additive codebooks from sums over rows and codes."""

from itertools import pairwise

import numpy as np
import pytest

from nearkin.quantization.additive import decode
from nearkin.quantization.code_sums import CodeSums


def refit(X: np.ndarray, codes: np.ndarray, C: np.ndarray, shrink: float = 1.0) -> np.ndarray:
    error = np.square(X - decode(codes, C)).mean(axis=0, dtype=np.float64)
    return CodeSums.of(X, codes, C.shape[1]).refit(C, error, shrink)


@pytest.mark.parametrize("n", [40, 400])
def test_one_codebook_is_refitted_to_the_posterior_means_of_its_centroids(rng: np.random.Generator, n: int) -> None:
    """The formula term by term: the error's variance over n - K rows, a quarter of them at least."""
    K, w = 32, 3
    codes, C = rng.integers(0, K - 1, (n, 1)), (3 * rng.standard_normal((1, K, w))).astype(np.float32)
    X = (C[0][codes[:, 0]] + rng.standard_normal((n, w)) * [1.0, 0.1, 30.0]).astype(np.float32)
    error = (X - C[0][codes[:, 0]]).astype(float)
    for axis in range(w):
        noise = (error[:, axis] ** 2).sum() / max(n - K, n / 4)
        rows = [X[codes[:, 0] == k, axis].astype(float) for k in range(K)]
        spread = sum(len(of) / n * of.mean() ** 2 for of in rows if len(of)) - K / n * noise
        weight = noise / max(spread, 1e-3 * noise)
        found = refit(X, codes, C)[0][:, axis]
        for k, of in enumerate(rows):
            wanted = of.sum() / (len(of) + weight) if len(of) else C[0, k, axis]
            assert found[k] == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_refitting_without_shrinking_ends_at_the_least_squares_codebooks(rng: np.random.Generator) -> None:
    n, M, K, w = 60, 3, 4, 2
    X = rng.standard_normal((n, w)).astype(np.float32)
    codes, C = rng.integers(0, K, (n, M)), rng.standard_normal((M, K, w)).astype(np.float32)
    B = np.zeros((n, M * K))
    B[np.arange(n)[:, None], codes + K * np.arange(M)] = 1
    best = np.square(X - B @ np.linalg.lstsq(B, X, rcond=None)[0]).sum()
    errors = [np.square(X - decode(codes, C)).sum()]
    for _ in range(10):
        C = refit(X, codes, C, 0)
        errors.append(np.square(X - decode(codes, C)).sum())
    assert all(after <= before * (1 + 1e-5) for before, after in pairwise(errors))
    assert errors[-1] == pytest.approx(best, rel=1e-4)


def test_older_sums_count_as_often_as_they_are_weighed(rng: np.random.Generator) -> None:
    """Half of the older sums: each older row is half a row."""
    X, codes = rng.standard_normal((40, 3)).astype(np.float32), rng.integers(0, 4, (40, 2))
    twice = CodeSums.of(X[:20], codes[:20], 4).after(CodeSums.of(X[20:], codes[20:], 4), 2.0)
    copied = CodeSums.of(np.vstack([X, X[20:]]), np.vstack([codes, codes[20:]]), 4)
    np.testing.assert_allclose(twice.cells.sums, copied.cells.sums, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(twice.cells.counts, copied.cells.counts)
    np.testing.assert_array_equal(twice.pairs, copied.pairs)
    assert twice.n == 60


def test_a_refit_of_some_columns_is_that_of_all_in_these_columns(rng: np.random.Generator) -> None:
    """The rounds refit the leading axes only; the refit of all axes is the slow twin."""
    X, codes = rng.standard_normal((300, 6)).astype(np.float32), rng.integers(0, 8, (300, 3))
    C, columns = rng.standard_normal((3, 8, 6)).astype(np.float32), np.array([0, 1, 2, 5])
    error = np.square(X - decode(codes, C)).mean(axis=0, dtype=np.float64)
    sums = CodeSums.of(X, codes, 8)
    found = sums.only(columns).refit(np.ascontiguousarray(C[:, :, columns]), error[columns], 0.25, 2)
    np.testing.assert_allclose(found, sums.refit(C, error, 0.25, 2)[:, :, columns], rtol=1e-4, atol=1e-5)
