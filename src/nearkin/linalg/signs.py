"""Linear maps of rows whose signs do not depend on the batch or the number of threads.

Separate from `batch_free`, whose kernels load numba, which hashers do not need.
"""

# pyright: reportConstantRedefinition=false

from collections.abc import Iterator
from typing import Any

import numpy as np

BLOCK = 2048  # rows per product: a block and its float64 copy stay in the cache
_PRODUCTS = 1 << 22  # float64 products formed at a time


def unpack_bits(codes: np.ndarray, n_bits: int | None = None, order: Any = "little") -> np.ndarray:
    """The bits of codes as `nearkin.hashing.unpack_signs` takes them, (n, n_bits) uint8 of 0 and 1; by default all."""
    codes = np.asarray(codes)
    codes = codes.view(np.uint8) ^ np.uint8(128) if codes.dtype == np.int8 else codes
    return np.unpackbits(codes, axis=1, count=n_bits, bitorder=order)


def row_blocks(X: np.ndarray, size: int = BLOCK) -> Iterator[np.ndarray]:
    """Yield consecutive slices of X with at most `size` rows."""
    for start in range(0, max(len(X), 1), size):  # a block without rows still has a width
        yield X[start : start + size]


def affine_values(
    X: np.ndarray,  # (n, d)
    mean: np.ndarray,  # (d,)
    P: np.ndarray,  # (d, L)
    scale: float = 1.0,
    intercept: np.ndarray | None = None,  # (L,)
) -> np.ndarray:
    """Return scale (X - mean) P + intercept, (n, L), in the common type of X and P, with signs that cannot vary. A BLAS
    product rounds a row differently alone and in a batch. Values within that rounding error, d u |x| |p| with u the
    unit roundoff, are computed again in float64 in a fixed order: about one in a thousand."""
    d, width = P.shape
    if mean.shape != (d,) or (intercept is not None and intercept.shape != (width,)):
        given = None if intercept is None else intercept.shape
        raise ValueError(
            f"mean has shape {mean.shape} and intercept {given} for P {P.shape}; they must be ({d},) and ({width},)"
        )
    P = np.ascontiguousarray(P, np.result_type(X, P))
    shift = np.zeros(width, P.dtype) if intercept is None else intercept.astype(P.dtype)
    out = np.empty((len(X), width), P.dtype)
    unit, tiniest = np.finfo(P.dtype).eps / 2, np.sqrt(d * np.float64(np.finfo(P.dtype).tiny))
    # what rounding can change in a value near zero, whose intercept is as large as its product: `reach` (L,) times the
    # norm of the centred row
    reach = np.float64(d + 4) * unit * abs(scale) * np.linalg.norm(P.astype(np.float64), axis=0)
    for rows, values in zip(row_blocks(X), row_blocks(out), strict=True):
        centred = (rows - mean).astype(P.dtype, copy=False)
        np.matmul(centred, P, out=values)
        values *= P.dtype.type(scale)
        values += shift
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite norm: all of the row is computed again
            # a little too large, as squares below `tiny` count as zero
            norms = 1.001 * np.sqrt(np.einsum("nd,nd->n", centred, centred)).astype(np.float64) + tiniest
            most = norms.max(initial=0) * reach.max()  # one number for a first look at all of them
            rows, columns = np.divmod(np.flatnonzero(np.abs(values) <= most), values.shape[1])
            near = np.abs(values[rows, columns]) <= reach[columns] * norms[rows]
            rows, columns = rows[near], columns[near]
            values[rows, columns] = _exact(centred, P, scale, shift, rows, columns)
    return out


def _exact(
    centred: np.ndarray,  # (n, d)
    P: np.ndarray,  # (d, L)
    scale: float,
    shift: np.ndarray,  # (L,)
    rows: np.ndarray,  # (k,)
    columns: np.ndarray,  # (k,)
) -> np.ndarray:
    """Values (k,) at the places given, one by one in float64 and in a fixed order, in the type of P."""
    size = max(1, _PRODUCTS // len(P))
    values = np.empty(len(rows), P.dtype)
    for part in (slice(first, first + size) for first in range(0, len(rows), size)):
        products = centred[rows[part]].astype(np.float64) * P[:, columns[part]].T
        totals = np.cumsum(products, axis=1)[:, -1]  # summed in order, as `sum` does not
        values[part] = float(scale) * totals + shift[columns[part]].astype(np.float64)
    return values
