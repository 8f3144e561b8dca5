"""The records that stages exchange: what was observed, in one canonical form."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_choice, check_finite

Features = np.ndarray | sp.csr_matrix


class ColumnOrder(NamedTuple):
    """The same pairs, column by column: `order[e]` is the row-order position of the e-th pair in column order."""

    indptr: np.ndarray  # (n + 1,) int64
    rows: np.ndarray  # (nnz,) int32
    order: np.ndarray  # (nnz,) int64


@dataclass(frozen=True, eq=False)
class Interactions:
    """Observed pairs between m left and n right entities, sorted by row, each pair once. Build it with `from_pairs`.

    `indptr` (m + 1,) and `indices` (nnz,) are the CSR structure; `weights`, `timestamps` and `split` (0 train,
    1 validation, 2 test) run along the pairs; features are dense (m, d) or CSR, None where there are none.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    left_ids: np.ndarray
    right_ids: np.ndarray
    timestamps: np.ndarray | None = None
    split: np.ndarray | None = None
    left_features: Features | None = None
    right_features: Features | None = None

    @classmethod
    def from_pairs(
        cls,
        left: Any,
        right: Any,
        weights: Any = None,
        timestamps: Any = None,
        *,
        split: Any = None,
        left_ids: Any = None,
        right_ids: Any = None,
        left_features: Any = None,
        right_features: Any = None,
        duplicates: str = "sum",
    ) -> "Interactions":
        """Build the record from one entry per observation; ids of any sortable type are kept as they are.

        `left_ids` and `right_ids` are the whole catalogues, in the order of the features' rows; without them they are
        the sorted ids that occur. `duplicates` says what becomes of the weights of a pair seen more than once: their
        "sum", the "last" one (the latest by timestamp, else by position) or the "max"; the latest timestamp and the
        smallest split are kept. Raises ValueError for missing ids, no pair, NaN or negative weights, and columns or
        features of another length.
        """
        check_choice(duplicates, "duplicates", ("sum", "last", "max"))
        rows, left_ids = number_ids(left, left_ids, "left")
        cols, right_ids = number_ids(right, right_ids, "right")
        if not len(rows):
            raise ValueError("there is no observed pair; left and right must hold at least one entry")
        columns = {"right": cols, "weights": weights, "timestamps": timestamps, "split": split}
        for name, column in columns.items():
            if column is not None and np.shape(column) != (len(rows),):
                raise ValueError(f"{name} has shape {np.shape(column)}; it must be ({len(rows)},), as left")
        merged = _merge(
            rows.astype(np.int64) * len(right_ids) + cols,
            _check_weights(weights, len(rows)),
            _check_timestamps(timestamps),
            None if split is None else np.asarray(split, dtype=np.uint8),
            duplicates,
        )
        key, merged_weights, merged_timestamps, merged_split = merged
        counts = np.bincount(key // len(right_ids), minlength=len(left_ids))
        return cls(
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=(key % len(right_ids)).astype(np.int32),
            weights=merged_weights,
            left_ids=left_ids,
            right_ids=right_ids,
            timestamps=merged_timestamps,
            split=merged_split,
            left_features=_check_features(left_features, "left_features", len(left_ids)),
            right_features=_check_features(right_features, "right_features", len(right_ids)),
        )

    @classmethod
    def from_matrix(cls, matrix: Any) -> "Interactions":
        """The record of a sparse (m, n) matrix: its stored entries are the pairs, its values the weights."""
        matrix = sp.coo_matrix(matrix)
        m, n = matrix.shape
        return cls.from_pairs(matrix.row, matrix.col, matrix.data, left_ids=np.arange(m), right_ids=np.arange(n))

    def __len__(self) -> int:
        return len(self.indices)

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
        """Return the pairs where the mask (nnz,) is True; all ids and features stay, so numbers do not move."""
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

    def with_features(self, *, left: Any = None, right: Any = None) -> "Interactions":
        """Return the same pairs with features (m, d) and (n, d'), rows in the order of the ids; None keeps the old."""
        m, n = self.shape
        return replace(
            self,
            left_features=self.left_features if left is None else _check_features(left, "left", m),
            right_features=self.right_features if right is None else _check_features(right, "right", n),
        )


def number_ids(values: Any, catalogue: Any, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (nnz,) of `values` in the catalogue of ids, and the catalogue; ValueError for missing or unknown ids."""
    values = _as_ids(values, side)
    if catalogue is None:
        ids, numbers = np.unique(values, return_inverse=True)
        return numbers.reshape(-1).astype(np.int32), ids
    ids = _as_ids(catalogue, f"{side}_ids")
    order = np.argsort(ids, kind="stable")
    found = np.searchsorted(ids, values, sorter=order)
    numbers = order[np.minimum(found, len(ids) - 1)] if len(ids) else np.zeros(len(values), dtype=np.int64)
    unknown = ids[numbers] != values if len(ids) else np.ones(len(values), dtype=bool)
    if unknown.any():
        first = np.asarray(values[np.argmax(unknown)]).item()
        raise ValueError(
            f"{side} has {unknown.sum()} ids that {side}_ids lacks, the first is {first!r}; add them to it"
        )
    if len(ids) > 1 and (ids[order][1:] == ids[order][:-1]).any():
        raise ValueError(f"{side}_ids repeats ids; each must stand once, pass np.unique({side}_ids)")
    return numbers.astype(np.int32), ids


def _as_ids(values: Any, name: str) -> np.ndarray:
    """Ids as a 1-D array of numbers or strings; ValueError for None, NaN and empty strings."""
    ids = np.asarray(values)
    if ids.ndim != 1:
        raise ValueError(f"{name} has shape {ids.shape}; it must be 1-D, one id an entry")
    if ids.dtype.kind == "O":
        missing = np.fromiter((v is None or v != v for v in ids), dtype=bool, count=len(ids))
        kinds = {type(v) for v in ids[~missing]}
        if not missing.any() and len(kinds) > 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"{name} mixes ids of types {names}; use one type, for example [str(v) for v in {name}]")
        ids = ids if missing.any() else np.asarray(ids.tolist())
    elif ids.dtype.kind == "f":
        missing = np.isnan(ids)
    else:
        missing = ids == "" if ids.dtype.kind == "U" else np.zeros(len(ids), dtype=bool)
    if missing.any():
        raise ValueError(
            f"{name} has {missing.sum()} missing ids (None, NaN or empty), the first at entry {int(missing.argmax())}; "
            "remove these pairs"
        )
    return ids


def _check_weights(weights: Any, count: int) -> np.ndarray:
    if weights is None:
        return np.ones(count, dtype=np.float32)
    weights = check_finite(np.asarray(weights, dtype=np.float32), "weights")
    if (weights < 0).any():
        raise ValueError(f"weights has {(weights < 0).sum()} negative entries; every weight must be at least 0")
    return weights


def _check_timestamps(timestamps: Any) -> np.ndarray | None:
    if timestamps is None:
        return None
    timestamps = np.asarray(timestamps)
    if timestamps.dtype.kind == "M":
        timestamps = timestamps.astype("datetime64[s]").astype(np.int64)
    if timestamps.dtype.kind not in "iuf":
        raise TypeError(f"timestamps has dtype {timestamps.dtype}; it must be numbers or datetime64")
    return check_finite(timestamps, "timestamps")


def _check_features(features: Any, name: str, count: int) -> Features | None:
    """Features as a dense float32 array or a float32 CSR matrix; ValueError if the rows do not match the ids."""
    if features is None:
        return None
    if sp.issparse(features):
        features = sp.csr_matrix(features, dtype=np.float32)
        check_finite(features.data, f"{name}.data")
    else:
        features = np.ascontiguousarray(features, dtype=np.float32)
    if features.ndim != 2 or features.shape[0] != count or features.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {features.shape}; it must be ({count}, d), one row for each id, in the order of the ids"
        )
    return features if sp.issparse(features) else check_finite(features, name)


def _merge(
    key: np.ndarray, weights: np.ndarray, timestamps: np.ndarray | None, split: np.ndarray | None, duplicates: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Sort the pairs by key and merge those that are equal."""
    order = np.lexsort((key,) if timestamps is None else (timestamps, key))  # stable: the last of equals comes last
    key, weights = key[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    last = np.concatenate([first[1:], [len(key)]]) - 1
    reduce: dict[str, Sequence[Any] | Any] = {"sum": np.add, "max": np.maximum}
    merged = weights[last] if duplicates == "last" else reduce[duplicates].reduceat(weights, first)
    return (
        key[first],
        merged,
        None if timestamps is None else timestamps[order][last],
        None if split is None else np.minimum.reduceat(split[order], first),
    )
