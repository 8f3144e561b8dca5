"""What columns are usually called, and what they then hold: roles of pairs and comparisons, ids, coordinates."""

import re
from collections.abc import Mapping, Sequence

from nearkin._fields import counted

PAIRS = {  # role -> names of columns that mean it, as `normal` leaves them
    "left": ("left", "user", "query", "instance", "customer", "session", "reader", "member", "account", "u"),
    "right": (
        *("right", "item", "movie", "product", "document", "doc", "label", "artist", "book", "song", "track"),
        *("business", "place", "location", "poi", "venue", "article", "video", "i"),
    ),
    "weight": ("weight", "rating", "count", "value", "score", "plays", "stars"),
    "timestamp": ("timestamp", "time", "unixtime", "datetime", "date"),
    "split": ("split", "fold"),
}
COMPARISONS = {
    "anchor": ("anchor", "ref", "reference", "head", "standard", "probe", "target", "i"),
    "near": ("near", "nearer", "nearest", "close", "closer", "closest", "winner", "similar", "positive", "pos", "j"),
    "far": ("far", "farther", "further", "farthest", "loser", "dissimilar", "negative", "neg", "k"),
    "odd": ("odd", "oddone", "oddoneout", "outlier", "oddity"),
    "response": ("response", "answer", "choice", "chosen", "selected", "judgment", "judgement", "decision", "label"),
    "rating": ("rating", "similarity", "dissimilarity", "distance", "score", "likert"),
    "weight": ("weight", "weights", "vote", "votes", "count", "counts"),
    "annotator": (
        *("annotator", "annotators", "worker", "subject", "user", "participant", "rater", "observer", "judge"),
        "respondent",
    ),
}
ASIDE = (  # columns of comparisons that hold no object and have no role
    *("rt", "reactiontime", "responsetime", "latency", "timestamp", "time", "datetime", "date", "duration", "trial"),
    *("block", "session", "index", "row", "question", "questionnumber", "order", "condition", ""),
)
OPTIONS = (  # pairs of names of two objects of which a response chooses one
    *(("left", "right"), ("a", "b"), ("option1", "option2"), ("optiona", "optionb"), ("choice1", "choice2")),
    *(("choicea", "choiceb"), ("candidate1", "candidate2"), ("first", "second"), ("comparison1", "comparison2")),
    *(("x", "y"), ("stimulusa", "stimulusb"), ("stimulus1", "stimulus2"), ("item1", "item2"), ("object1", "object2")),
)
SIMILARITY, DISSIMILARITY = ("similarity",), ("dissimilarity", "distance")
_ALL = {
    *(name for names in (*PAIRS.values(), *COMPARISONS.values(), *OPTIONS) for name in names),
    *(set(ASIDE) - {""}),
} - {"x", "y", "u", "a", "b"}  # too short to be told from data


def means(name: str, usual: Sequence[str]) -> int | None:
    """The place of a column's name, or of its singular, among the `usual` ones; None if it is none of them."""
    found = [word for word in (normal(name), normal(name).removesuffix("s")) if word in usual]
    return usual.index(found[0]) if found else None


def normal(name: str) -> str:
    """`name` in lower case, without punctuation and without a final "id"."""
    letters = "".join(letter for letter in name.lower() if letter.isalnum())
    return letters.removesuffix("id") or letters


def known(name: str) -> bool:
    """Whether columns are usually called so."""
    return normal(name) in _ALL


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


def choose_ids(text: list[str], whole: list[str]) -> tuple[str | None, list[str]]:
    """The column that names the rows: `id`, else the only one called so, else the only one of text, else None.

    Also the columns that might be it, where several are called so or are text.
    """
    called = [name for name in (*text, *whole) if name and names_rows(name)]
    exact = [name for name in called if name.strip().lower() == "id"]
    for found in (exact, called, text):
        if len(found) == 1:
            return found[0], []
    return None, called or text


def choose_columns(
    kinds: Mapping[str, str], source: str, key: str | None = None
) -> tuple[list[str], str | None, list[str]]:
    """The columns that hold a table's vectors, that of the ids or None, and those that might be it.

    kinds: name -> kind, as `Column.kind`. Vectors are the list column `key`, or the only one, or all numeric columns.
    """
    lists, text, whole = (
        [n for n, kind in kinds.items() if kind == wanted] for wanted in ("list", "string", "integer")
    )
    ids, rivals = choose_ids(text, whole)
    if key is not None and key not in lists:
        raise ValueError(f"{source} has no list column {key!r}; it has {', '.join(lists) or 'none'}")
    if key is None and len(lists) > 1:
        listed = ", ".join(f"{source}:{name}" for name in lists)
        raise ValueError(f"{source} has {len(lists)} list columns; name one of {listed}, or keep one")
    if lists:
        return [key or lists[0]], ids, rivals
    numeric = [name for name in kinds if name != ids]
    if not numeric:
        raise ValueError(f"{source} has no column of numbers but that of the ids, {ids!r}")
    for name in numeric:
        if kinds[name] not in ("integer", "float"):
            raise ValueError(
                f"{source}: column {name!r} is of type {kinds[name]}, no number; vectors are one column of lists, or "
                "numeric columns, next to a column of ids: take the others out, and nested values to the top"
            )
    return numeric, ids, rivals


def understood(source: str, n: int, d: int, ids: str | None, aside: list[str], notes: str = "") -> str:
    """One line for people: what a table of vectors was taken for."""
    named = _COUNTED if ids is None else f"ids in column {ids!r}" if ids else "ids in the first column"
    left = f"{_ASIDE}{', '.join(aside)}" if aside else ""
    return f"{source}: {counted(n, 'row')} of {counted(d, 'number')}{notes}; {named}{left}"


_COUNTED, _ASIDE = "rows are counted from 0", "; left aside: "


def with_ids(about: str, path: str) -> str:
    """The line of `understood` for a table whose ids are in a file, or in `path`, one of its columns."""
    head, _, aside = about.partition(_ASIDE)
    left = [name for name in aside.split(", ") if name and name != path.rpartition(":")[2]]
    return head.replace(_COUNTED, f"ids from {path}") + (f"{_ASIDE}{', '.join(left)}" if left else "")
