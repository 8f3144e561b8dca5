"""Checks of arguments: every message names the value, what is needed and what to type instead.

A `random_state` becomes a NumPy or a torch generator here; no global state is read or written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Hashable, Iterable
from copy import copy
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nearkin._fields import Extra, StrPath, counted
from nearkin._types import ArrayLike, Record, Seed

if TYPE_CHECKING:
    import torch
    from sklearn.base import BaseEstimator

T = TypeVar("T")


def check_choice(value: T, name: str, choices: Iterable[object]) -> T:
    """Return `value` if it is one of `choices`; ValueError otherwise."""
    choices = tuple(choices)
    if not isinstance(value, Hashable) or value not in set(choices):  # arrays have no single truth value
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    return value


def check_instance(value: object, name: str, *kinds: type[T]) -> T:
    """Return `value` if it is of one of the types; TypeError otherwise."""
    if not isinstance(value, kinds):
        rooms = ("" if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}'s " for kind in kinds)
        wanted = " or ".join(room + kind.__name__ for room, kind in zip(rooms, kinds, strict=True))
        raise TypeError(f"{name} is of type {type(value).__name__}; it must be {wanted}")
    return value


def check_mapping(value: Any, name: str) -> Record:
    """Return a mapping, also a pandas Series, as a dict; TypeError for anything else."""
    if not hasattr(value, "keys"):
        raise TypeError(f"{name} is of type {type(value).__name__}; it must be a dict")
    return dict(value)


def check_integer(value: object, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """Return `value` as an int within [low, high]; TypeError if it is no integer, ValueError if it is out of range."""
    return int(_in_range(_of_kind(value, name, Integral, "an integer"), name, low, high, "an integer"))


def check_real(
    value: object, name: str, *, low: float | None = None, high: float | None = None, above: float | None = None
) -> float:
    """Return `value` as a finite float within [low, high] and, if given, strictly greater than `above`."""
    if not math.isfinite(number := _of_kind(value, name, Real, "a number")):
        raise ValueError(f"{name} is {number!r}; it must be finite")
    if above is not None and number <= above:
        raise ValueError(f"{name} is {number!r}; it must be greater than {above}")
    return float(_in_range(number, name, low, high, "a number"))


def _of_kind(value: Any, name: str, kind: type[Any], wanted: str) -> Any:
    """The number if it is of the kind; integers beyond int64, which NumPy and FAISS lack, are refused."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be {wanted}")
    if isinstance(value, Integral) and int(value).bit_length() > 63:
        raise ValueError(f"{name} is an integer of {int(value).bit_length()} bits; it must be below 2^63")
    return value


def _in_range(value: Any, name: str, low: float | None, high: float | None, kind: str) -> Any:
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = " and ".join([f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None))
        raise ValueError(f"{name} is {value!r}; it must be {kind} of {bounds}")
    return value


