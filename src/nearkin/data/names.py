"""What columns are usually called, and what they then hold: roles of pairs and comparisons, ids."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

PAIRS: dict[str, tuple[str, ...]] = {  # role -> names of columns that mean it, as `normal` leaves them
    "left": (
        *("left", "user", "query", "instance", "customer", "session", "reader", "member", "account", "visitor"),
        *("reviewer", "u"),
    ),
    "right": (
        *("right", "item", "movie", "product", "document", "doc", "label", "artist", "book", "song", "track"),
        *("business", "place", "location", "poi", "venue", "article", "video", "asin", "isbn", "corpus", "i"),
    ),
    "weight": ("weight", "rating", "count", "value", "score", "plays", "stars", "overall"),
    "timestamp": ("timestamp", "time", "unixtime", "datetime", "date", "unixreviewtime"),
    "split": ("split", "fold"),
}
COMPARISONS: dict[str, tuple[str, ...]] = {
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


def means(name: str, words: Sequence[str]) -> int | None:
    """The place of a column's name, or of its singular, among the usual `words`; None if it is none of them."""
    word = normal(name)
    found = word if word in words else word.removesuffix("s")
    return words.index(found) if found in words else None


def usual(columns: Iterable[str], words: Sequence[str]) -> list[str]:
    """The columns, none or several, whose name means the first of the `words` that any name means."""
    places = {column: place for column in columns if (place := means(column, words)) is not None}
    return [column for column, place in places.items() if place == min(places.values())]


@lru_cache(maxsize=2**17)  # names of a wide table are looked at for every role
def normal(name: str) -> str:
    """`name` in lower case, without punctuation and without a final "id"."""
    letters = _NO_LETTERS.sub("", name.lower().removesuffix(":token").removesuffix(":float"))  # as RecBole writes
    return letters.removesuffix("id") or letters


_NO_LETTERS = re.compile(r"[\W_]+")


def known(name: str) -> bool:
    """Whether columns are usually called so."""
    return normal(name) in _ALL


_NAMES = re.compile(
    r"(.*[\W_])?(id|ids|key|uid|uuid|guid|index|idx|row|name|sku|isbn|doi|url|word|token)|Unnamed: 0|__index_level_0__",
    re.IGNORECASE,
)
_CAMEL = re.compile(r".*[a-z](Id|ID|Key|Name)")


def names_rows(column: str) -> bool:
    """Whether a column of this name holds ids rather than a coordinate; pandas writes its index without a name.

    >>> [name for name in ("id", "doc_id", "productId", "", "x", "f0", "price", "grid") if names_rows(name)]
    ['id', 'doc_id', 'productId', '']
    """
    name = column.strip()
    return not name or bool(_NAMES.fullmatch(name) or _CAMEL.fullmatch(name))
