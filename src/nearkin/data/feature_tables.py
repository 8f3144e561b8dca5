"""Features of users or items from a table: one row an id, numbers and categories as columns."""

from os import PathLike

import numpy as np
import scipy.sparse as sp

from nearkin._pairs import Features
from nearkin.data.column import Column, is_code
from nearkin.data.tables import read_table

_SEPARATOR = "|"  # between several categories of one entry, as in MovieLens' genres


def read_features(path: str | PathLike, id_column: str | None = None) -> tuple[np.ndarray, Features, list[str]]:
    """Read ids (n,), features (n, d) and the names of the d columns from a .csv, .tsv, .parquet or .npz table.

    The ids stand in `id_column`, by default the first. Columns of numbers are brought to mean 0 and variance 1, those
    of text become one column of 0 and 1 for each category; an entry such as "Drama|War" has both, an empty one none.
    Features are dense float32, or CSR where there are categories. ValueError for ids that repeat, for missing
    numbers, and for a table without features.
    """
    table = read_table(path)
    name = next(iter(table.columns), "") if id_column is None else id_column
    ids = table.column(name, "id_column").ids()
    columns = {column: values for column, values in table.columns.items() if column != name}
    if len(set(ids.tolist())) < len(ids):
        raise ValueError(f"column {name!r} of {table.name} repeats ids; features need one row for each")
    if any(len(values) != len(ids) for values in columns.values()):
        raise ValueError(f"the columns of {table.name} have different lengths; features need one row for each id")
    blocks: list[Features] = []
    names: list[str] = []
    for column, values in columns.items():
        numbers = None if is_code(values) else values.maybe_numbers()
        block, labels = _categories(values) if numbers is None else _number(numbers, column, table.name)
        blocks.append(block)
        names += labels
    if not names:
        raise ValueError(f"{table.name} has no column beside {name!r}; it must hold at least one feature")
    if all(isinstance(block, np.ndarray) for block in blocks):
        return ids, np.hstack([np.asarray(block) for block in blocks]), names
    return ids, sp.csr_matrix(sp.hstack(blocks), dtype=np.float32), names


def _number(values: np.ndarray, column: str, path: str) -> tuple[np.ndarray, list[str]]:
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        bad = np.flatnonzero(~np.isfinite(numbers))
        raise ValueError(
            f"column {column!r} of {path} has {len(bad)} missing or infinite numbers, the first in row {bad[0]}; "
            "fill them, or write the column as text to make it categories"
        )
    largest = np.abs(numbers).max()
    numbers = numbers / (largest if largest > 0 else 1.0)  # squares of 1e300 are beyond float64
    spread = numbers.std()
    return ((numbers - numbers.mean()) / (spread if spread > 0 else 1.0))[:, None].astype(np.float32), [column]


def _categories(column: Column) -> tuple[sp.csr_matrix, list[str]]:
    gone = column.missing if column.missing is not None else np.zeros(len(column), bool)
    values = ["" if missing else str(value) for value, missing in zip(column.values.tolist(), gone, strict=True)]
    sets = [[part for part in value.split(_SEPARATOR) if part] for value in values]
    names = sorted({part for parts in sets for part in parts})
    number = {part: i for i, part in enumerate(names)}
    indices = [number[part] for parts in sets for part in dict.fromkeys(parts)]
    indptr = np.cumsum([0] + [len(dict.fromkeys(parts)) for parts in sets])
    block = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(values), len(names)))
    return block, [f"{column.name}={part}" for part in names]
