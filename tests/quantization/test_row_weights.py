"""`ProductQuantizer.fit(weights=)`: a row counts as often as its weight says."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.codebooks import ClusterSums

X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32) ** 3


def test_cluster_sums_with_weights_are_sums_of_repeated_rows() -> None:
    codes = np.random.default_rng(1).integers(0, 4, (400, 2))
    times = np.random.default_rng(2).integers(1, 4, 400)
    weighted = ClusterSums(2, 4, 8).update(X, codes, times.astype(np.float32))
    repeated = ClusterSums(2, 4, 8).update(np.repeat(X, times, 0), np.repeat(codes, times, 0))
    np.testing.assert_allclose(weighted.sums, repeated.sums, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(weighted.counts, repeated.counts)


@pytest.mark.parametrize("rotation", [None, "procrustes"])
def test_heavy_rows_are_quantized_better(rotation: str | None) -> None:
    weights = np.where(np.arange(400) < 40, 100.0, 1.0)
    plain, heavy = (
        nk.ProductQuantizer(2, 16, rotation=rotation, random_state=0).fit(X, weights=w) for w in (None, weights)
    )
    assert heavy.distortion(X[:40]) < 0.6 * plain.distortion(X[:40])


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_only_the_ratios_of_the_weights_count(unit: float) -> None:
    """Weights are divided by their mean, so that none of them leaves float32."""
    weights = np.where(np.arange(400) < 40, 100.0, 1.0)
    fitted, scaled = (nk.ProductQuantizer(2, 16, random_state=0).fit(X, weights=w) for w in (weights, unit * weights))
    np.testing.assert_allclose(scaled.codebooks_, fitted.codebooks_, rtol=1e-3, atol=1e-3)


def test_bad_weights_are_named() -> None:
    for bad in (np.ones(3), np.zeros(400), np.full(400, np.nan)):
        with pytest.raises(ValueError, match=r"weights has shape .*must be \(400,\) finite numbers greater than 0"):
            nk.ProductQuantizer(2, 16).fit(X, weights=bad)
