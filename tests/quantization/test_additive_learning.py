"""The rounds of the additive codebooks."""

import numpy as np
import pytest

from nearkin.quantization.additive_learning import Sums, learn
from nearkin.quantization.additive_part import SHARE


@pytest.mark.parametrize("splits", [1, 2])
def test_rounds_are_numbered_from_one_and_rows_as_they_are_get_better(rng: np.random.Generator, splits: int) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    seen: list[int] = []
    errors: list[float] = []

    def keep(step: int, record: dict) -> None:
        seen.append(step)
        errors.append(record["distortion"])
        assert record["total"] == 4

    wanted = Sums(splits, 2, 16, rounds=4, beam_size=4, smoothing=0.0, ranking=False)
    R, codebooks, metric, share = learn(X, np.eye(8, dtype=np.float32), splits > 1, wanted, 0, keep)
    assert seen == [1, 2, 3, 4]
    assert errors[0] > errors[3] > 0
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-5)
    assert codebooks.shape == (splits, 2, 16, 8 // splits)
    assert metric.shape == (splits, 8 // splits, 8 // splits)
    assert share == 0


def test_ranking_adds_a_column_to_each_part(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    wanted = Sums(2, 2, 16, rounds=3, beam_size=4, smoothing=1.0, ranking=True)
    _, codebooks, metric, share = learn(X, np.eye(8, dtype=np.float32), True, wanted, 0, lambda step, record: None)
    assert codebooks.shape == (2, 2, 16, 5)
    assert (metric[:, -1, -1] > 0).all()
    assert share == SHARE


def test_where_inner_products_search_errors_weigh_as_queries_are_spread(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    asked = np.diag([1.0, 1, 1, 1, 9, 9, 9, 9])
    wanted = Sums(2, 2, 16, rounds=3, beam_size=4, smoothing=1.0, ranking=True, asked=asked)
    _, codebooks, metric, share = learn(X, np.eye(8, dtype=np.float32), False, wanted, 0, lambda step, record: None)
    assert codebooks.shape == (2, 2, 16, 4)  # no column
    assert share == 0
    np.testing.assert_allclose(np.linalg.norm(metric, axis=1), 1, rtol=1e-3)  # within a part all weigh alike
    wanted = Sums(1, 2, 16, rounds=3, beam_size=4, smoothing=1.0, ranking=True, asked=asked)
    _, codebooks, _, _ = learn(X, np.eye(8, dtype=np.float32), False, wanted, 0, lambda step, record: None)
    spread = np.square(codebooks[0]).mean(axis=(0, 1))
    assert spread[4:].min() > spread[:4].max()


@pytest.mark.parametrize("n", [16, 17])
def test_no_more_rows_than_centroids(rng: np.random.Generator, n: int) -> None:
    X = np.ones((n, 4), np.float32) if n == 16 else rng.standard_normal((n, 4)).astype(np.float32)
    wanted = Sums(1, 2, 16, rounds=3, beam_size=4, smoothing=0.75, ranking=True)
    _, codebooks, *_ = learn(X - X.mean(0), np.eye(4, dtype=np.float32), False, wanted, 0, lambda step, record: None)
    assert np.isfinite(codebooks).all()
