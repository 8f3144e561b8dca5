"""Parquet: a column of lists, or as many numeric columns as the vectors are wide (extra `parquet`)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nearkin.data.formats.rows import Rows, check_layout, streamed_rows
from nearkin.data.locator import Locator


def import_pyarrow() -> tuple[Any, Any]:
    """Return the modules (pyarrow, pyarrow.parquet); ImportError that says what to install."""
    try:
        import pyarrow  # an optional peer: 170 MB
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed: pip install 'nearkin[parquet]'"
        ) from error
    return pyarrow, pyarrow.parquet


def open_parquet(where: Locator) -> Rows:
    """Rows of a .parquet file: its list column (`file.parquet:column` where there are several), or its numeric columns.

    ValueError if it is damaged, has several list columns and none is named, a column that is no number, nulls, or lists
    of different lengths.
    """
    pa, parquet = import_pyarrow()
    try:
        file = parquet.ParquetFile(where.path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{where.path} is no Parquet file ({error}); write it again") from error
    with file:
        names = _columns(pa, file.schema_arrow, where)
        n = file.metadata.num_rows
        first = next(file.iter_batches(1, columns=names), None)
        block = np.empty((0, 1)) if first is None else batch_rows(pa, first, names, None, where)
    shape = check_layout(str(where), (n, block.shape[1]), block.dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        with parquet.ParquetFile(where.path) as opened:
            for batch in opened.iter_batches(rows, columns=names):
                yield batch_rows(pa, batch, names, shape[1], where)

    return streamed_rows(shape, block.dtype, blocks)


def _is_list(pa: Any, kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _columns(pa: Any, schema: Any, where: Locator) -> list[str]:
    lists = [field.name for field in schema if _is_list(pa, field.type)]
    if where.key is not None:
        if where.key not in lists:
            raise ValueError(f"{where.path} has no list column {where.key!r}; it has {', '.join(lists) or 'none'}")
        return [where.key]
    if len(lists) > 1:
        listed = ", ".join(f"{where.path}:{name}" for name in lists)
        raise ValueError(f"{where.path} has {len(lists)} list columns; name one of {listed}")
    if lists:
        return lists
    for field in schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            raise ValueError(
                f"{where.path}: column {field.name!r} is of type {field.type}, no number; "
                "keep one column of lists, or numeric columns only"
            )
    return schema.names


def batch_rows(pa: Any, batch: Any, names: list[str], d: int | None, where: Locator) -> np.ndarray:
    """Vectors (n, d) in the columns `names` of a record batch; ValueError for nulls or lists of unequal lengths."""
    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise ValueError(f"{where.path}: column {name!r} has nulls; every row needs a vector")
    if not _is_list(pa, columns[0].type):
        return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)
    values = columns[0].flatten()
    lengths = np.unique([len(columns[0][0].values), *columns[0].value_lengths().to_numpy(zero_copy_only=False)])
    if len(lengths) != 1 or (d is not None and lengths[0] != d):
        raise ValueError(f"{where.path}: the lists of {names[0]!r} have lengths {lengths}; every row needs the same")
    if values.null_count:
        raise ValueError(f"{where.path}: the lists of {names[0]!r} hold nulls; give numbers only")
    return values.to_numpy(zero_copy_only=False).reshape(len(columns[0]), int(lengths[0]))
