"""The columns of a table of pairs: ids to numbers, checks, duplicates merged."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_finite

Features = np.ndarray | sp.csr_matrix


def number_ids(values: Any, catalogue: Any, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (nnz,) of `values` in the catalogue of ids, and the catalogue; ValueError for missing or unknown ids."""
    values = _as_ids(values, side)
    if catalogue is None:
        ids, numbers = np.unique(values, return_inverse=True)
        return numbers.reshape(-1).astype(np.int32), ids
    ids = _as_ids(catalogue, f"{side}_ids")
    if len(ids) and (ids.dtype.kind == "U") != (values.dtype.kind == "U"):
        raise TypeError(f"{side} has ids of type {values.dtype} and {side}_ids of {ids.dtype}; use one type for both")
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


def check_weights(weights: Any, count: int) -> np.ndarray:
    if weights is None:
        return np.ones(count, dtype=np.float32)
    weights = check_finite(np.asarray(weights, dtype=np.float32), "weights")
    if (weights < 0).any():
        raise ValueError(f"weights has {(weights < 0).sum()} negative entries; every weight must be at least 0")
    return weights


def check_timestamps(timestamps: Any) -> np.ndarray | None:
    if timestamps is None:
        return None
    timestamps = np.asarray(timestamps)
    if timestamps.dtype.kind == "M":
        timestamps = timestamps.astype("datetime64[s]").astype(np.int64)
    if timestamps.dtype.kind not in "iuf":
        raise TypeError(f"timestamps has dtype {timestamps.dtype}; it must be numbers or datetime64")
    return check_finite(timestamps, "timestamps")


def check_features(features: Any, name: str, count: int) -> Features | None:
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


def merge_pairs(
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
