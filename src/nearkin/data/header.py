"""Whether the first line of a text table names its columns, and whether its first column may name its rows."""

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._pairs import coded
from nearkin.data.column import Column, is_number
from nearkin.data.names import known

_CHANCE = 0.05  # at most, that a line of data is taken for a header
SEEN = 1000  # columns that are looked at


def is_header(first: list[str], body: list[Column], source: str, *, vectors: bool = False) -> bool:
    """Decide by four signs, in this order; ValueError that names what to type if two readings are left.

    1. The line has a name that columns usually have ("user", "anchor", "rating"), and no cell of it stands below it.
    2. Text above a column of numbers is a name. A number above a column of numbers is data.
    3. A cell that occurs again below it is data.
    4. A line none of whose cells ever recurs is a header where other lines recur: in exchangeable data the first is
       the only such line with a chance below 1 in n + 1, and 1 in 20 is enough.

    Of a table of vectors the second sign is enough, as is a line without numbers, or one that reads 0, 1, 2, ...: the
    column numbers that pandas writes, also behind an id's name.
    """
    numbers = list(map(is_number, first))
    if vectors and all(numbers):
        return len(first) > 1 and _counts(first, 0)
    if vectors and not len(body[0]):
        return not (any(numbers) and all(numbers[1:]))
    if vectors and (not any(numbers) or _counts(first[1:], 0) or _counts(first[1:], 1)):
        return True
    first, body = first[:SEEN], body[:SEEN]
    if not len(body[0]):
        return any(known(cell) for cell in first) and not any(numbers)
    above = [(number, column.is_numeric) for number, column in zip(numbers, body, strict=False)]
    says_data = any(cell and column for cell, column in above)
    says_header = any(not cell and column for cell, column in above)
    if vectors:
        return says_header
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


def _counts(cells: list[str], start: int) -> bool:
    return cells == [str(i) for i in range(start, start + len(cells))]
