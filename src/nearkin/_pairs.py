"""The columns of a table of pairs: ids to numbers, checks, duplicates merged."""

import re
from collections.abc import Collection, KeysView, Set, ValuesView
from datetime import UTC, date, datetime
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import compute

from nearkin._check import as_array, check_finite
from nearkin._fields import counted
from nearkin._types import ArrayLike

Features = np.ndarray | sp.csr_matrix

MatrixLike: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray
"""Types of a matrix of features or pairs."""


def real_matrix(matrix: MatrixLike, name: str = "matrix") -> sp.coo_matrix:
    """The stored entries of a sparse matrix; ValueError for complex numbers and for another number of axes."""
    given: Any = matrix if sp.issparse(matrix) else np.asarray(matrix)
    if given.ndim != 2 or given.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has shape {given.shape} and dtype {given.dtype}; it must be a matrix (m, n) of real numbers"
        )
    return sp.coo_matrix(given)


def matrix_entries(
    matrix: MatrixLike, name: str = "matrix"
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Row numbers, column numbers and values (nnz,) of a sparse matrix's stored entries, and its shape."""
    entries = real_matrix(matrix, name)
    m, n = entries.get_shape()
    return np.asarray(entries.row), np.asarray(entries.col), np.asarray(entries.data), (m, n)


class Coded(NamedTuple):
    """Text (n,) by its distinct values: `codes` (n,) are numbers in `names` (k,), which all occur."""

    codes: np.ndarray
    names: pa.StringArray


def coded(text: "pa.Array") -> Coded:
    """Strings of Arrow, or their dictionary array, by their distinct values."""
    found = text if pa.types.is_dictionary(text.type) else text.dictionary_encode()
    return Coded(found.indices.to_numpy(), found.dictionary.cast(pa.string()))


def joined(parts: list[Coded]) -> Coded:
    """Columns of equal length as one (n, columns) array of codes."""
    every = coded(pa.concat_arrays([part.names for part in parts]))
    starts = np.cumsum([0, *(len(part.names) for part in parts)])
    codes = [every.codes[start:][part.codes] for part, start in zip(parts, starts, strict=False)]
    return Coded(np.stack(codes, axis=1), every.names)


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
    if len(ids) and _kind(ids) != _kind(values) and (isinstance(values, Coded) or len(values)):
        raise TypeError(f"{name} has ids of type {_type(values)} and {listed} of {_type(ids)}; use one type for both")
    place, own = unique_ids(ids)
    if len(own) < len(ids):
        raise ValueError(f"{listed} repeats ids; each must stand once, pass np.unique({listed})")
    numbers, met = unique_ids(values)
    where = dict(zip(own.tolist(), np.argsort(place).tolist(), strict=True))
    found = np.array([where.get(name, -1) for name in met.tolist()], np.int64)
    if (found < 0).any():
        unknown = met[found < 0]
        raise ValueError(
            f"{name} has {counted(len(unknown), 'id')} that {listed} lacks, the first is {unknown[0].item()!r} "
            f"({int((found[numbers] < 0).sum())} of {counted(len(numbers), 'entry', 'entries')}); add them to it, or "
            "leave these entries out"
        )
    return found[numbers].astype(np.int32), ids.astype(str) if ids.dtype.kind == "O" else ids


def unique_ids(values: "np.ndarray | Coded") -> tuple[np.ndarray, np.ndarray]:
    """For every id its number (n,) int32 among the different ones, and these, sorted: text as a string array."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUiu":
        ids, numbers = np.unique(values, return_inverse=True)
        return numbers.reshape(-1).astype(np.int32), ids
    if isinstance(values, Coded) or values.dtype.kind in "OU":
        codes, names = values if isinstance(values, Coded) else coded(pa.array(values.astype(object), pa.string()))
        text = _bytes(names)
        order = np.argsort(text)  # UTF-8 sorts as Python's text does
        ids = _text(text[order])
    else:
        found = pa.array(values).dictionary_encode()
        codes, names = found.indices.to_numpy(), found.dictionary.to_numpy()
        order = np.argsort(names)
        ids = names[order]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[codes], ids


def _bytes(names: pa.StringArray) -> np.ndarray:
    """The names (k,) in UTF-8 as NumPy's bytes of one width; ValueError for a NUL character, lost at their ends."""
    if not len(names):
        return np.empty(0, "S1")
    ends = np.frombuffer(names.buffers()[1], np.int32)[names.offset :][: len(names) + 1]
    letters = np.frombuffer(names.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    if not letters.all():
        odd = names.filter(compute.match_substring(names, "\0"))[0].as_py()
        raise ValueError(f"the id {odd!r} holds a NUL character; rename it")
    lengths = np.diff(ends)
    found = np.zeros((len(names), lengths.max(initial=1)), np.uint8)
    found[np.arange(found.shape[1]) < lengths[:, None]] = letters
    return found.view(f"S{found.shape[1]}").reshape(-1)


def _text(ids: np.ndarray) -> np.ndarray:
    """Bytes (k,) in UTF-8 as NumPy's text."""
    letters = ids.view(np.uint8).reshape(len(ids), ids.itemsize)
    if (letters < 128).all():
        return letters.astype(np.uint32).view(f"U{ids.itemsize}").reshape(-1)
    return np.char.decode(ids, "utf-8")


def check_exact(values: np.ndarray, title: str) -> np.ndarray:
    """`values` unchanged; ValueError, which begins with `title`, for floats so large that their type rounds whole
    numbers: 2^24 for float32, 2^53 for float64. Ids among them would be merged."""
    if values.dtype.kind != "f":
        return values
    bits = np.finfo(values.dtype).nmant + 1
    large = np.abs(values) >= 2.0**bits
    if large.any():
        raise ValueError(
            f"{title} has ids that are no exact integers: {values.dtype} rounds whole numbers from 2^{bits} on, the "
            f"first is {values[large][0]:.0f}; read them as text or integers from where they were written"
        )
    return values


def _kind(ids: "np.ndarray | Coded") -> str:
    """What ids must share to be equal: "text", "mask" of bools, which are no ids among numbers, or "numbers"."""
    if isinstance(ids, Coded) or ids.dtype.kind in "OU":
        return "text"
    return "mask" if ids.dtype.kind == "b" else "numbers"


def _type(ids: "np.ndarray | Coded") -> str:
    return "text" if isinstance(ids, Coded) or _kind(ids) == "text" else str(ids.dtype)


def as_ids(values: "ArrayLike | Collection[object]", name: str) -> np.ndarray:
    """Ids (n,) of pairs, comparisons and indexes: numbers, or text as strings or objects of str."""
    given: Any = list(values) if isinstance(values, KeysView | ValuesView) else values
    ids = as_array(given, name)
    if ids.ndim != 1:
        raise ValueError(f"{name} has shape {ids.shape}; it must be 1-D, one id an entry")
    # NumPy makes one type of a list's values, and cuts text
    cells: list = list(given) if isinstance(given, list | tuple) else ids.tolist() if ids.dtype.kind in "OTU" else []
    types = set(map(type, cells))
    kinds = {next((one for one in (bool, str, Real) if issubclass(kind, one)), kind) for kind in types}
    if kinds == {str}:
        missing = ids == ""
    else:
        missing = np.fromiter(map(_is_missing, cells), bool, len(cells)) if ids.dtype.kind == "O" else ids != ids
        missing |= ids == -1  # what pandas' codes hold for a missing value, and answers for none
    if missing.any():
        raise ValueError(
            f"{name} has {counted(missing.sum(), 'missing id')} (None, NaN, empty or -1), the first at entry "
            f"{int(missing.argmax())}; remove these rows"
        )
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in types))
        raise TypeError(f"{name} mixes ids of types {names}; use one type, for example [str(v) for v in {name}]")
    if kinds == {str}:
        text = "".join(cells)
        if (not text.isascii() or "\0" in text) and (odd := _UNSAFE.search(text)):
            first = next(cell for cell in cells if odd[0] in cell)
            fault = "a NUL character" if odd[0] == "\0" else "half a character (a lone surrogate)"
            raise ValueError(f"{name} has the id {first!r}, which holds {fault}; rename it")
        return ids.astype(object) if ids.dtype.kind == "T" else ids
    ids = check_exact(_plain(cells, name) if cells else ids, name)
    if ids.dtype.kind in "OSVc" or ids.ndim != 1:
        kind, way = types.pop().__name__ if types else ids.dtype, "v.decode()" if ids.dtype.kind == "S" else "str(v)"
        raise TypeError(f"{name} has ids of type {kind}; use numbers or text, for example [{way} for v in {name}]")
    return ids.astype(np.int64) if ids.dtype.kind == "u" and ids.max(initial=0) < 2**63 else ids


