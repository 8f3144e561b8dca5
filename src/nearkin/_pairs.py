"""The columns of a table of pairs: ids to numbers, checks, duplicates merged."""

from collections.abc import Collection, KeysView, Set, ValuesView
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import compute

from nearkin._check import as_array, check_finite, from_tensor
from nearkin._fields import counted
from nearkin._types import ArrayLike

Features = np.ndarray | sp.csr_matrix

MatrixLike: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray
"""Types of a matrix of features or pairs."""


def real_matrix(matrix: MatrixLike, name: str = "matrix") -> sp.coo_matrix:
    """The stored entries of a sparse matrix; ValueError for complex numbers and for another number of axes."""
    values: Any = matrix if sp.issparse(matrix) else np.asarray(matrix)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(f"{name} has shape {values.shape} and dtype {values.dtype}; it must be (m, n) real numbers")
    return sp.coo_matrix(values)


class Coded(NamedTuple):
    """Integers or text (n,) by distinct values: `codes` (n,) are numbers in `names` (k,)."""

    codes: np.ndarray
    names: pa.Array

    def array(self) -> np.ndarray:
        """The values: int64, or strings."""
        return plain_array(self.names)[self.codes]


def coded(cells: pa.Array) -> Coded:
    """Cells of Arrow by their distinct values."""
    if cells.type == pa.int64() and not cells.null_count:
        values = cells.to_numpy()
        if values.min(initial=0) >= 0 and values.max(initial=0) < 4 * len(values):  # counting is faster than hashing
            met = np.bincount(values) > 0
            return Coded((np.cumsum(met, dtype=np.int32) - 1)[values], pa.array(np.flatnonzero(met)))
    found = cells.dictionary_encode()
    return Coded(found.indices.to_numpy(), found.dictionary)


def plain_array(names: pa.Array) -> np.ndarray:
    """Numbers, or text as strings of NumPy."""
    values = names.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype.kind == "O" else values


