"""Linear maps of rows whose signs are those of the row alone, whatever stands beside it in the batch."""

from collections.abc import Callable

import numpy as np
from numba import njit

from nearkin.hashing.spectrum import row_blocks


def affine_values(
    X: np.ndarray,  # (n, d)
    mean: np.ndarray,  # (d,)
    P: np.ndarray,  # (d, L)
    scale: float = 1.0,
    intercept: np.ndarray | None = None,  # (L,)
) -> np.ndarray:
    """Return scale (X - mean) P + intercept, (n, L), in the common type of X and P, with signs that cannot vary.

    A BLAS product rounds a row differently alone, in a batch and with other thread counts, and a code would flip bits
    whose value is near zero. Values within the rounding error of their product, d u |x| |p| with u the unit roundoff,
    are therefore computed again, one by one in float64 and in a fixed order: about one in a thousand. ValueError if the
    shapes do not fit.
    """
    _check_product(X, P)
    d, width = P.shape
    if mean.shape != (d,) or (intercept is not None and intercept.shape != (width,)):
        given = None if intercept is None else intercept.shape
        raise ValueError(
            f"mean has shape {mean.shape} and intercept {given} for P {P.shape}; they must be ({d},) and ({width},)"
        )
    dtype = np.result_type(X, P)
    P = np.ascontiguousarray(P, dtype=dtype)
    shift = np.zeros(P.shape[1], dtype) if intercept is None else intercept.astype(dtype)
    unit = np.finfo(dtype).eps / 2
    reach = np.float64(X.shape[1] + 4) * unit * abs(scale) * np.linalg.norm(P.astype(np.float64), axis=0)
    tiniest = np.sqrt(np.float64(X.shape[1]) * np.finfo(dtype).tiny)  # squares below it count as zero
    floor = 4 * unit * np.abs(shift).astype(np.float64)
    out = np.empty((len(X), P.shape[1]), dtype)
    for rows, values in zip(row_blocks(X), row_blocks(out), strict=True):
        centred = (rows - mean).astype(dtype, copy=False)
        np.matmul(centred, P, out=values)
        values *= dtype.type(scale)
        values += shift
        with np.errstate(over="ignore"):  # an infinite norm only means that all of the row is computed again
            norms = 1.001 * np.sqrt(np.einsum("nd,nd->n", centred, centred)).astype(np.float64) + tiniest
        _settle(centred, P, float(scale), shift, norms, reach, floor, values)
    return out


@njit(cache=True)
def _settle(centred, P, scale, shift, norms, reach, floor, values):
    """Compute values again that are too near zero for their sign to be certain."""
    for i in range(centred.shape[0]):
        for k in range(values.shape[1]):
            if abs(values[i, k]) <= reach[k] * norms[i] + floor[k]:
                total = 0.0
                for j in range(centred.shape[1]):
                    total += np.float64(centred[i, j]) * np.float64(P[j, k])
                values[i, k] = scale * total + np.float64(shift[k])


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
    _check_product(X, P)
    return _steady_products(X, P)


def _check_product(X: np.ndarray, P: np.ndarray) -> None:
    if X.ndim != 2 or P.ndim != 2 or X.shape[1] != P.shape[0]:
        raise ValueError(f"X has shape {X.shape} and P {P.shape}; they must be (n, d) and (d, L)")


@njit(cache=True)
def _steady_products(X, P):
    out = np.zeros((X.shape[0], P.shape[1]))
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            for k in range(P.shape[1]):
                out[i, k] += x * P[j, k]
    return out
