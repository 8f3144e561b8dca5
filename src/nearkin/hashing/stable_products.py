"""Products and squares of rows that are those of the row alone, whatever stands beside it in the batch."""

from collections.abc import Callable

import numpy as np

from nearkin._compile import cached_njit
from nearkin.hashing.affine_values import check_product


def settled_rows(
    values: np.ndarray,  # (n, L) float64 from a product with BLAS
    X: np.ndarray,  # (n, d) float64
    reach: float,  # largest entry that a row's entries were multiplied with
    exact: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Replace rows of values that are quadratic in X and hold one too near zero by `exact` of those rows.

    What `affine_values` does for single values; `exact` (k, d) -> (k, L) must treat each row for itself.
    """
    sizes = np.abs(X).max(axis=1, initial=0) + reach
    doubtful = (np.abs(values) <= (1e-14 * X.shape[1] ** 2 * sizes**2)[:, None]).any(axis=1)
    if doubtful.any():
        values[doubtful] = exact(np.ascontiguousarray(X[doubtful]))
    return values


def steady_products(
    X: np.ndarray,  # (n, d)
    P: np.ndarray,  # (d, L)
) -> np.ndarray:
    """Return X P (n, L) float64, every value bit for bit that of its row alone; no BLAS."""
    check_product(X, P)
    return _steady_products(X, P)


@cached_njit()
def _steady_products(X, P):
    out = np.zeros((X.shape[0], P.shape[1]))
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            for k in range(P.shape[1]):
                out[i, k] += x * P[j, k]
    return out
