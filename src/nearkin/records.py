"""The records that stages exchange: what was observed, in one canonical form."""

# pyright: reportMissingTypeStubs=false

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from nearkin import _pairs
from nearkin._check import as_array
from nearkin._fields import counted
from nearkin._guard import cached_property
from nearkin._types import ArrayLike, Chosen


class ColumnOrder(NamedTuple):
    """The same pairs, column by column: `order[e]` is the row-order position of the e-th pair in column order."""

    indptr: np.ndarray  # (n + 1,) int64
    rows: np.ndarray  # (nnz,) int32
    order: np.ndarray  # (nnz,) int64


class RowForms(NamedTuple):
    """The loss of an error e in row j of n: e^T H_j e / 2, with the curvature

        H_j = gram + ridge_j I + sum over the entries t of row j of curvature_t p_t p_t^T,  p_t = points[places_t].

    `indptr` (n + 1,) cuts the entries into rows. Statistics of an embedding's loss for a quantizer.
    """

    gram: np.ndarray  # (d, d) float32
    ridge: np.ndarray  # (n,) float32
    indptr: np.ndarray  # (n + 1,) int64
    places: np.ndarray  # (nnz,) int
    curvature: np.ndarray  # (nnz,) float32
    points: np.ndarray  # (m, d) float32


@dataclass(frozen=True)
class Reading:
    """How a reader understood a table; `str` of it is the line that commands print.

    kind: "pairs" or "comparisons". roles: role -> the column that has it. distinct: role -> the number of different ids
    in it. first: the first row in words. notes: ignored columns and rows.
    """

    source: str
    kind: str
    header: bool | None
    delimiter: str | None
    roles: dict[str, str]
    form: str | None
    rows: int
    distinct: dict[str, int]
    first: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        form = f" ({self.form})" if self.form else ""
        head = "" if self.header is None else "the first line names the columns" if self.header else "no header"
        how = ", ".join(part for part in (head, self.delimiter and f"{self.delimiter}-separated") if part)
        roles = "; " * bool(self.roles) + ", ".join(f"{role} = {column}" for role, column in self.roles.items())
        distinct = ", ".join(_ids(count, column) for column, count in self.distinct.items())
        notes = "".join(f"; {note}" for note in self.notes)
        how = f" [{how}]" if how else ""
        rows = counted(self.rows, self.kind.removesuffix("s"))
        return f"{self.source}{how}: {rows}{form}{roles}; {distinct}; first row: {self.first}{notes}"


def _ids(count: int, column: str) -> str:
    """How many ids a side, or a column, has."""
    if column in ("left", "right", "objects"):
        return counted(count, "object" if column == "objects" else f"{column} id")
    return f"{counted(count, 'distinct value')} in column {column!r}"


class Judgements(NamedTuple):
    """Relevance judgements (qrels): ids of queries and rows as text (m,), and grades (m,), relevant above 0."""

    queries: np.ndarray
    rows: np.ndarray
    grades: np.ndarray