_UNSAFE = re.compile("[\0\ud800-\udfff]")  # NumPy cuts the first at an end, and no file takes the others


def unordered(ids: "ArrayLike | Set[ArrayLike]") -> ArrayLike:
    """Ids whose order means nothing: a set as a list, anything else unchanged."""
    return cast(ArrayLike, list(ids)) if isinstance(ids, Set) else ids


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)  # NaN and NaT
    except TypeError:  # pandas' NA has no truth value
        return True


def _plain(cells: list, name: str) -> np.ndarray:
    """Python values as an array of their type; ValueError for integers that no array holds exactly."""
    ids = np.asarray(cells)
    if ids.dtype.kind in "fO" and (whole := [v for v in cells if isinstance(v, Integral)]):
        low, high = int(min(cells)), int(max(cells))
        if len(whole) == len(cells) and low >= 0 and high < 2**64:
            return np.array(cells, np.uint64)
        if max(-low, high) > 2**53:
            raise ValueError(f"{name} has integers that 64 bits do not hold; pass text: [str(v) for v in {name}]")
    return ids


def check_split(split: ArrayLike | None) -> np.ndarray | None:
    """Parts as uint8; ValueError for anything but 0 (train), 1 (validation) and 2 (test)."""
    if split is None:
        return None
    split = as_array(split, "split")
    odd = split if split.dtype.kind not in "iufb" else split[~np.isin(split, (0, 1, 2))]
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
        raise ValueError(
            f"weights has {counted((weights < 0).sum(), 'negative entry', 'negative entries')}; every weight must be "
            "at least 0"
        )
    return weights


