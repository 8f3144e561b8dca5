"""Whether the first line of a text table names its columns, and whether its first column may name its rows."""

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._pairs import coded
from nearkin.data.column import Column, is_number
from nearkin.data.names import known
from nearkin.data.text import WHOLE, Cut

_CHANCE = 0.05  # at most, that a line of data is taken for a header
_SEEN = 1000  # columns that are looked at


def is_header(first: list[str], body: list[Column], source: str) -> bool:
    """Decide by four signs, in this order; ValueError that names what to type if two readings are left.

    1. The line has a name that columns usually have ("user", "anchor", "rating"), and no cell of it stands below it.
    2. Text above a column of numbers is a name. A number above a column of numbers is data.
    3. A cell that occurs again below it is data.
    4. A line none of whose cells ever recurs is a header where other lines recur: in exchangeable data the first is
       the only such line with a chance below 1 in n + 1, and 1 in 20 is enough.
    """
    first, body = first[:_SEEN], body[:_SEEN]
    if not len(body[0]):
        return any(known(cell) for cell in first) and not any(is_number(cell) for cell in first)
    above = [(is_number(cell), column.is_numeric) for cell, column in zip(first, body, strict=True)]
    says_data = any(cell and column for cell, column in above)
    says_header = any(not cell and column for cell, column in above)
    recurs = any(cell and _stand_in([cell], column) for cell, column in zip(first, body, strict=True))
    if not says_data and not recurs and any(known(cell) for cell in first):
        return True
    if says_header != says_data:
        return says_header
    if recurs or any(_stand_in(first, column) for column in body):
        return False
    if not says_data and len(body[0]) > 1 and (_fresh(body) + 1) / (len(body[0]) + 1) <= _CHANCE:
        return True
    raise ValueError(
        f"{source} begins with {', '.join(map(repr, first[:4]))}, which may be names of columns or data; type "
        "header=True or header=False (on the command line --header or --no-header)"
    )


def _stand_in(cells: list[str], column: Column) -> bool:
    """Whether one of the cells stands in a column of a text file."""
    return compute.any(compute.is_in(column.cells, pa.array(cells))).as_py()


def _fresh(body: list[Column]) -> int:
    """The number of rows none of whose cells occurs in another cell."""
    codes = coded(pa.concat_arrays([column.cells for column in body])).codes
    return int((np.bincount(codes) == 1)[codes].reshape(len(body), -1).all(axis=0).sum())


def names_vectors(cut: Cut) -> bool:
    """Whether the first line of a table of vectors is a header: one of its cells is no number, an id before numbers
    apart, or it reads 0, 1, 2, ...: the column numbers that pandas writes."""
    given = cut.where.text.header if cut.named is None else cut.named
    if given is not None:
        return given
    first, numbers = cut.first, list(map(is_number, cut.first))
    if all(numbers):
        return len(first) > 1 and _counts(first, 0)
    if len(first) == 1 or not cut.below:
        return len(first) == 1 or not all(numbers[1:])
    if _counts(first[1:], 0) or _counts(first[1:], 1):  # an id's name above the column numbers that pandas writes
        return True
    below = list(map(is_number, cut.below[0]))
    return not any(numbers) or any(b and not a for a, b in zip(numbers, below, strict=False))


def _counts(cells: list[str], start: int) -> bool:
    return cells == [str(i) for i in range(start, start + len(cells))]


def may_be_ids(rows: list[list[str]]) -> bool:
    """Whether a first column without such a name may hold ids: other whole numbers in every row, where the other
    columns have fractions, or its numbers simply count."""
    columns = zip(*rows, strict=True)
    first, *others = (all(map(WHOLE.fullmatch, column)) for column in columns)
    return first and (not any(others) or _counts([row[0] for row in rows], int(rows[0][0])))
