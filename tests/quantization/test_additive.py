"""The rounds of the additive codebooks."""

from itertools import pairwise

import numpy as np
import pytest

from nearkin.quantization.additive import decode, learn, refit, relaxed


def test_rounds_are_numbered_from_one_and_the_last_is_the_best(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    seen: list[int] = []
    errors: list[float] = []

    def keep(step: int, record: dict) -> None:
        seen.append(step)
        errors.append(record["distortion"])
        assert record["total"] == 3

    learn(X, 2, 16, rounds=3, seed=0, callback=keep)
    assert seen == [1, 2, 3]
    assert errors[0] >= errors[2] > 0
    assert errors[1] >= errors[2]


def test_rows_move_by_the_spread_of_the_error_and_less_as_rounds_are_done(rng: np.random.Generator) -> None:
    X = (rng.standard_normal((4000, 3)) * [1, 2, 4]).astype(np.float32)
    codebooks = rng.standard_normal((2, 16, 3)).astype(np.float32)
    codes = rng.integers(0, 16, (4000, 2)).astype(np.int32)
    error = (X - decode(codes, codebooks)).std(axis=0)
    for done in (0.0, 0.75):
        moved = relaxed(X, codes, codebooks, done, rng) - X
        np.testing.assert_allclose(moved.std(axis=0), np.sqrt(1 - done) * error, rtol=0.1)
        np.testing.assert_allclose(moved.mean(axis=0), 0, atol=0.1 * error.max())
    assert np.array_equal(relaxed(X, codes, codebooks, 1.0, rng), X)


@pytest.mark.parametrize("n", [40, 400])
def test_one_codebook_is_refitted_to_the_posterior_means_of_its_centroids(rng: np.random.Generator, n: int) -> None:
    """`refit`'s formula term by term: the error's variance over n - K rows, a quarter of them at least."""
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
        C = refit(X, codes, C, shrink=0)
        errors.append(np.square(X - decode(codes, C)).sum())
    assert all(after <= before * (1 + 1e-5) for before, after in pairwise(errors))
    assert errors[-1] == pytest.approx(best, rel=1e-4)