@dataclass(frozen=True, eq=False)
class Interactions:
    """Observed pairs between m left and n right entities, sorted by row, each pair once. Build it with `from_pairs`.

    Parameters
    ----------
    indptr, indices: (m + 1,) and (nnz,), the CSR structure.
    weights: (nnz,) float.
    left_ids, right_ids: (m,) and (n,), text or int64.
    timestamps: (nnz,) or None.
    split: (nnz,) of 0 train, 1 validation, 2 test, or None.
    left_features, right_features: (m, d) and (n, d'), dense or CSR, or None.
    source: how the reader understood the file, or None.

    Attributes
    ----------
    shape: (m, n).
    rows: (nnz,), the left number of each pair.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(["ann", "ann", "bob"], [7, 9, 7])
    >>> pairs.shape, pairs.rows.tolist(), pairs.right_ids[pairs.indices].tolist()
    ((2, 2), [0, 0, 1], [7, 9, 7])
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    left_ids: np.ndarray
    right_ids: np.ndarray
    timestamps: np.ndarray | None = None
    split: np.ndarray | None = None
    left_features: _pairs.Features | None = None
    right_features: _pairs.Features | None = None
    source: Reading | None = None

    @classmethod
    def from_pairs(
        cls,
        left: ArrayLike,
        right: ArrayLike,
        weights: ArrayLike | None = None,
        timestamps: ArrayLike | None = None,
        *,
        split: ArrayLike | None = None,
        left_ids: ArrayLike | None = None,
        right_ids: ArrayLike | None = None,
        left_features: _pairs.MatrixLike | None = None,
        right_features: _pairs.MatrixLike | None = None,
    ) -> "Interactions":
        """Build the record from one entry per observation; ids of any sortable type are kept.

        `left_ids` and `right_ids` are the whole catalogues, in the order of the features' rows; without them they are
        the sorted ids that occur. Of a pair seen more than once the sum of the weights, the first timestamp and the
        smallest split are kept. Raises ValueError for missing ids, no pair, NaN or negative weights, and columns or
        features of another length.
        """
        rows, left_ids = _pairs.number_ids(left, left_ids, "left")
        cols, right_ids = _pairs.number_ids(right, right_ids, "right")
        if not len(rows):
            raise ValueError("there is no observed pair; left and right must hold at least one entry")
        columns = {"right": cols, "weights": weights, "timestamps": timestamps, "split": split}
        for name, column in columns.items():
            if column is not None and np.shape(column) != (len(rows),):
                raise ValueError(f"{name} has shape {np.shape(column)}; it must be ({len(rows)},), as left")
        shape, n = (len(left_ids), len(right_ids)), len(rows)
        checked = _pairs.check_weights(weights, n), _pairs.check_timestamps(timestamps), _pairs.check_split(split)
        rows, cols, summed, first, part = _pairs.merge_pairs(rows, cols, shape, *checked)
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=len(left_ids)))).astype(np.int64)
        about_left = _pairs.check_features(left_features, "left_features", left_ids)
        about_right = _pairs.check_features(right_features, "right_features", right_ids)
        return cls(indptr, cols, summed, left_ids, right_ids, first, part, about_left, about_right)

    @classmethod
    def from_matrix(cls, matrix: _pairs.MatrixLike) -> "Interactions":
        """The record of a sparse (m, n) matrix: its entries other than 0 are the pairs, its values the weights."""
        entries: Any = _pairs.real_matrix(matrix)
        there = entries.data != 0  # SciPy stores zeros, too
        columns = entries.row[there], entries.col[there], entries.data[there]
        m, n = map(int, entries.shape)
        return cls.from_pairs(*columns, left_ids=np.arange(m), right_ids=np.arange(n))

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        more = [name for name in _OPTIONAL if getattr(self, name) is not None]
        m, n = self.shape
        return f"Interactions({counted(len(self), 'pair')} of {m:,} and {n:,}{''.join(f', {name}' for name in more)})"

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the numbers of left and of right entities."""
        return len(self.left_ids), len(self.right_ids)

    @cached_property
    def rows(self) -> np.ndarray:
        """(nnz,) int32, the left number of every pair."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def columns(self) -> ColumnOrder:
        """The pairs in the order of the transposed matrix."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.shape[1])
        return ColumnOrder(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), self.rows[order], order)

    def matrix(self) -> sp.csr_matrix:
        """The pairs as a sparse (m, n) matrix of weights."""
        return sp.csr_matrix((self.weights, self.indices, self.indptr), shape=self.shape)

    def select(self, keep: np.ndarray) -> "Interactions":
        """Return the pairs where the mask (nnz,) is True; all ids and features stay, so positions do not change."""
        keep = np.asarray(keep, dtype=bool)
        if keep.shape != (len(self),):
            raise ValueError(f"keep has shape {keep.shape}; it must be ({len(self)},), one entry a pair")
        counts = np.bincount(self.rows[keep], minlength=self.shape[0])
        return replace(
            self,
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=self.indices[keep],
            weights=self.weights[keep],
            timestamps=None if self.timestamps is None else self.timestamps[keep],
            split=None if self.split is None else self.split[keep],
        )

    def with_features(
        self, *, left: _pairs.MatrixLike | None = None, right: _pairs.MatrixLike | None = None
    ) -> "Interactions":
        """Return the same pairs with features (m, d) and (n, d'), rows in the order of the ids, or by the ids in a
        DataFrame's index; None keeps the old."""
        sides = ("left", left, self.left_ids), ("right", right, self.right_ids)
        new = {f"{side}_features": _pairs.check_features(X, side, ids) for side, X, ids in sides if X is not None}
        return replace(self, **new)


