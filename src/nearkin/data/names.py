"""The usual names of columns and what they mean."""

import re

from nearkin._words import counted

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


def choose_ids(text: list[str], whole: list[str]) -> str | None:
    """The column that names the rows, among those of text and of whole numbers; None if there is none.

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
