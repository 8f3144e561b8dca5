"""Which column of a table of vectors names the rows, by its name and by what stands in it."""

import re

from nearkin._words import counted

_NAMES = re.compile(
    r"(.*[\W_])?(id|ids|key|uid|uuid|guid|index|idx|row|name|sku|isbn|doi|url|word|token)", re.IGNORECASE
)
_CAMEL = re.compile(r".*[a-z](Id|ID|Key|Name)")


def names_rows(column: str) -> bool:
    """Whether a column of this name holds ids rather than a coordinate; pandas writes its index without a name.

    >>> [name for name in ("id", "doc_id", "productId", "", "x", "f0", "price", "grid") if names_rows(name)]
    ['id', 'doc_id', 'productId', '']
    """
    name = column.strip()
    return not name or bool(_NAMES.fullmatch(name) or _CAMEL.fullmatch(name))


def choose_ids(text: list[str], whole: list[str]) -> str | None:
    """Of the columns of text and of whole numbers beside the vectors, the one that names the rows; None for none.

    `id` itself comes first, then the only one that is called as ids are, then the only column of text.
    """
    called = [name for name in (*text, *whole) if name and names_rows(name)]
    exact = [name for name in called if name.strip().lower() == "id"]
    for found in (exact, called, text):
        if len(found) == 1:
            return found[0]
    return None


def understood(source: str, n: int, d: int, ids: str | None, aside: list[str], notes: str = "") -> str:
    """One line for people: what a table of vectors was taken for."""
    named = "rows are counted from 0" if ids is None else f"ids in column {ids!r}" if ids else "ids in the first column"
    left = f"; left aside: {', '.join(aside)}" if aside else ""
    return f"{source}: {counted(n, 'row')} of {counted(d, 'number')}{notes}; {named}{left}"
