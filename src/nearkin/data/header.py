"""Whether the first line of a table names its columns, or is data."""

import numpy as np

from nearkin.data.column import Column, as_decimals, as_integers
from nearkin.data.names import known

_CHANCE = 0.05  # at most, that a line of data is taken for a header


def is_header(first: list[str], body: list[Column], source: str) -> bool:
    """Decide by four signs, in this order; ValueError that says what to type where they leave two readings.

    1. The line has a name that columns usually have ("user", "anchor", "rating"), and no cell of it stands below it.
    2. Text above a column of numbers is a name. A number above a column of numbers is data.
    3. A cell that stands in the table below it is data.
    4. A line none of whose cells ever recurs is a header where other lines recur: in exchangeable data the first is
       the only such line with a chance below 1 in n + 1, and 1 in 20 is enough.
    """
    if not len(body[0]):
        return any(known(cell) for cell in first) and not any(_is_number(cell) for cell in first)
    above = [(_is_number(cell), _are_numbers(column)) for cell, column in zip(first, body, strict=True)]
    says_data = any(cell and column for cell, column in above)
    says_header = any(not cell and column for cell, column in above)
    recurs = any(_stands_in(cell, column) for cell, column in zip(first, body, strict=True))
    if not says_data and not recurs and any(known(cell) for cell in first):
        return True
    if says_header != says_data:
        return says_header
    if recurs or any(_stands_in(cell, column) for cell in first for column in body):
        return False
    if not says_data and len(body[0]) > 1:
        fresh = _fresh_rows(body)
        if (fresh + 1) / (len(body[0]) + 1) <= _CHANCE:
            return True
    raise ValueError(
        f"{source} begins with {', '.join(map(repr, first[:4]))}, which may be names of columns or data; type "
        "header=True or header=False (on the command line --header or --no-header)"
    )


def _is_number(cell: str) -> bool:
    return as_decimals(np.array([cell], dtype=object)) is not None


def _are_numbers(column: Column) -> bool:
    return not column.is_text or as_decimals(column.values) is not None


def _stands_in(cell: str, column: Column) -> bool:
    if column.is_text:
        return bool((column.values == cell).any())
    number = as_integers([cell])
    return number is not None and bool((column.values == number[0]).any())


def _fresh_rows(body: list[Column]) -> int:
    """Rows none of whose cells stands in any other row."""
    counts: dict[object, int] = {}
    for column in body:
        values, times = np.unique(column.values, return_counts=True)
        for value, n in zip(values.tolist(), times.tolist(), strict=True):
            counts[value] = counts.get(value, 0) + n
    fresh = np.ones(len(body[0]), bool)
    for column in body:
        fresh &= np.fromiter((counts[value] == 1 for value in column.values.tolist()), bool, len(fresh))
    return int(fresh.sum())