def check_finite(X: np.ndarray, name: str = "X") -> np.ndarray:
    """Return X (n, ...) if every entry is finite; ValueError with the count of bad rows and the first of them."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):  # one cheap pass in the type of X; an overflow to inf only costs the exact look below
        return X
    if (bad := ~np.isfinite(X.reshape(len(X), -1)).all(axis=1)).any():
        rows = f"{int(bad.sum()):,} of {counted(len(X), 'row')}, the first is row {int(bad.argmax())}"
        way = f"X[np.isfinite(X){'.all(axis=1)' * (X.ndim > 1)}]"
        raise ValueError(f"{name} contains NaN or infinity in {rows}; fill them, or remove these rows: {way}")
    return X


def check_magnitude(X: np.ndarray, name: str = "X", metric: str = "l2") -> np.ndarray:
    """Return X (n, d) if its rows are finite and can be compared by `metric`: squared distances end at 3.4e38 in
    float32, so no number may exceed 4e18 / sqrt(d); for "cosine" no row may be zero."""
    check_finite(X, name)
    if metric == "cosine" and not (rows := X.any(axis=1)).all():
        raise ValueError(zero_rows(name, len(X) - int(rows.sum()), len(X), int(rows.argmin())))
    limit, largest = 4e18 / math.sqrt(X.shape[1]), max(float(X.max(initial=0)), -float(X.min(initial=0)))
    if largest > limit:
        row, column = np.unravel_index(np.abs(X).argmax(), X.shape)
        raise ValueError(
            f"{name}[{row}, {column}] is {X[row, column]:g}, beyond {limit:.2g}: squared distances exceed float32. If "
            "it marks a missing value, remove the row or put a number in its place; else scale the data, for example "
            f"{name} / np.abs({name}).max()"
        )
    return X


def zero_rows(name: str, count: int, n: int, first: int) -> str:
    """The error text for rows of zeros, which cosine cannot compare."""
    return (
        f"{name} has {counted(count, 'row')} of zeros among {n:,}, the first is row {first}; a zero row has no "
        "direction, so no cosine: remove such rows, or take the metric l2 or ip"
    )


def check_queries(queries: ArrayLike, d: int, *, min_rows: int = 1, metric: str = "l2") -> np.ndarray:
    """Return queries (q, d) that `metric` compares with rows; TypeError or ValueError as for any vectors."""
    return check_magnitude(check_vectors(queries, name="queries", n_features=d, min_rows=min_rows), "queries", metric)


def check_not_vanishing(X: np.ndarray, metric: str = "l2") -> np.ndarray:
    """Return rows X (n, d); ValueError if float32 has about 0 for all their squared distances, and they are not 0, or
    rounds float64 beyond `check_rounding`, of directions for "cosine"."""
    largest = max(float(X.max(initial=0)), -float(X.min(initial=0))) if metric in ("l2", "ip") else 0
    if 0 < largest < 1e-18:
        raise ValueError(
            f"the largest value of X is {largest:.2g}; squares of such values are about 0 in float32, and no row is "
            f"nearer than another: scale the data and the queries alike, for example by {1 / largest:.0e}"
        )
    if X.dtype == np.float64 and metric != "hamming" and len(X):
        ways = {"l2": "take X.mean(axis=0) off data and queries", "ip": "take X.mean(axis=0) off the data alone"}
        ways["cosine"] = "divide rows of data and queries by their norms, take the data's mean off, and search by l2"
        some = X[:: 1 + len(X) // 4_096]
        some = some / np.abs(some).max(axis=1, keepdims=True) if metric == "cosine" else some
        check_rounding(some, np.float32, ways[metric])
    return X


def check_rounding(X: np.ndarray, dtype: type[np.floating[Any]], way: str) -> None:
    """ValueError if `dtype` rounds rows X (n, d) by more than 1/256 of their spread, as about a far middle. Rows that
    their own type would round as much are equal."""
    lost, spread = ((X - other).var(axis=0, dtype=np.float64).sum() for other in (X.astype(dtype), 0))
    if lost > spread / 256**2 > np.spacing(np.abs(X).max()) ** 2:
        raise ValueError(f"X is {X.dtype}, which {dtype.__name__} would round by more than 1/256 of its spread: {way}")


def repeated(values: np.ndarray) -> np.ndarray:
    """The different values that occur more than once (m,), sorted; one sorted copy is all that it takes."""
    ordered = np.sort(values)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def each_once(ids: np.ndarray, name: str = "ids") -> np.ndarray:
    """Ids (n,) unchanged; ValueError for one that is repeated. So a mask of 0 and 1 is no list of ids: masks are
    bool."""
    if len(twice := repeated(ids)):
        raise ValueError(
            f"{name}: {counted(len(twice), 'id occurs', 'ids occur')} more than once, the first is "
            f"{twice[0].item()!r}; give each once, and a mask as bool"
        )
    return ids


def check_codes(codes: ArrayLike, width: int, min_rows: int = 0) -> np.ndarray:
    """Return codes (n, width) uint8, C-contiguous; TypeError for another dtype, ValueError for another shape."""
    codes = as_array(codes, "codes")
    if codes.dtype != np.uint8:
        raise TypeError(f"codes has dtype {codes.dtype}; it must be uint8, as encode returns it")
    if codes.ndim != 2 or codes.shape[1] != width or len(codes) < min_rows:
        raise ValueError(f"codes has shape {codes.shape}; it must be uint8 (n, {width}) with n >= {min_rows}")
    return np.ascontiguousarray(codes)


def check_row_weights(weights: ArrayLike, n: int) -> np.ndarray:
    """Return weights (n,) as finite float64 numbers greater than 0; ValueError otherwise."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"weights has shape {weights.shape}; it must be ({n},) finite numbers greater than 0")
    return weights


