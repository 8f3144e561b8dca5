"""DataFrames of pandas, Polars and Arrow as columns and as vectors, through narwhals."""

from typing import Any

import numpy as np

from nearkin._fields import Extra
from nearkin.data.column import Column, as_text, exact_integers
from nearkin.data.row_ids import choose_ids, understood


def is_frame(source: Extra) -> bool:
    """Whether `source` is a DataFrame that narwhals knows (a path, a list and an array are none)."""
    import narwhals as nw  # only where tables are read

    return nw.dependencies.is_into_dataframe(source)


def frame_columns(source: Extra) -> list[Column]:
    """The columns of a DataFrame or an Arrow table; nulls are marked, never turned into values."""
    import narwhals as nw  # only where tables are read

    frame = nw.from_native(source, eager_only=True)
    if len(set(frame.columns)) < len(frame.columns):
        raise ValueError(f"the table has two columns of one name: {', '.join(map(str, frame.columns))}; rename one")
    return [_column(str(series.name), series, nw) for series in frame.iter_columns()]


def frame_vectors(source: Extra) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Vectors (n, d) in a DataFrame, its numeric columns or its one column of lists; their ids, and what they are.

    ValueError for anything else.
    """
    columns = frame_columns(source)
    lists = [column for column in columns if column.is_text and isinstance(_first(column), list | tuple | np.ndarray)]
    if len(lists) > 1:
        raise ValueError(f"the table has {len(lists)} list columns; keep one: {', '.join(c.name for c in lists)}")
    others = [column for column in columns if column not in lists]
    text, whole = ([c.name for c in others if c.values.dtype.kind in kinds] for kinds in ("O", "iu"))
    ids = choose_ids(text, whole)
    used = lists or [column for column in columns if column.name != ids]
    for column in used:
        if column.missing is not None or column.values.dtype.kind not in ("O" if lists else "iuf"):
            raise ValueError(f"column {column.name!r} of the table has nulls or no numbers; vectors are numbers only")
    if not used or not len(used[0]):
        raise ValueError("the table has no rows of numbers; it needs at least one")
    X = _stacked(lists[0]) if lists else np.stack([column.values for column in used], axis=1)
    aside = [column.name for column in others if lists and column.name != ids]
    names = next((column.ids() for column in others if column.name == ids), None)
    return X, names, understood("the table", len(X), X.shape[1], ids, aside)


def _stacked(column: Column) -> np.ndarray:
    """A column of lists as (n, d)."""
    widths = sorted({len(row) for row in column.values.tolist()})
    if len(widths) > 1:
        raise ValueError(f"the lists of {column.name!r} have lengths {widths[:5]}; every row needs the same")
    try:
        X = np.array([list(row) for row in column.values.tolist()])
    except ValueError as error:
        raise ValueError(f"the lists of {column.name!r} hold no numbers ({error})") from error
    if X.ndim != 2 or X.dtype.kind not in "iuf":
        raise ValueError(f"the lists of {column.name!r} hold {X.dtype} of shape {X.shape}; they must hold numbers")
    return X


def _first(column: Column) -> Any:
    return column.values[0] if len(column) else None


def _column(name: str, series: Extra, nw: Extra) -> Column:
    kind = series.dtype
    missing = series.is_null().to_numpy().astype(bool)
    marked = missing if missing.any() else None
    if kind.is_integer():
        full = series if marked is None else series.fill_null(0)
        values = full.to_numpy()
        large = values.dtype == np.uint64 and values.max(initial=0) >= 2**63
        return Column(name, values if large else values.astype(np.int64), marked)
    if kind.is_float() or kind.is_decimal():
        return Column(name, np.asarray(series.cast(nw.Float64).to_numpy(), np.float64), marked)
    if kind == nw.Boolean:
        return Column(name, np.array([bool(value) for value in series.to_list()]), marked)
    if kind in (nw.Datetime, nw.Date):
        return Column(name, np.array(series.to_list(), dtype="datetime64[s]"), marked)
    values = series.to_list()
    if kind == nw.List or kind == nw.Array:
        return Column(name, as_text(values), marked)
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return Column(name, as_text(["" if value is None else value for value in values]), marked)
    return _objects(name, values)


def _objects(name: str, values: list[Any]) -> Column:
    """A column of Python objects, all text or all integers once the missing ones (None, NaN) are marked."""
    missing = np.array([value is None or (isinstance(value, float) and value != value) for value in values], bool)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    marked = missing if missing.any() else None
    kinds = {type(value) for value in present}
    if kinds and kinds <= {list, tuple, np.ndarray}:
        return Column(name, as_text(values), marked)
    if kinds <= {str}:
        return Column(name, as_text(["" if gone else v for v, gone in zip(values, missing, strict=True)]), marked)
    if kinds == {int}:
        found = exact_integers([0 if gone else v for v, gone in zip(values, missing, strict=True)])
        if found is not None:
            return Column(name, found, marked)
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"column {name!r} holds values of type {listed}; it must hold text, whole numbers or numbers")