def _in_utc(time: date) -> date | None:
    """A time without a zone, which NumPy's have not; None for NaT."""
    if time != time:
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if isinstance(time, datetime) and time.tzinfo else time


def check_timestamps(timestamps: ArrayLike | None) -> np.ndarray | None:
    if timestamps is None:
        return None
    timestamps = as_array(timestamps, "timestamps")
    if timestamps.dtype.kind == "O" and all(isinstance(time, date) for time in timestamps):
        timestamps = np.array([_in_utc(time) for time in timestamps], "datetime64[us]")
    if timestamps.dtype.kind == "M":
        if np.isnat(timestamps).any():
            gone = np.isnat(timestamps)
            raise ValueError(
                f"timestamps has {counted(gone.sum(), 'missing time')} (NaT), the first at entry {gone.argmax()}"
            )
        micros = timestamps.astype("datetime64[us]").astype(np.int64)
        timestamps = micros / 1e6 if (micros % 1_000_000).any() else micros // 1_000_000
    if timestamps.dtype.kind not in "iuf":
        raise TypeError(f"timestamps has dtype {timestamps.dtype}; it must be numbers or datetime64")
    return check_finite(timestamps, "timestamps")


def check_features(features: MatrixLike | None, name: str, ids: np.ndarray) -> Features | None:
    """Features as a dense float32 array or a float32 CSR matrix; ValueError if the rows do not match the ids.

    Rows of a DataFrame of pandas whose index holds the ids go to these ids, whatever their order.
    """
    if features is None:
        return None
    features, count = _by_ids(features, name, ids), len(ids)
    if sp.issparse(features):
        found = sp.csr_matrix(features, dtype=np.float32)
        check_finite(found.data, f"{name}.data")
        shape: tuple[int, ...] = found.get_shape()
    else:
        found = np.ascontiguousarray(features, dtype=np.float32)
        shape = found.shape
    if len(shape) != 2 or shape[0] != count or shape[1] == 0:
        raise ValueError(
            f"{name} has shape {shape}; it must be ({count}, d), one row for each id, in the order of the ids"
        )
    return check_finite(found, name) if isinstance(found, np.ndarray) else found


def _by_ids(features: Any, name: str, ids: np.ndarray) -> Any:
    """The values of a DataFrame by its index of ids; anything else, and an index of row numbers, unchanged."""
    index = getattr(features, "index", None)
    if index is None or not hasattr(features, "reindex") or list(index) == list(range(len(index))):
        return features
    lost = [one for one in ids.tolist() if one not in index]
    if lost or not index.is_unique:
        what = f"lacks {counted(len(lost), 'id')}, the first is {lost[0]!r}" if lost else "repeats ids"
        raise ValueError(f"the index of {name} {what}; features need one row for each id")
    return features.reindex(ids).to_numpy()


def _sorted(key: np.ndarray) -> np.ndarray:
    """The stable order of keys from 0 on: NumPy sorts 16 bits at a time several times faster."""
    order = None
    for shift in range(0, max(int(key.max(initial=0)).bit_length(), 1), 16):
        digits = (key >> shift).astype(np.uint16)  # the lowest bits
        places = np.argsort(digits if order is None else digits[order], kind="stable")
        order = places if order is None else order[places]
    return np.arange(len(key)) if order is None else order


def merge_pairs(
    key: np.ndarray, weights: np.ndarray, timestamps: np.ndarray | None, split: np.ndarray | None, duplicates: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Sort the pairs by key and merge those that are equal, under the first of their times.

    The first time is kept for splits by time: a pair observed before the cut belongs to training.
    """
    order = _sorted(key)
    ordered = key[order]
    again = ordered[1:] == ordered[:-1]
    if timestamps is not None and again.any():
        many = np.flatnonzero(np.r_[again, False] | np.r_[False, again])
        order[many] = order[many][np.lexsort((timestamps[order[many]], ordered[many]))]
    weights = weights[order]
    first = np.flatnonzero(np.r_[True, ~again])
    last = np.concatenate([first[1:], [len(key)]]) - 1  # the latest of equals
    reduce = {"sum": np.add, "max": np.maximum}
    merged = weights[last] if duplicates == "last" else reduce[duplicates].reduceat(weights, first)
    return (
        ordered[first],
        merged,
        None if timestamps is None else timestamps[order][first],
        None if split is None else np.minimum.reduceat(split[order], first),
    )
