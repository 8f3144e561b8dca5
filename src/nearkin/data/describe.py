"""What nearkin understands of a table, without doing anything with it."""

from typing import Any

from nearkin._check import check_choice
from nearkin._fields import FileOrFrame
from nearkin.data.comparisons import read_comparisons
from nearkin.data.interactions import read_interactions
from nearkin.data.tables import kind_of
from nearkin.records import Reading


def describe(
    source: FileOrFrame,
    *,
    kind: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    **roles: Any,
) -> Reading:
    """Read a table of pairs or of comparisons and say what was understood; `str` of the answer is one line.

    kind: "pairs", "comparisons" or None (by the options given, else look). roles: the options of `read_interactions` or
    of `read_comparisons`.
    Raises ValueError, with the options to type, where two readings are possible.
    """
    check_choice(kind, "kind", (None, "pairs", "comparisons"))
    if kind is None and set(roles) & {"anchor", "near", "far", "response", "form"}:
        kind = "comparisons"
    elif kind is None and set(roles) & {"left", "right", "weight", "timestamp"}:
        kind = "pairs"
    elif kind is None:
        kind = kind_of(source, header=header, delimiter=delimiter)
    if kind == "pairs":
        found = read_interactions(source, header=header, delimiter=delimiter, **roles).source
    else:
        found = read_comparisons(source, header=header, delimiter=delimiter, on_invalid="drop", **roles).source
    if found is None:
        raise ValueError(f"{source} was read without a record of how")
    return found
