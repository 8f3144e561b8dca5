"""Linear maps of rows whose signs are those of the row alone, whatever stands beside it in the batch."""

import numpy as np

from nearkin.hashing.bits import n_bytes
from nearkin.hashing.spectrum import row_blocks

_PRODUCTS = 1 << 22  # float64 products formed at a time
_BLOCK = 1024  # rows whose signs are formed at a time


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
    P, shift = _checked(X, mean, P, intercept)
    out = np.empty((len(X), P.shape[1]), P.dtype)
    reach, floor = _bounds(P, scale, shift)
    for rows, values in zip(row_blocks(X), row_blocks(out), strict=True):
        centred = (rows - mean).astype(P.dtype, copy=False)
        np.matmul(centred, P, out=values)
        values *= P.dtype.type(scale)
        values += shift
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite norm: all of the row is computed again
            norms = _norms(centred)
            most = norms.max(initial=0) * reach.max() + floor.max()  # one number for a first look at all of them
            rows, columns = np.divmod(np.flatnonzero(np.abs(values) <= most), values.shape[1])
            near = np.abs(values[rows, columns]) <= reach[columns] * norms[rows] + floor[columns]
            rows, columns = rows[near], columns[near]
            values[rows, columns] = _exact(centred, P, scale, shift, rows, columns)
    return out


def affine_codes(
    X: np.ndarray,  # (n, d)
    mean: np.ndarray,  # (d,)
    P: np.ndarray,  # (d, L)
    scale: float = 1.0,
    intercept: np.ndarray | None = None,  # (L,)
) -> np.ndarray:
    """`pack_signs(affine_values(...))` (n, ceil(L / 8)) uint8, in fewer passes: no value is kept but near zero.

    A block of values is compared with the largest rounding error of the block, from both sides; where the packed bits
    of the two differ, the values are looked at one by one.
    """
    P, shift = _checked(X, mean, P, intercept)
    reach, floor = _bounds(P, scale, shift)
    out = np.empty((len(X), n_bytes(P.shape[1])), np.uint8)
    centred, values = (np.empty((min(_BLOCK, len(X)), width), P.dtype) for width in P.shape)
    plain = scale > 0 and not shift.any()  # then the signs are those of the product
    for start in range(0, len(X), _BLOCK):
        count = min(_BLOCK, len(X) - start)
        near_by, block = centred[:count], values[:count]
        np.subtract(X[start : start + count], mean, out=near_by, casting="same_kind")
        np.matmul(near_by, P, out=block)
        if not plain:
            block *= P.dtype.type(scale)
            block += shift
        with np.errstate(over="ignore", invalid="ignore"):
            most = _norms(near_by).max() * reach.max() + floor.max()
            out[start : start + count] = _signs(near_by, P, scale, shift, block, most / scale if plain else most)
    return out


def _signs(
    centred: np.ndarray,  # (n, d)
    P: np.ndarray,  # (d, L)
    scale: float,
    shift: np.ndarray,  # (L,)
    values: np.ndarray,  # (n, L)
    most: float,  # the largest size of a value whose sign is in doubt
) -> np.ndarray:
    """Packed signs (n, ceil(L / 8)) of values, those in doubt computed again."""
    limit = values.dtype.type(most * (1 + 1e-6))  # not below `most` once it is rounded
    codes = np.packbits(values > limit, axis=1, bitorder="little")
    doubtful = codes != np.packbits(values >= -limit, axis=1, bitorder="little")
    if not np.isfinite(limit):
        doubtful[:] = True
    if len(found := np.flatnonzero(doubtful)):
        rows, columns = np.divmod(found, codes.shape[1])
        rows, columns = np.repeat(rows, 8), (8 * columns[:, None] + np.arange(8)).ravel()
        rows, columns = rows[columns < len(shift)], columns[columns < len(shift)]
        near = ~(np.abs(values[rows, columns]) > limit)
        rows, columns = rows[near], columns[near]
        positive = (_exact(centred, P, scale, shift, rows, columns) >= 0).astype(np.uint8)
        np.bitwise_or.at(codes, (rows, columns // 8), positive << (columns % 8).astype(np.uint8))
    return codes


def _checked(
    X: np.ndarray, mean: np.ndarray, P: np.ndarray, intercept: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """P (d, L) and the intercept (L,) in the common type of X and P; ValueError if the shapes do not fit."""
    check_product(X, P)
    d, width = P.shape
    if mean.shape != (d,) or (intercept is not None and intercept.shape != (width,)):
        given = None if intercept is None else intercept.shape
        raise ValueError(
            f"mean has shape {mean.shape} and intercept {given} for P {P.shape}; they must be ({d},) and ({width},)"
        )
    dtype = np.result_type(X, P)
    shift = np.zeros(width, dtype) if intercept is None else intercept.astype(dtype)
    return np.ascontiguousarray(P, dtype=dtype), shift


def _bounds(P: np.ndarray, scale: float, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What rounding can change in a value: the first (L,) times the norm of the centred row, plus the second (L,)."""
    unit = np.finfo(P.dtype).eps / 2
    reach = np.float64(P.shape[0] + 4) * unit * abs(scale) * np.linalg.norm(P.astype(np.float64), axis=0)
    return reach, 4 * unit * np.abs(shift).astype(np.float64)


def _norms(centred: np.ndarray) -> np.ndarray:
    """Norms (n,) of the rows, float64 and a little too large: squares below `tiny` count as zero."""
    tiniest = np.sqrt(np.float64(centred.shape[1]) * np.finfo(centred.dtype).tiny)
    return 1.001 * np.sqrt(np.einsum("nd,nd->n", centred, centred)).astype(np.float64) + tiniest


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


def check_product(X: np.ndarray, P: np.ndarray) -> None:
    """ValueError unless X (n, d) and P (d, L) can be multiplied."""
    if X.ndim != 2 or P.ndim != 2 or X.shape[1] != P.shape[0]:
        raise ValueError(f"X has shape {X.shape} and P {P.shape}; they must be (n, d) and (d, L)")
