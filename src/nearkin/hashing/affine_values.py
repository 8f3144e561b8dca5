"""Linear maps of rows whose signs are those of the row alone, whatever stands beside it in the batch."""

from collections.abc import Iterator

import numpy as np

from nearkin.hashing.bits import pack_signs, unpack_bits
from nearkin.hashing.spectrum import row_blocks

_PRODUCTS = 1 << 22  # float64 products formed at a time


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
    check_product(X, P)
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
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite norm: all of the row is computed again
            norms = 1.001 * np.sqrt(np.einsum("nd,nd->n", centred, centred)).astype(np.float64) + tiniest
            _settle(centred, P, float(scale), shift, norms, reach, floor, values)
    return out


def affine_codes(
    X: np.ndarray,  # (n, d)
    mean: np.ndarray,  # (d,)
    P: np.ndarray,  # (d, L)
    scale: float = 1.0,  # above 0
    intercept: np.ndarray | None = None,  # (L,)
) -> np.ndarray:
    """The packed signs (n, ceil(L / 8)) of `affine_values`, without forming those values.

    Each product is compared with two edges, a rounding error above and below the one where its sign changes. Bits that
    differ between the two are computed again, as there.
    """
    check_product(X, P)
    dtype = np.result_type(X, P)
    P, edge = np.ascontiguousarray(P, dtype), np.float64(0)  # one number where it can be, which is compared faster
    shift = np.zeros(P.shape[1], dtype) if intercept is None else intercept.astype(dtype)
    if shift.any():
        edge = -shift.astype(np.float64) / scale
    unit = np.finfo(dtype).eps / 2
    reach = np.float64(len(P) + 4) * unit * np.linalg.norm(P.astype(np.float64), axis=0).max(initial=0)
    tiniest = np.sqrt(np.float64(len(P)) * np.finfo(dtype).tiny)
    codes: list[np.ndarray] = []
    for rows in row_blocks(X):
        centred = (rows - mean).astype(dtype, copy=False)
        products = centred @ P
        with np.errstate(over="ignore", invalid="ignore"):
            longest = 1.001 * np.sqrt(np.einsum("nd,nd->n", centred, centred).max(initial=0)).astype(np.float64)
        if not np.isfinite(longest):
            codes.append(pack_signs(affine_values(rows, mean, P, scale, intercept)))
            continue
        doubt = 2 * ((longest + tiniest) * reach + 4 * unit * np.abs(edge).max(initial=0))
        sure, wide = (pack_signs(products, (edge + side * doubt).astype(dtype)) for side in (1, -1))
        near, byte = np.divmod(np.flatnonzero(sure != wide), sure.shape[1])
        which, bit = np.nonzero(unpack_bits((sure ^ wide)[near, byte, None], 8))
        i, k = near[which], 8 * byte[which] + bit
        for some, totals in _in_order(centred, P, i, k):
            bits = (scale * totals + shift[k[some]].astype(np.float64)).astype(dtype) >= 0
            np.bitwise_or.at(sure, (i[some], k[some] // 8), bits.astype(np.uint8) << (k[some] % 8).astype(np.uint8))
        codes.append(sure)
    return np.concatenate(codes)


def _settle(
    centred: np.ndarray,  # (n, d)
    P: np.ndarray,  # (d, L)
    scale: float,
    shift: np.ndarray,  # (L,)
    norms: np.ndarray,  # (n,)
    reach: np.ndarray,  # (L,)
    floor: np.ndarray,  # (L,)
    values: np.ndarray,  # (n, L), changed in place
) -> None:
    """Compute values again that are too near zero for their sign to be certain."""
    most = norms.max(initial=0) * reach.max() + floor.max()  # one number for a first look at all of them
    rows, columns = np.divmod(np.flatnonzero(np.abs(values) <= most), values.shape[1])
    near = np.abs(values[rows, columns]) <= reach[columns] * norms[rows] + floor[columns]
    rows, columns = rows[near], columns[near]
    for some, totals in _in_order(centred, P, rows, columns):
        i, k = rows[some], columns[some]
        values[i, k] = scale * totals + shift[k].astype(np.float64)


def _in_order(
    centred: np.ndarray, P: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Products of these rows and columns in float64, summed in order, as `sum` does not; so many at a time."""
    size = max(1, _PRODUCTS // len(P))
    for first in range(0, len(rows), size):
        some = slice(first, first + size)
        products = centred[rows[some]].astype(np.float64) * P[:, columns[some]].T
        yield some, np.cumsum(products, axis=1)[:, -1]


def check_product(X: np.ndarray, P: np.ndarray) -> None:
    """ValueError unless X (n, d) and P (d, L) can be multiplied."""
    if X.ndim != 2 or P.ndim != 2 or X.shape[1] != P.shape[0]:
        raise ValueError(f"X has shape {X.shape} and P {P.shape}; they must be (n, d) and (d, L)")