_OPTIONAL = ("timestamps", "split", "left_features", "right_features")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Answers to "which pair is closer?", in one canonical form.

    Parameters
    ----------
    indices: (m, 3) rows (i, j, k) meaning d(i, j) < d(i, k), or (m, 4) rows (i, j, l, k) meaning d(i, j) < d(l, k);
        uint32 rows of `objects`.
    objects: (n,) the objects' names, of any type.
    weights: (m,) positive weights or vote counts, or None for 1 each.
    annotators: (m,) who answered, or None.
    n_dropped: how many invalid rows the reader left out.
    source: how the reader understood the file, or None.
    events: (m,) integers or None. Rows with the same number are one answer, a choice of their common near pair among
        several pairs: "c is the odd one of a, b, c" is the rows (a, b, c) and (b, a, c) of one event.
    judgements: (m,) integers, or (m, 2) for comparisons of two ratings, the nearer pair's first, or None. Rows with a
        common number are held out and redrawn together.

    Raises ValueError (TypeError for indices that are no numbers) if shapes do not fit, an index is no object, a row
    repeats an index in one question, a weight is not positive and finite, or the rows of an event have different near
    pairs. `data.comparisons` builds these from files and arrays.

    Attributes
    ----------
    indices, objects, weights, annotators, n_dropped, source, events: as given.
    judgements: as given, or the events.

    Examples
    --------
    >>> answers = nk.Comparisons(np.array([[0, 1, 2]], np.uint32), np.array(["Oslo", "Bonn", "Rome"]))
    >>> len(answers), answers.objects[answers.indices[0]].tolist()
    (1, ['Oslo', 'Bonn', 'Rome'])
    """

    indices: np.ndarray
    objects: np.ndarray
    weights: np.ndarray | None = None
    annotators: np.ndarray | None = None
    n_dropped: int = 0
    source: Reading | None = None
    events: np.ndarray | None = None
    judgements: np.ndarray | None = None

    def __post_init__(self) -> None:
        indices = as_indices(self.indices, "indices")
        objects = as_array(self.objects, "objects")
        if objects.ndim != 1:
            raise ValueError(f"objects has shape {objects.shape}; it must be 1-D, one name per object")
        if len(indices) and int(indices.max()) >= len(objects):
            row = int((indices >= len(objects)).any(axis=1).argmax())
            raise ValueError(
                f"indices row {row} is {indices[row].tolist()}; there are only {counted(len(objects), 'object')}"
            )
        bad = invalid_rows(indices)
        if bad.any():
            raise ValueError(describe_invalid(bad, indices))
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "objects", objects)
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, _column(column, name, len(indices)))
        if self.events is not None:
            _check_events(self.events, indices)
            object.__setattr__(self, "judgements", self.events if self.judgements is None else self.judgements)

    def __repr__(self) -> str:
        return f"Comparisons({len(self):,} of {counted(self.n_objects, 'object')})"

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_objects(self) -> int:
        return len(self.objects)

    @property
    def n_columns(self) -> int:
        """3 for triplets, 4 for quadruplets."""
        return self.indices.shape[1]

    def take(self, rows: Chosen) -> "Comparisons":
        """The comparisons at `rows` (indices, a slice or a mask), over the same objects."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        taken = {name: None if column is None else column[rows] for name, column in columns.items()}
        return replace(self, indices=self.indices[rows], **taken)

    def quadruplets(self) -> np.ndarray:
        """The comparisons as (m, 4) rows (i, j, l, k), with l = i for triplets."""
        return as_quadruplets(self.indices)


_COLUMNS = ("weights", "annotators", "events", "judgements")
_COMPARED = 2048  # comparisons at a time: their differences stay in the cache

Answers: TypeAlias = Comparisons | ArrayLike
"""Training data of an ordinal embedding: the record, or rows of numbers."""


def as_quadruplets(rows: np.ndarray) -> np.ndarray:
    """Rows (i, j, k) or (i, j, l, k) as (m, 4) rows (i, j, l, k) in C order, with l = i for triplets."""
    return np.ascontiguousarray(rows[:, [0, 1, 0, 2]] if rows.shape[1] == 3 else rows)


