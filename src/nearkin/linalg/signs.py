"""Linear maps of rows whose signs are those of the row alone, in any batch and with any number of threads.

Apart from `batch_free`, whose kernels load numba: hashers need none.
"""

# pyright: reportConstantRedefinition=false

from collections.abc import Iterator
from typing import NamedTuple, Self

import faiss
import numpy as np

from nearkin._check import check_finite

BLOCK = 2048  # rows per product: a block and its float64 copy stay in the cache
_PRODUCTS = 1 << 22  # float64 products formed at a time
_NUMBERS = 3 << 18  # of the rows whose signs are formed at a time
_FEWEST = 256  # rows of those, at least
_SETTLED = 4096  # values looked at one by one at a time
_FAR = 4  # times as far from 0 as rows differ, from where they are centred first
_LOOKED_AT = 64  # rows that tell it


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
    """`pack_signs(affine_values(...))` (n, ceil(L / 8)) uint8, in fewer passes; ValueError for NaN or infinity in X.

    A block of products X P is compared with mean P - intercept / scale from both sides, as far off as the rounding of
    its longest row could reach; where the packed bits of the two differ, the values are looked at one by one. Rows that
    lie far from 0, compared with their differences, are centred first: their rounding would reach too far.
    """
    if scale <= 0:
        return _packed(affine_values(check_finite(X), mean, P, scale, intercept) >= 0)
    P, shift = _checked(X, mean, P, intercept)
    out = np.empty((len(X), -(-P.shape[1] // 8)), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        planes = _Planes.of(X[:_LOOKED_AT], mean, P, scale, shift)
        block_rows = max(_FEWEST, _NUMBERS // len(P))
        centred, values = (np.empty((min(block_rows, len(X)), width), P.dtype) for width in P.shape)
        for start in range(0, len(X), block_rows):
            rows = X[start : start + block_rows]
            near_by, block = centred[: len(rows)], values[: len(rows)]
            if planes.at_mean:
                np.subtract(rows, mean, out=near_by, casting="same_kind")
            else:
                near_by = rows.astype(P.dtype, copy=False)
            norms = _norms(near_by)
            if not np.isfinite(norms.max()):
                check_finite(X)
            np.matmul(near_by, P, out=block)
            out[start : start + len(rows)] = planes.signs(rows, block, norms)
    return out


class _Planes(NamedTuple):
    """The planes that cut rows into bits: where x P = centre for rows x, or rows less the mean `at_mean`."""

    mean: np.ndarray  # (d,)
    P: np.ndarray  # (d, L)
    scale: float
    shift: np.ndarray  # (L,)
    centre: np.ndarray  # (L,) float64
    at_mean: bool
    away: float  # norm of the mean unless rows are centred
    longest: float  # norm of a column of P
    reach: float  # what rounding can change in a product, over the norm of the row
    floor: np.ndarray  # (L,) and what it changes besides
    endless: float  # norm of a row from which products may be infinite

    @classmethod
    def of(cls, some: np.ndarray, mean: np.ndarray, P: np.ndarray, scale: float, shift: np.ndarray) -> Self:
        """`some` rows tell whether all are better centred first."""
        wide, middle = P.astype(np.float64), mean.astype(np.float64)
        longest, away = float(np.linalg.norm(wide, axis=0).max(initial=0)), float(np.linalg.norm(middle))
        at_mean = bool(away > _FAR * np.linalg.norm(some - middle, axis=1).max(initial=0))
        centre = -shift.astype(np.float64) / scale + (0 if at_mean else middle @ wide)
        unit = float(np.finfo(P.dtype).eps) / 2
        reach = (len(P) + 8) * unit * longest
        away = 0.0 if at_mean else away
        floor = 4 * unit * (np.abs(centre) + longest * away)  # a centred row is rounded too
        endless = float(np.finfo(P.dtype).max) / (1 + float(np.abs(wide).max(initial=0))) / len(P)
        return cls(mean, P, scale, shift, centre, at_mean, away, longest, reach, floor, endless)

    def signs(self, rows: np.ndarray, values: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Packed signs (n, ceil(L / 8)) of rows (n, d) with such products (n, L) and, as multiplied, norms (n,)."""
        doubt = self.reach * norms.max() + self.floor
        codes = _packed(values > (self.centre + doubt).astype(values.dtype))
        doubtful = np.bitwise_xor(codes, _packed(values >= (self.centre - doubt).astype(values.dtype)))
        if not norms.max() < self.endless:
            codes[:], doubtful[:], norms = 0, 255, np.full(len(norms), np.inf)
        if len(found := np.flatnonzero(doubtful)):
            which, bits = np.nonzero(np.unpackbits(doubtful.reshape(-1, 1)[found], axis=1, bitorder="little"))
            numbers, places = np.divmod(found[which], codes.shape[1])
            there = 8 * places + bits < len(self.shift)
            numbers, places, bits = numbers[there], places[there], bits[there]
            positive = self._one_by_one(rows, values, norms, numbers, 8 * places + bits)
            np.bitwise_or.at(codes, (numbers, places), positive.astype(np.uint8) << bits.astype(np.uint8))
        return codes

    def _one_by_one(
        self, rows: np.ndarray, values: np.ndarray, norms: np.ndarray, numbers: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Whether the values at rows `numbers` (k,) and `columns` (k,) are positive: by their products unless the own
        row's rounding reaches the plane, then by a product in float64, and else by the one that sums in order."""
        away = values[numbers, columns] - self.centre[columns]
        positive = away > 0
        near = np.flatnonzero(~(np.abs(away) > self.reach * norms[numbers] + self.floor[columns]))
        for part in np.split(near, range(_SETTLED, len(near), _SETTLED)):
            centred = (rows[numbers[part]] - self.mean).astype(self.P.dtype, copy=False)
            own, across = columns[part], self.P.T[columns[part]].astype(np.float64)
            total = np.einsum("kd,kd->k", centred.astype(np.float64), across) * self.scale + self.shift[own]
            positive[part] = total > 0
            sizes = self.scale * self.longest * (norms[numbers[part]] + self.away) + np.abs(self.shift[own])
            error = (len(self.P) + 8) * float(np.finfo(float).eps) * sizes
            close = np.flatnonzero(~(np.abs(total) > error))
            exact = _exact(centred, self.P, self.scale, self.shift, close, own[close])
            positive[part[close]] = exact >= 0
        return positive


def _packed(bits: np.ndarray) -> np.ndarray:
    """Bits (n, L) in the order of `nearkin.hashing.bits`."""
    return np.packbits(bits, axis=1, bitorder="little")


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
    if centred.dtype == np.float32:
        rows, squares = np.ascontiguousarray(centred), np.empty(len(centred), np.float32)
        faiss.fvec_norms_L2sqr(faiss.swig_ptr(squares), faiss.swig_ptr(rows), rows.shape[1], len(rows))
    else:
        squares = np.einsum("nd,nd->n", centred, centred)
    return 1.001 * np.sqrt(squares).astype(np.float64) + tiniest


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