def check_labels(labels: ArrayLike, name: str, n: int) -> np.ndarray:
    """Return class labels (n,), whole numbers or text; a column (n, 1) holds classes. Of several labels a row it is a
    mask (n, c) of dtype bool, dense or sparse, where two rows are alike if they share a label. ValueError for anything
    else."""
    mask = f"of several labels a row give a mask ({n}, c) of dtype bool, such as {name} != 0"
    dense: Any = labels
    found = as_array(dense.toarray() if hasattr(dense, "toarray") else labels, name, mask)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.dtype.kind == "O" and len({isinstance(cell, str) for cell in found.flat}) == 1:  # not text and numbers
        found = np.array(found.tolist())
    found = np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
    whole = found.dtype.kind in "iubU" or (found.dtype.kind == "f" and bool((found == np.floor(found)).all()))
    if found.ndim not in (1, 2) or len(found) != n or not whole or (found.ndim == 2 and found.dtype != np.bool_):
        raise ValueError(
            f"{name} has shape {found.shape} and dtype {found.dtype}; it must be ({n},) classes, whole numbers or "
            f"text, none missing; {mask}"
        )
    return found


def check_label_pair(
    labels: ArrayLike, name: str, n: int, others: ArrayLike, other: str, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n,) and (m,) as `check_labels` gives them, of one kind."""
    left, right = check_labels(labels, name, n), check_labels(others, other, m)
    if left.shape[1:] != right.shape[1:]:
        raise ValueError(f"{name} has shape {left.shape} and {other} {right.shape}; give both alike")
    check_same_kind(left, right, name, other)
    return left, right


def check_same_kind(labels: np.ndarray, others: np.ndarray, name: str, other: str) -> None:
    """TypeError where one of two arrays of labels is text and the other numbers: no label equals another."""
    left, right = ("text" if each.dtype.kind == "U" else "numbers" for each in (labels, others))
    if left != right:
        raise TypeError(f"{name} are {left} and {other} {right}; give labels of one type")


def has_unit_rows(X: np.ndarray) -> bool:
    """Whether all rows of X (n, d) have length 1, to a thousandth, or are zero: normalised, as metric "cosine" does."""
    blocks = (X[first : first + 4096] for first in range(0, len(X), 4096))  # most data end with the first rows
    lengths = (np.linalg.norm(rows.astype(np.float64), axis=1) for rows in blocks)
    return all(bool(((np.abs(norms - 1) <= 1e-3) | (norms == 0)).all()) for norms in lengths)


def from_tensor(X: ArrayLike, name: str = "X") -> ArrayLike:
    """The array of a torch tensor, or arrays of a list of them, without graph and on the CPU; anything else unchanged.
    Types that NumPy lacks (bfloat16) give float32."""
    if isinstance(X, np.ma.MaskedArray) and (hidden := int(np.ma.count_masked(X))):
        raise ValueError(
            f"{name} is a masked array with {counted(hidden, 'masked entry', 'masked entries')}; fill them or leave "
            f"their rows out, for example {name}[~np.ma.getmaskarray({name}).any(axis=-1)]"
        )
    if isinstance(X, list | tuple) and any(hasattr(row, "detach") for row in X[:1]):
        return [from_tensor(row, name) for row in X]  # pyright: ignore[reportArgumentType, reportReturnType]
    if not hasattr(X, "detach"):
        return X
    try:
        tensor = X.detach().cpu()  # pyright: ignore[reportAttributeAccessIssue]
    except NotImplementedError as error:  # torch's, of the meta device
        raise ValueError(f"{name} has no values ({error}); pass a tensor that holds them") from error
    try:
        return tensor.numpy()
    except TypeError:  # NumPy has no such type
        return (tensor.dequantize() if tensor.is_quantized else tensor.float()).numpy()


def check_output(path: StrPath) -> Path:
    """The path of a file or folder to write; ValueError for an empty name, for one with a NUL character, and for the
    current folder and those that hold it."""
    name = os.fspath(path)
    if not name.strip() or "\0" in name:
        raise ValueError(f"the name to write to is {name!r}; give the name of a file or folder")
    here = Path(os.path.realpath(os.curdir))
    if Path(os.path.realpath(name)) in (here, *here.parents):
        raise ValueError(
            f"{name} is the current folder, or holds it, and would be replaced: give the name of a file or folder in "
            "it, or change to another folder first"
        )
    return Path(path)


MAX_TEXT = 1_000  # characters of an id or a label: in an array of strings every one takes the room of the longest


def check_lengths(cells: Collection[object], name: str) -> None:
    """ValueError for a text of more than `MAX_TEXT` characters among these, or in lists among these."""
    kinds = set(map(type, cells))
    if any(issubclass(kind, str | bytes) for kind in kinds):
        for place, cell in enumerate(cells):
            if isinstance(cell, str | bytes) and len(cell) > MAX_TEXT:
                raise too_long(f"{name} has in entry {place}", cell)
    for row in cells if any(issubclass(kind, list | tuple) for kind in kinds) else ():
        check_lengths(row if isinstance(row, list | tuple) else (), name)


def too_long(start: str, text: str | bytes) -> ValueError:
    """The error, which begins with `start`, for a text that is too long for an id or a label."""
    return ValueError(
        f"{start} a text of {len(text):,} characters, {text[:20]!r}...; an id or a label has at most {MAX_TEXT:,}: is "
        "it the content? Give a short name"
    )


def as_array(values: ArrayLike, name: str, way: str = "give every row as many entries") -> np.ndarray:
    """As an array, also of a tensor; text among numbers stays an array of objects. TypeError if it is sparse;
    ValueError for masked entries, for text of more than `MAX_TEXT` characters, and for lists of different lengths,
    which names the `way` out."""
    if hasattr(values, "toarray") and not isinstance(values, np.ndarray):
        raise TypeError(f"{name} is sparse ({type(values).__name__}); it must be a dense array, pass {name}.toarray()")
    values = from_tensor(values, name)
    if isinstance(values, list | tuple):
        check_lengths(values, name)
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of different lengths; {way}") from error
    if found.dtype.kind in "OT" or (found.dtype.kind in "US" and found.itemsize > MAX_TEXT):
        check_lengths(found.ravel().tolist(), name)
    if found.dtype.kind == "U" and isinstance(values, list | tuple):  # NumPy makes text of numbers among text
        cells = np.array(values, dtype=object)
        return found if all(isinstance(cell, str) for cell in cells.flat) else cells
    return found


def check_vectors(
    X: ArrayLike,
    *,
    name: str = "X",
    n_features: int | None = None,
    min_rows: int = 1,
    finite: bool = True,
    small: bool = False,
    exact: bool = False,
) -> np.ndarray:
    """Return X as a C-contiguous finite (n, d) array, float64 if it was float64 and float32 otherwise. TypeError for
    sparse or non-numeric input, ValueError for complex numbers, another shape, NaN or infinity. Estimators use
    `validate_vectors`. `finite=False`: the caller checks for NaN and infinity. `small`: vectors of an index:
    types up to 2 bytes stay, and a DataFrame has no integers next to fractions. `exact`: integers become float64, as
    those of 8 bytes are too fine for float32."""
    _check_columns(X, name, vectors=small)
    given, X = X, as_array(X, name)
    if X.dtype.kind == "O" and X.ndim == 2:
        X = _numbers(given, name) if hasattr(given, "columns") else _objects(X, name)
    if X.dtype.kind == "c":
        raise ValueError(f"{name} has dtype {X.dtype}. Complex data not supported: pass {name}.real")
    if X.dtype.kind not in "fiub":
        way = f"np.stack({name})" if X.dtype.kind == "O" and X.ndim == 1 else f"np.asarray({name}, dtype=np.float32)"
        raise TypeError(f"{name} has dtype {X.dtype}; it must be numeric, pass {way}")
    if X.ndim != 2:
        way = "(1, -1) makes it one row" if X.ndim < 2 else f"({len(X)}, -1) makes a row of each entry"
        raise ValueError(f"{name} has shape {X.shape}; it must be 2-D (n, d). Reshape your data: {name}.reshape{way}")
    n, d = X.shape
    if d == 0 or n < min_rows:
        few = f"{d} feature(s)" if d == 0 else f"{n} sample(s)"
        raise ValueError(f"{name} has {few} (shape={X.shape}) while a minimum of {min_rows if d else 1} is required.")
    if n_features is not None and d != n_features:
        raise ValueError(f"{name} has {counted(d, 'column')}; it must have {n_features}, as the vectors before")
    dtype = X.dtype if X.dtype == np.float64 or (small and X.dtype.itemsize <= 2) else np.float32
    dtype = np.float64 if exact and X.dtype.kind in "iu" else dtype
    X = np.ascontiguousarray(X, dtype=dtype)
    return check_finite(X, name) if finite else X


def _objects(X: np.ndarray, name: str) -> np.ndarray:
    """Objects (n, d) that are numbers, as float64; TypeError for others."""
    if any(isinstance(cell, str) for cell in X.flat):
        raise TypeError(f"{name} holds text; it must be numeric, pass np.asarray({name}, dtype=np.float32)")
    try:
        return X.astype(np.float64)
    except OverflowError as error:
        raise ValueError(
            f"{name} holds a number beyond float64 ({error}); give numbers that float32 can hold"
        ) from error


def _numbers(frame: Any, name: str) -> np.ndarray:
    """The columns of a DataFrame as float64 (n, d), NaN where one has no value; TypeError names those of text."""
    import narwhals as nw

    _check_columns(frame, name, lambda kind: kind.is_numeric() or kind == nw.Boolean)
    columns = nw.from_native(frame, eager_only=True).iter_columns()
    return np.stack([column.cast(nw.Float64).to_numpy() for column in columns], axis=1)


def _check_columns(X: Extra, name: str, good: Callable[[Extra], bool] | None = None, vectors: bool = False) -> None:
    """TypeError names the columns of a DataFrame whose type is not `good`, or times, which many libraries make numbers;
    of `vectors` also integers and categories next to fractions, which are ids, labels or counts."""
    if not hasattr(X, "columns"):
        return
    import narwhals as nw  # every query is checked, and arrays need no narwhals

    frame: Extra = nw.from_native(X, eager_only=True, pass_through=True)
    kinds = frame.schema if isinstance(frame, nw.DataFrame) else {}
    apart = vectors and any(kind.is_float() for kind in kinds.values())
    good = good or (lambda kind: not (kind.is_temporal() or (apart and (kind.is_integer() or kind == nw.Categorical))))
    if other := [repr(word) for word, kind in kinds.items() if not good(kind)]:
        names = ", ".join(other[:5]) + ", ..." * (len(other) > 5)
        way = f"drop them, or type nk.read_vectors({name}, columns=[...]); {name}.to_numpy() takes integers too"
        raise TypeError(f"{name} has {counted(len(other), 'column')} without coordinates: {names}; {way}")


def validate_vectors(estimator: BaseEstimator, X: ArrayLike, *, reset: bool = False, min_rows: int = 1) -> np.ndarray:
    """`check_vectors` by scikit-learn's rules: sets or compares `n_features_in_` and feature names on `estimator`. Rows
    without names are not compared: methods call each other with arrays; `transform` warns of them by `check_names`.
    """
    width = None if reset else getattr(estimator, "n_features_in_", None)
    if type(X) is np.ndarray and X.dtype in (np.float32, np.float64) and X.shape[1:] == (width,) and len(X) >= min_rows:
        return check_finite(np.ascontiguousarray(X))  # what follows takes .1 ms, as long as a query of bits
    from sklearn.utils.validation import validate_data  # only estimators need scikit-learn

    rows = check_vectors(X, min_rows=min_rows)
    if not reset and not hasattr(X, "columns"):
        estimator = copy(estimator)
        vars(estimator).pop("feature_names_in_", None)
    named: Any = X if hasattr(X, "columns") else rows
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return rows


def check_names(estimator: object, X: ArrayLike, *, reset: bool = False) -> None:
    """scikit-learn's warning of rows X without names, if those of `fit` had names. With `reset`, an estimator that was
    fitted to the values of a DataFrame X gets the names of its columns."""
    from sklearn.utils.validation import validate_data

    if hasattr(X, "columns") == reset:  # `validate_vectors` compares names
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)  # pyright: ignore[reportArgumentType]


def numpy_generator(random_state: Seed = None) -> np.random.Generator:
    """Return a `numpy.random.Generator` from None, an int, a Generator (used unchanged) or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        way = "None, an integer of at least 0, numpy.random.default_rng(...) or a numpy.random.RandomState"
        raise type(error)(f"random_state is {random_state!r}; it must be {way}") from error


def draw_seed(generator: np.random.Generator) -> int:
    """Draw a seed in [0, 2^31 - 1) for libraries such as FAISS or torch."""
    return int(generator.integers(2**31 - 1))


def torch_generator(random_state: Seed | torch.Generator = None) -> torch.Generator:
    """Return a `torch.Generator` on the CPU from None, an int, a NumPy generator or a torch.Generator (unchanged)."""
    import torch  # the only torch user at this level

    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(draw_seed(numpy_generator(random_state)))
