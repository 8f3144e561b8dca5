"""The vectors that an index keeps in addition to their codes, and candidates rescored by them."""

import warnings
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from nearkin._check import check_choice, check_instance
from nearkin._exact import keys_of_pairs
from nearkin._storage import map_rows, write_rows
from nearkin.index.coarse_scan import best_of
from nearkin.index.identifiers import Found

KEPT_TYPES = {"float32": 0, "float16": 2, "int8": 4}  # of kept vectors, and rows of a file that hold the offsets
_STEP, _MOST = 4, 127  # bytes of the step of an int8 row, and its steps on either side of 0
_COARSER = 8  # times the reach of the first vectors' steps from which added ones lie too far
_HALF = float(np.finfo(np.float16).max)
_SAMPLE = 4_096  # vectors, at most, that decide the offsets
_CHUNK = 65_536  # rows written at a time, and of a block to which others are not joined
_RESCORED = 1 << 18  # numbers of candidates rescored at a time, which stay in the cache


class KeptVectors:
    """The vectors of an index, in the blocks in which they were added; a block may be a mapped file. `order` (n,): the
    numbers of the vectors that the index has, None for all. Removed vectors stay until the index is saved. All blocks
    are float32, float16, or int8 (n, d + 4): whole steps of each vector, then the bytes of the step as float32.

    Fewer bytes hold the vectors less their columns' `offsets` (d,) float32: medians of the first vectors, of columns
    that lie farther from 0 than they are wide, unless these vectors are held exactly without. None before the first."""

    def __init__(
        self, blocks: list[np.ndarray], order: np.ndarray | None = None, offsets: np.ndarray | None = None
    ) -> None:
        self.blocks = blocks
        self.order = order
        self.offsets = offsets

    def __deepcopy__(self, memo: object) -> "KeptVectors":
        return self  # it never changes

    @classmethod
    def wanted(cls, keep_vectors: bool | str, d: int, given: DTypeLike = np.float32) -> "KeptVectors | None":
        """None, or no vectors of width d yet. True keeps vectors `given` as float16 or as 8-bit integers as float16,
        which holds them, and others as float32."""
        if isinstance(keep_vectors, str):
            kind = check_choice(keep_vectors, "keep_vectors", KEPT_TYPES)
        elif check_instance(keep_vectors, "keep_vectors", bool, np.bool_, int, str):
            kind = "float16" if np.can_cast(given, np.float16) else "float32"
        else:
            return None
        return cls([_narrowed(np.empty((0, d), np.float32), kind)])

    def about(self, X: np.ndarray) -> "KeptVectors":
        """These, with offsets; the first vectors X (m, d) decide these once."""
        if self.offsets is not None or not len(X):
            return self
        some = X[:: -(-len(X) // _SAMPLE)].astype(np.float32)
        return KeptVectors(self.blocks, self.order, _offsets(some, self.dtype))

    @property
    def dtype(self) -> np.dtype:
        """float32, float16 or int8."""
        return self.blocks[0].dtype

    @property
    def row_bytes(self) -> int:
        """Bytes of a vector, that of its step included."""
        return self.dtype.itemsize * self.blocks[0].shape[1]

    def __len__(self) -> int:
        return self._stored() if self.order is None else len(self.order)

    def check(self, X: np.ndarray) -> None:
        """ValueError for vectors that float16 cannot hold; a warning for some so far from the first ones that the steps
        of int8 do not tell them apart."""
        if self.dtype == np.int8 and self._stored() and len(X):
            away = np.abs(_offsets(self._less(X[:_SAMPLE]).astype(np.float32), self.dtype)).max()
            step = np.median(_steps(self._raw(np.arange(min(len(self), _SAMPLE)))))
            if away > _COARSER * _MOST * step:
                warnings.warn(
                    f"X lies {away:.3g} from the first vectors, which 'int8' keeps in steps of {step:.3g}: its steps "
                    "are too long for near vectors; build the index again, or with keep_vectors='float16'",
                    stacklevel=4,
                )
        if self.dtype == np.float16 and (largest := np.abs(self.about(X)._less(X)).max(initial=0)) > _HALF:
            raise ValueError(
                f"keep_vectors is 'float16', which holds numbers up to {_HALF:,.0f} from a column's median, and X "
                f"has {largest:,.0f}; type keep_vectors='float32' or 'int8'"
            )

    def stored(self, X: np.ndarray) -> np.ndarray:
        """A copy of vectors X (m, d) in the form that is kept."""
        return _narrowed(self._less(X), self.dtype)

    def _less(self, X: np.ndarray) -> np.ndarray:
        return X if self.offsets is None or self.dtype == np.float32 else X - self.offsets

    def with_rows(self, X: np.ndarray) -> "KeptVectors":
        """These vectors followed by a copy of X (m, d): the caller may change X afterwards."""
        stored, about = self._stored(), self.about(X)
        order = None if self.order is None else np.concatenate([self.order, np.arange(stored, stored + len(X))])
        blocks = self.blocks if stored else []
        last = about.stored(X)
        # joined: every search goes through all blocks
        while blocks and len(before := blocks[-1]) < min(_CHUNK, 2 * len(last)):
            blocks, last = blocks[:-1], np.concatenate([before, last])
        return KeptVectors([*blocks, last], order, about.offsets)

    def without(self, positions: np.ndarray) -> "KeptVectors":
        return self.take(np.delete(np.arange(len(self)), positions))

    def take(self, positions: np.ndarray) -> "KeptVectors":
        """The vectors at positions (m,), not copied."""
        return KeptVectors(self.blocks, positions if self.order is None else self.order[positions], self.offsets)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Vectors (..., d) float32 at positions of any shape; reads each block once."""
        rows = self._raw(positions.ravel())
        if self.dtype == np.int8:
            rows = rows[:, :-_STEP] * _steps(rows)
        rows = rows.astype(np.float32, copy=False)
        if self.dtype != np.float32 and self.offsets is not None:
            rows += self.offsets
        return rows.reshape(*positions.shape, rows.shape[1])

    def _raw(self, flat: np.ndarray) -> np.ndarray:
        """Rows at positions (m,) in the form that is kept."""
        flat = flat if self.order is None else self.order[flat]
        out, first = np.empty((len(flat), self.blocks[0].shape[1]), self.dtype), 0
        for block in self.blocks:
            here = np.flatnonzero((flat >= first) & (flat < first + len(block)))
            out[here] = block[flat[here] - first]
            first += len(block)
        if len(flat) and (flat.min() < 0 or flat.max() >= first):
            raise ValueError(f"positions reach from {flat.min()} to {flat.max()}; the index keeps {first} vectors")
        return out

    def save(self, path: Path) -> None:
        """Write one .npy file."""
        numbers = (np.arange(first, min(first + _CHUNK, len(self))) for first in range(0, len(self), _CHUNK))
        self.write(path, map(self._raw, numbers), len(self))

    def write(self, path: Path, parts: Iterable[np.ndarray], n_rows: int) -> None:
        """Write vectors, `stored` in parts, and as many bytes as `KEPT_TYPES` rows have with the offsets."""
        last = np.zeros((KEPT_TYPES[self.dtype.name], self.blocks[0].shape[1]), self.dtype)
        if len(last) and self.offsets is not None:
            last.view(np.uint8).ravel()[: self.offsets.nbytes] = self.offsets.view(np.uint8)
        write_rows(path, chain(parts, [last]), (n_rows + len(last), last.shape[1]), self.dtype)

    def _stored(self) -> int:
        return sum(map(len, self.blocks))

    @classmethod
    def load(cls, path: Path, n_rows: int, d: int) -> "KeptVectors":
        """Map the file; ValueError unless it holds vectors (n_rows, d)."""
        rows = map_rows(path)
        width, more = d + _STEP * (rows.dtype == np.int8), KEPT_TYPES.get(rows.dtype.name, -1)
        if rows.shape != (n_rows + more, width):
            raise ValueError(
                f"{path} has {rows.dtype} vectors of shape {rows.shape}, the index needs float32 {(n_rows, d)}; "
                "the folder is damaged, or the file is of another index"
            )
        offsets: np.ndarray = np.frombuffer(rows[n_rows:].tobytes(), "<f4", d if more else 0)
        return cls([rows[:n_rows]], offsets=offsets if more and n_rows else None)


def _offsets(X: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The medians (d,) of the columns of X (n, d) that lie farther from 0 than their quartiles lie apart, else 0."""
    with np.errstate(over="ignore"):
        exact = (np.abs(X) <= _MOST) & (np.rint(X) == X) if dtype == np.int8 else X.astype(dtype) == X
    if exact.all():
        return np.zeros(X.shape[1:], np.float32)
    low, middle, high = np.sort(X, axis=0)[(len(X) - 1) * np.arange(1, 4) // 4]
    return np.where(np.abs(middle) > high - low, middle, np.float32(0))


def _steps(rows: np.ndarray) -> np.ndarray:
    """The steps (n, 1) float32 of rows (n, d + 4) kept as int8."""
    return np.ascontiguousarray(rows[:, -_STEP:]).view("<f4")


def _narrowed(X: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """A copy of rows X (n, d) as float32, float16 or int8. Whole numbers up to 127 have steps of 1."""
    if np.dtype(dtype) != np.int8:
        return np.array(X, dtype, order="C")
    largest = np.abs(X, dtype=np.float32).max(axis=1, keepdims=True, initial=0)
    whole = (largest <= _MOST) & (np.rint(X) == X).all(axis=1, keepdims=True)
    steps = np.where(whole, 1, np.maximum(largest / _MOST, np.finfo(np.float32).tiny)).astype("<f4")
    return np.hstack([np.rint(X / steps).clip(-_MOST, _MOST).astype(np.int8), steps.view(np.int8)])


def rescore(Q: np.ndarray, candidates: np.ndarray, kept: KeptVectors, k: int, metric: str) -> Found:
    """The best k of each query's candidates (n, c) by exact scores, formed in float64: (scores (n, k), positions (n,
    k)). Candidates of -1 sort last; equal scores keep the order of the codes."""
    keys = np.empty(candidates.shape)
    step = max(1, _RESCORED // max(1, candidates.shape[1] * Q.shape[1]))
    for some in (slice(first, first + step) for first in range(0, len(Q), step)):
        keys[some] = keys_of_pairs(kept.rows(np.maximum(candidates[some], 0)), Q[some, None], metric)
    keys, positions = best_of(keys, candidates, k, True)
    return (keys if metric == "l2" else -keys).astype(np.float32), positions
