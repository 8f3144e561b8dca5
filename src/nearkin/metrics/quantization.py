"""Judging codes: how far the reconstruction lies from the vectors, and how much smaller the codes are."""

# pyright: reportConstantRedefinition=false

import numpy as np

from nearkin._check import check_real, check_vectors
from nearkin._types import ArrayLike


def distortion(X: ArrayLike, reconstructed: ArrayLike) -> float:
    """Mean squared L2 distance between the rows of X (n, d) and their reconstructions (n, d), summed in float64."""
    X = check_vectors(X)
    reconstructed = check_vectors(reconstructed, name="reconstructed")
    if X.shape != reconstructed.shape:
        raise ValueError(f"reconstructed has shape {reconstructed.shape}; X has {X.shape}, and they must agree")
    return squared_errors(X, reconstructed) / len(X)


def relative_distortion(X: ArrayLike, reconstructed: ArrayLike) -> float:
    """Distortion over the mean squared distance of X to its mean: 0 is perfect, 1 no better than one point for all."""
    X = check_vectors(X)
    spread = squared_errors(X, np.broadcast_to(X.mean(axis=0, dtype=np.float64), X.shape)) / len(X)
    error = distortion(X, reconstructed)
    return error / spread if spread > 0 else float(error > 0)


def squared_errors(X: np.ndarray, Y: np.ndarray) -> float:
    """Sum of (X - Y)^2 over all entries, blocked so that no second array of X's size is made."""
    starts = range(0, len(X), 4096)
    return float(sum(np.square(np.subtract(X[i : i + 4096], Y[i : i + 4096], dtype=np.float64)).sum() for i in starts))


def compression_ratio(n_features: int, bytes_per_vector: float, itemsize: int = 4) -> float:
    """How many times smaller a code is than its vector of `n_features` numbers of `itemsize` bytes (float32: 4)."""
    size = check_real(bytes_per_vector, "bytes_per_vector", above=0)
    return check_real(n_features, "n_features", above=0) * check_real(itemsize, "itemsize", above=0) / size
