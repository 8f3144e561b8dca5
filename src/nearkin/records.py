"""The records that stages exchange: what was observed, in one canonical form."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Answers to "which pair is closer?", in one canonical form.

    indices: (m, 3) rows (i, j, k) meaning d(i, j) < d(i, k), or (m, 4) rows (i, j, l, k) meaning d(i, j) < d(l, k);
        uint32 rows of `objects`.
    objects: (n,) the objects' names, of any type.
    weights: (m,) positive weights or vote counts, or None for 1 each.
    annotators: (m,) who answered, or None.
    n_dropped: how many invalid rows the reader left out.

    Raises ValueError (TypeError for indices that are no numbers) if shapes do not fit, an index is no object, a row
    repeats an index in one question, or a weight is not positive and finite. `data.comparisons` builds these from
    files and arrays.
    """

    indices: np.ndarray
    objects: np.ndarray
    weights: np.ndarray | None = None
    annotators: np.ndarray | None = None
    n_dropped: int = 0

    def __post_init__(self) -> None:
        indices = as_indices(self.indices, "indices")
        objects = np.asarray(self.objects)
        if objects.ndim != 1:
            raise ValueError(f"objects has shape {objects.shape}; it must be 1-D, one name per object")
        if len(indices) and int(indices.max()) >= len(objects):
            row = int((indices >= len(objects)).any(axis=1).argmax())
            raise ValueError(f"indices row {row} is {indices[row].tolist()}; there are only {len(objects)} objects")
        bad = invalid_rows(indices)
        if bad.any():
            raise ValueError(describe_invalid(bad, indices))
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "objects", objects)
        for name in ("weights", "annotators"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, _column(column, name, len(indices)))

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_objects(self) -> int:
        return len(self.objects)

    @property
    def n_columns(self) -> int:
        """3 for triplets, 4 for quadruplets."""
        return self.indices.shape[1]

    def take(self, rows: Any) -> "Comparisons":
        """The comparisons at `rows` (indices, a slice or a mask), over the same objects."""
        weights = None if self.weights is None else self.weights[rows]
        annotators = None if self.annotators is None else self.annotators[rows]
        return replace(self, indices=self.indices[rows], weights=weights, annotators=annotators)

    def quadruplets(self) -> np.ndarray:
        """The comparisons as (m, 4) rows (i, j, l, k), with l = i for triplets."""
        return self.indices[:, [0, 1, 0, 2]] if self.n_columns == 3 else self.indices


def as_indices(array: Any, name: str) -> np.ndarray:
    """`array` as a C-contiguous uint32 (m, 3) or (m, 4); floats are accepted if they are whole numbers.

    Raises TypeError for other types, ValueError for NaN, fractions, negative numbers or another shape.
    """
    array = array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)
    if array.ndim != 2 or array.shape[1] not in (3, 4):
        raise ValueError(
            f"{name} has shape {array.shape}; it must be (m, 3), rows (i, j, k) for d(i, j) < d(i, k), or (m, 4), "
            "rows (i, j, l, k) for d(i, j) < d(l, k)"
        )
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} has dtype {array.dtype}; it must hold integer indices. For names, use "
            "nearkin.data.comparisons.comparisons_from_names(rows)"
        )
    if array.dtype.kind == "f" and array.size and not (np.isfinite(array) & (array == np.floor(array))).all():
        row = int((~np.isfinite(array) | (array != np.floor(array))).any(axis=1).argmax())
        raise ValueError(
            f"{name} row {row} is {array[row].tolist()}, with NaN or a fraction; indices are whole numbers"
        )
    if array.size and (array.min() < 0 or array.max() >= 2**32):
        row = int(((array < 0) | (array >= 2**32)).any(axis=1).argmax())
        raise ValueError(f"{name} row {row} is {array[row].tolist()}; indices must be in [0, 2^32)")
    return np.ascontiguousarray(array, dtype=np.uint32)


def invalid_rows(indices: np.ndarray) -> np.ndarray:
    """(m,) mask of rows that ask nothing: a triplet that repeats an index, a pair of one object, a pair with itself."""
    if indices.shape[1] == 3:
        i, j, k = indices.T
        return (i == j) | (i == k) | (j == k)
    i, j, l, k = indices.T  # noqa: E741  the paper's letters
    return (i == j) | (l == k) | ((i == l) & (j == k)) | ((i == k) & (j == l))


def describe_invalid(bad: np.ndarray, indices: np.ndarray) -> str:
    """The text of the error for rows that repeat an index."""
    rows = np.flatnonzero(bad)
    shown = ", ".join(f"{row} {indices[row].tolist()}" for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return (
        f"{len(rows)} of {len(indices)} comparisons repeat an index or compare a pair with itself: rows {shown}{more}; "
        'remove them, or read with on_invalid="drop"'
    )


def _column(column: Any, name: str, length: int) -> np.ndarray:
    column = np.asarray(column)
    if column.shape != (length,):
        raise ValueError(f"{name} has shape {column.shape}; it must be ({length},), one entry per comparison")
    if name == "weights":
        if column.dtype.kind not in "iufb":
            raise TypeError(f"weights has dtype {column.dtype}; it must be numeric")
        column = column.astype(np.float32)
        if not (np.isfinite(column) & (column > 0)).all():
            row = int((~np.isfinite(column) | (column <= 0)).argmax())
            raise ValueError(f"weights row {row} is {column[row]}; weights must be positive and finite")
    return column
