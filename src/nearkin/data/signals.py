"""Which of the two signals a table holds: pairs (who took what) or comparisons (which is nearer)."""

from itertools import combinations

from nearkin._fields import FileOrFrame
from nearkin.data.names import COMPARISONS, DISSIMILARITY, OPTIONS, PAIRS, SIMILARITY, normal
from nearkin.data.tables import Table, read_table

_WIDE = 12  # columns: long tables have fewer
_KEYS = ("triplets", "quadruplets", "comparisons", "indices")


def kind_of(source: FileOrFrame, *, header: bool | None = None, delimiter: str | None = None) -> str:
    """ "pairs" or "comparisons", by the names and the number of columns; ValueError if it can be either."""
    table = read_table(source, header=header, delimiter=delimiter)
    if asks_comparisons(table):
        return "comparisons"
    if has_pairs(table):
        return "pairs"
    if table.header is not False and len(table.columns) == 2:
        return "pairs"
    objects = [column for column in table.columns.values() if column.is_text or column.values.dtype.kind in "iu"]
    if len(objects) == len(table.columns) and len(objects) in (3, 4) and _one_vocabulary(table):
        return "comparisons"
    if len(table.columns) == 2:
        return "pairs"
    names = list(table.columns)
    if len(names) > _WIDE:
        raise ValueError(
            f"{table.name} has {len(names)} columns ({', '.join(names[:3])}, ...): is it a wide table, a column for "
            "every item? Write it long, a row for every pair (user, item, value, or object, object, distance). If it "
            "is long already, type left=... and right=... (on the command line --left and --right), or "
            "kind='comparisons' (--kind comparisons)"
        )
    raise ValueError(
        f"{table.name} can hold pairs or comparisons (columns {', '.join(names)}); type kind='pairs' with "
        "left=... and right=..., or kind='comparisons' (on the command line --kind pairs --left --right, or --kind "
        "comparisons)"
    )


def holds_pairs(path: FileOrFrame) -> bool:
    """Whether the table at `path` has columns with the usual names of both sides of a pair, and not of comparisons."""
    try:
        table = read_table(path)
    except ValueError:
        return False
    return has_pairs(table) and not asks_comparisons(table)


def has_pairs(table: Table) -> bool:
    names = {normal(name) for name in table.columns}
    return all(names & set(PAIRS[role]) for role in ("left", "right"))


def asks_comparisons(table: Table) -> bool:
    """Whether the columns' names are those of comparisons: anchor, near, far; options with an answer or an anchor."""
    if any(key in table.matrices for key in _KEYS):
        return True
    names = {normal(name) for name in table.columns}
    near, far, anchor, response, odd = (
        names & set(COMPARISONS[role]) for role in ("near", "far", "anchor", "response", "odd")
    )
    if {"i", "j", "k"} <= names or (near - {"j"} and far - {"k"}) or odd:
        return True
    if not has_pairs(table) and names & {*SIMILARITY, *DISSIMILARITY}:
        return True
    options = any(first in names and second in names for first, second in OPTIONS)
    answered = (response - {"label"}) or (anchor - {"i"}) or (names & set(COMPARISONS["rating"]) and not _sides(names))
    return bool(options and answered and len(names) > 2)


def _sides(names: set[str]) -> bool:
    return {"left", "right"} <= names


def _one_vocabulary(table: Table) -> bool:
    """Whether all columns draw from the same values: each two of them share a third of theirs."""
    values = [set(map(str, column.values.tolist())) for column in table.columns.values()]
    return all(3 * len(a & b) >= len(a | b) for a, b in combinations(values, 2))
