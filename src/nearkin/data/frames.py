"""DataFrames of pandas, Polars and Arrow as columns and as vectors, through narwhals."""

from typing import Any

import numpy as np

from nearkin.data.column import Column, as_text, exact_integers


def is_frame(source: Any) -> bool:
    """Whether `source` is a DataFrame that narwhals knows (a path, a list and an array are none)."""
    import narwhals as nw  # only where tables are read

    return nw.dependencies.is_into_dataframe(source)


def frame_columns(source: Any) -> list[Column]:
    """The columns of a DataFrame or an Arrow table; nulls are marked, never turned into values."""
    import narwhals as nw  # only where tables are read

    frame = nw.from_native(source, eager_only=True)
    if len(set(frame.columns)) < len(frame.columns):
        raise ValueError(f"the table has two columns of one name: {', '.join(map(str, frame.columns))}; rename one")
    return [_column(str(series.name), series, nw) for series in frame.iter_columns()]


def _column(name: str, series: Any, nw: Any) -> Column:
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
    missing = np.array([value is None or value != value for value in values], bool)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    marked = missing if missing.any() else None
    kinds = {type(value) for value in present}
    if kinds <= {str}:
        return Column(name, as_text(["" if gone else v for v, gone in zip(values, missing, strict=True)]), marked)
    if kinds == {int}:
        found = exact_integers([0 if gone else v for v, gone in zip(values, missing, strict=True)])
        if found is not None:
            return Column(name, found, marked)
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"column {name!r} holds values of type {listed}; it must hold text, whole numbers or numbers")