def number_ids(
    values: "ArrayLike | Coded", catalogue: ArrayLike | None, name: str, listed: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n,) of `values` in the catalogue of ids, and the catalogue; ValueError for missing or unknown ids.

    Errors call the two `name` and `listed`, by default the name with "_ids".
    """
    values = values if isinstance(values, Coded) else as_ids(values, name)
    if catalogue is None:
        return unique_ids(values)
    listed = listed or f"{name}_ids"
    ids = as_ids(catalogue, listed)
    place, own = unique_ids(ids)
    if len(own) < len(ids):
        raise ValueError(f"{listed} repeats ids; each must stand once, pass np.unique({listed})")
    numbers, met = unique_ids(values)
    if len(ids) and len(met) and (own.dtype.kind == "U") != (met.dtype.kind == "U"):
        kinds = ["text" if one.dtype.kind == "U" else str(one.dtype) for one in (met, own)]
        raise TypeError(f"{name} has ids of type {kinds[0]} and {listed} of {kinds[1]}; use one type for both")
    where = dict(zip(own.tolist(), np.argsort(place).tolist(), strict=True))
    found = np.array([where.get(one, -1) for one in met.tolist()], np.int64)
    if (found < 0).any():
        unknown = met[found < 0]
        what = f"{name} has {counted(len(unknown), 'id')} that {listed} lacks, the first is {unknown[0].item()!r}"
        many = f"{int((found[numbers] < 0).sum())} of {counted(len(numbers), 'entry', 'entries')}"
        raise ValueError(f"{what} ({many}); add them to it, or leave these entries out")
    return found[numbers].astype(np.int32), ids.astype(str) if ids.dtype.kind == "O" else ids


def unique_ids(values: "np.ndarray | Coded") -> tuple[np.ndarray, np.ndarray]:
    """For every id its number (n,) int32 among the different ones, and these, sorted: text as a string array."""
    if not isinstance(values, Coded):
        values = coded(pa.array(values.astype(object) if values.dtype.kind in "OU" else values))
    names = plain_array(values.names)
    order = np.argsort(names)
    order = order[np.bincount(values.codes, minlength=len(names))[order] > 0]
    place = np.empty(len(names), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[values.codes], names[order]


def check_exact(values: np.ndarray, title: str) -> np.ndarray:
    """`values` unchanged; ValueError, which begins with `title`, for floats so large that their type rounds whole
    numbers: 2^24 for float32, 2^53 for float64. Ids among them would be merged."""
    if values.dtype.kind != "f":
        return values
    bits = np.finfo(values.dtype).nmant + 1
    large = np.abs(values) >= 2.0**bits
    if large.any():
        what = f"{values.dtype} rounds whole numbers from 2^{bits} on, the first is {values[large][0]:.0f}"
        way = "read them as text or integers from where they were written"
        raise ValueError(f"{title} has ids that are no exact integers: {what}; {way}")
    return values


def as_ids(values: "ArrayLike | Collection[object]", name: str) -> np.ndarray:
    """Ids (n,) of pairs, comparisons and indexes: numbers, or text as strings or objects of str. ValueError for missing
    ones, which -1 and "" are too; TypeError for anything but numbers alone, or text alone."""
    values = cast(ArrayLike, list(values) if isinstance(values, KeysView | ValuesView) else values)
    ids = as_array(values, name)
    if ids.ndim != 1:
        raise ValueError(f"{name} has shape {ids.shape}; it must be 1-D, one id an entry")
    ids = ids.astype(object) if ids.dtype.kind == "T" else ids
    try:  # of a list: NumPy makes one type of its values
        cells = pa.array(values if isinstance(values, list | tuple) else ids, from_pandas=True)
        is_text = pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)
        if not (is_text or pa.types.is_null(cells.type) or pa.types.is_integer(cells.type) or cells.type in _FLOATS):
            raise TypeError(f"type {cells.type}")
        cells = cells.cast(pa.int64()) if pa.types.is_integer(cells.type) else cells
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has an id with half a character (a lone surrogate); rename it") from error
    except (TypeError, ValueError, ArithmeticError, NotImplementedError) as error:
        way = f"[v.decode() for v in {name}]" if "binary" in str(error) else f"[str(v) for v in {name}]"
        raise TypeError(f"{name} has ids that are not all numbers, or all text ({error}); give {way}") from error
    # -1 is what pandas' codes hold for a missing value, and answers for none
    none = compute.match_substring_regex(cells, "^(-1)?$") if is_text else compute.equal(cells, -1)
    missing = np.asarray(compute.fill_null(none, True)).astype(bool)
    if missing.any():
        what = f"{counted(missing.sum(), 'missing id')} (None, NaN, empty or -1)"
        raise ValueError(f"{name} has {what}, the first at entry {int(missing.argmax())}; remove these rows")
    if is_text:
        _check_ends(cells, name)
        return ids
    return check_exact(cells.to_numpy(zero_copy_only=False) if len(cells) else ids, name)


# a blank at an end, or NUL, which NumPy cuts there
ODD_ENDS = r"^[\s\p{Z}\x{FEFF}\x{200B}]|[\s\p{Z}\x{FEFF}\x{200B}]$|\x00"


def _check_ends(text: pa.StringArray, name: str) -> None:
    odd = text.filter(compute.match_substring_regex(text, ODD_ENDS))
    if len(odd):
        raise ValueError(f"{name} has the id {odd[0].as_py()!r}, which holds a NUL character, or a blank at an end")


_FLOATS = (pa.float32(), pa.float64())


def unordered(ids: "ArrayLike | Set[ArrayLike]") -> ArrayLike:
    """Ids whose order means nothing: a set as a list, anything else unchanged."""
    return cast(ArrayLike, list(ids)) if isinstance(ids, Set) else ids


def check_split(split: ArrayLike | None) -> np.ndarray | None:
    """Parts as uint8; ValueError for anything but 0 (train), 1 (validation) and 2 (test)."""
    if split is None:
        return None
    split = as_array(split, "split")
    odd = split if split.dtype.kind not in "iuf" else split[~np.isin(split, (0, 1, 2))]
    if len(odd):
        raise ValueError(f"split holds {odd[0]}; it must hold 0 (train), 1 (validation) and 2 (test)")
    return split.astype(np.uint8)


def check_weights(weights: ArrayLike | None, count: int) -> np.ndarray:
    if weights is None:
        return np.ones(count, dtype=np.float32)
    weights = as_array(weights, "weights")
    if weights.dtype.kind not in "iufbO":
        raise TypeError(f"weights has dtype {weights.dtype}; it must be numbers (times are timestamps=)")
    with np.errstate(over="ignore"):  # beyond float32 a weight is infinite, which is refused
        weights = check_finite(np.asarray(weights, dtype=np.float32), "weights")
    if (weights < 0).any():
        raise ValueError(f"weights has {counted((weights < 0).sum(), 'entry', 'entries')} below 0; give none")
    return weights


TWO_UNITS = "times of two units, such as seconds and milliseconds"
_ERAS = (1e8, 1e11, 1e14, 1e17)  # since 1970, from 1973 on: seconds, milliseconds, microseconds, nanoseconds


def eras(times: np.ndarray) -> np.ndarray:
    """For each of the times (n,) its unit, if it is one from 1973 on: 1 for seconds to 4 for nanoseconds; else 0."""
    return np.searchsorted(_ERAS, np.abs(times), side="right")


def check_timestamps(timestamps: ArrayLike | None) -> np.ndarray | None:
    if timestamps is None:
        return None
    times: Any = as_array(timestamps, "timestamps")
    if times.dtype.kind in "OM":
        column = pa.array(times.astype("datetime64[us]") if times.dtype.kind == "M" else times, from_pandas=True)
        if column.null_count:
            first = column.is_null().index(True)
            raise ValueError(f"timestamps has {counted(column.null_count, 'missing time')}, the first at entry {first}")
        if pa.types.is_temporal(column.type):
            micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()
            times = micros / 1e6 if (micros % 1_000_000).any() else micros // 1_000_000
    if times.dtype.kind not in "iuf":
        raise TypeError(f"timestamps has dtype {times.dtype}; it must be numbers, or times of NumPy or pandas")
    times = check_finite(times, "timestamps")
    if len(times) and eras(times.min()) != eras(times.max()):
        raise ValueError(f"timestamps has {TWO_UNITS}, from {times.min()} to {times.max()}; bring them to one")
    return times


def check_features(features: MatrixLike | None, name: str, ids: np.ndarray) -> Features | None:
    """Features as a dense float32 array or a float32 CSR matrix; ValueError if the rows do not match the ids.

    Rows of a DataFrame of pandas whose index holds the ids go to these ids, whatever their order.
    """
    if features is None:
        return None
    values: Any = from_tensor(_by_ids(features, name, ids), name)
    sparse = sp.issparse(values)
    values = sp.csr_matrix(values, dtype=np.float32) if sparse else np.ascontiguousarray(values, dtype=np.float32)
    if values.ndim != 2 or values.shape[0] != len(ids) or not values.shape[1]:
        raise ValueError(f"{name} has shape {values.shape}; it must be ({len(ids)}, d), rows in the order of the ids")
    check_finite(values.data if sparse else values, f"{name}.data" if sparse else name)
    return values


def _by_ids(features: Any, name: str, ids: np.ndarray) -> Any:
    """The values of a DataFrame by its index of ids; anything else, and an index of row numbers, unchanged. ValueError
    for ids in a column."""
    for column in getattr(features, "columns", ()):
        if len(features) == len(ids) and sorted(map(str, features[column])) == sorted(map(str, ids.tolist())):
            way = f"pass frame.set_index({column!r}) of pandas, or if they are a feature frame.to_numpy()"
            raise ValueError(f"{name} has the ids in column {column!r}; {way}")
    index = getattr(features, "index", None)
    if index is None or not hasattr(features, "reindex") or list(index) == list(range(len(index))):
        return features
    lost = [one for one in ids.tolist() if one not in index]
    if lost or not index.is_unique:
        what = f"lacks {counted(len(lost), 'id')}, the first is {lost[0]!r}" if lost else "repeats ids"
        raise ValueError(f"the index of {name} {what}; features need one row for each id")
    return features.reindex(ids).to_numpy()


def merge_pairs(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], weights: np.ndarray, timestamps: np.ndarray | None,
    split: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:  # fmt: skip
    """Sort the pairs by row and column and merge those that are equal, under the first of their times.

    The first time is kept for splits by time: a pair observed before the cut belongs to training.
    """
    n = len(rows)  # sorted by counting, as SciPy transposes a matrix: one of an entry a row, then one of all pairs
    places = np.int32 if n < 2**31 else np.int64
    by_column: Any = sp.csr_matrix(
        (np.ones(n, bool), columns, np.arange(n + 1, dtype=places)), shape=(n, shape[1])
    ).tocsc()
    by_row: Any = sp.csc_matrix((by_column.indices, rows[by_column.indices], by_column.indptr), shape=shape).tocsr()
    order, columns = by_row.data, by_row.indices
    rows = np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(by_row.indptr))
    again = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    if timestamps is not None and again.any():
        many = np.flatnonzero(np.r_[again, False] | np.r_[False, again])
        order[many] = order[many][np.lexsort((timestamps[order[many]], columns[many], rows[many]))]
    first = np.flatnonzero(np.r_[True, ~again])
    return (
        rows[first],
        columns[first],
        np.add.reduceat(weights.take(order), first),
        None if timestamps is None else timestamps.take(order[first]),
        None if split is None else np.minimum.reduceat(split[order], first),
    )