def nearer(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) whether d(i, j) < d(l, k) between the rows of X (n, p), for rows (i, j, k) or (i, j, l, k)."""
    found = np.empty(len(rows), bool)
    for start in range(0, len(rows), _COMPARED):
        i, j, l, k = as_quadruplets(rows[start : start + _COMPARED]).T  # noqa: E741  the paper's letters
        with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are not nearer
            near, far = X[i] - X[j], X[l] - X[k]
            closer = np.einsum("mp,mp->m", near, near) < np.einsum("mp,mp->m", far, far)
        found[start : start + _COMPARED] = closer
    return found


def as_indices(array: ArrayLike, name: str) -> np.ndarray:
    """`array` as a C-contiguous uint32 (m, 3) or (m, 4); floats are accepted if they are whole numbers."""
    if any(isinstance(column, str) for column in getattr(array, "columns", ())):
        raise TypeError(f"{name} is a table, whose columns have names; pass nk.read_comparisons({name})")
    if isinstance(array, str | PathLike):
        raise TypeError(f"{name} is {str(array)!r}; pass nk.read_comparisons({str(array)!r})")
    array = as_array(array, name)
    array = as_array(array.tolist(), name) if array.dtype.kind == "O" else array  # a table's columns of several types
    if array.ndim != 2 or array.shape[1] not in (3, 4):
        raise ValueError(
            f"{name} has shape {array.shape}; it must be (m, 3), rows (i, j, k) for d(i, j) < d(i, k), or (m, 4), "
            "rows (i, j, l, k) for d(i, j) < d(l, k)"
        )
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} has dtype {array.dtype}; it must hold integer indices. For names, use "
            "nearkin.data.comparisons_from_names(rows)"
        )
    array = _pairs.check_exact(array, name)
    with np.errstate(invalid="ignore"):
        bad = ~((array >= 0) & (array < 2**32) & (array == np.floor(array)))
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        raise ValueError(f"{name} row {row} is {array[row].tolist()}; indices must be whole numbers in [0, 2^32)")
    return np.ascontiguousarray(array, dtype=np.uint32)


def invalid_rows(indices: np.ndarray) -> np.ndarray:
    """(m,) mask of meaningless rows: a triplet that repeats an index, a pair of one object, a pair with itself."""
    if indices.shape[1] == 3:
        i, j, k = indices.T
        return (i == j) | (i == k) | (j == k)
    i, j, l, k = indices.T  # noqa: E741  the paper's letters
    return (i == j) | (l == k) | ((i == l) & (j == k)) | ((i == k) & (j == l))


def describe_invalid(bad: np.ndarray, indices: np.ndarray) -> str:
    """The text of the error for rows that repeat an index."""
    first = int(bad.argmax())
    what = f"{int(bad.sum())} of {len(indices)} comparisons repeat an index or compare a pair with itself"
    return f"{what}, the first is row {first} {indices[first].tolist()}; remove them, or read with missing='drop'"


def _check_events(events: np.ndarray, indices: np.ndarray) -> None:
    order = np.argsort(events, kind="stable")
    near = np.sort(as_quadruplets(indices)[order, :2], axis=1)  # a pair has no order
    split = (events[order][1:] == events[order][:-1]) & (near[1:] != near[:-1]).any(axis=1)
    if split.any():
        event = events[order][int(split.argmax())]
        rows = np.flatnonzero(events == event)[:5].tolist()
        raise ValueError(f"events: rows {rows} are event {event}, and must have one near pair")


def _column(column: ArrayLike, name: str, length: int) -> np.ndarray:
    column = as_array(column, name)
    if column.shape != (length,) and (name != "judgements" or column.shape != (length, 2)):
        raise ValueError(f"{name} has shape {column.shape}; it must be ({length},), one entry per comparison")
    if name in ("events", "judgements") and column.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {column.dtype}; it must hold integers")
    if name == "weights":
        if column.dtype.kind not in "iufb":
            raise TypeError(f"weights has dtype {column.dtype}; it must be numeric")
        column = column.astype(np.float32)
        if not (np.isfinite(column) & (column > 0)).all():
            row = int((~np.isfinite(column) | (column <= 0)).argmax())
            raise ValueError(f"weights row {row} is {column[row]}; weights must be positive and finite")
    return column
