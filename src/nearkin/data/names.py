"""The usual names of columns: the one table by which readers give roles (docs/reading.md prints it)."""

import re
from collections.abc import Iterable
from itertools import accumulate

NAMES: dict[str, tuple[str, ...]] = {
    # pairs
    "left": ("left", "user", "userid", "query", "queryid", "customer", "customerid", "session", "sessionid"),
    "right": (
        *("right", "item", "itemid", "document", "documentid", "doc", "docid", "corpusid", "product", "productid"),
        *("movie", "movieid", "book", "bookid", "artist", "artistid", "song", "songid", "track", "trackid"),
    ),
    "weight": ("weight", "rating", "count", "plays", "votes"),
    "timestamp": ("timestamp", "time", "date", "datetime"),
    "split": ("split",),
    # comparisons
    "anchor": ("anchor", "reference", "ref", "i"),
    "near": ("near", "nearer", "closer", "positive", "winner", "j"),
    "far": ("far", "farther", "negative", "loser", "k"),
    "other": ("other", "l"),  # of four, (i, j, l, k): the anchor of the far one
    "first": ("first", "left", "a", "option1", "object1", "image1", "stimulus1", "item1"),
    "second": ("second", "right", "b", "option2", "object2", "image2", "stimulus2", "item2"),
    "third": ("third", "c", "option3", "object3", "image3", "stimulus3", "item3"),
    "response": ("response", "answer", "choice", "chosen"),
    "odd": ("odd", "oddone", "oddoneout"),
    "similarity": ("similarity", "rating"),
    "dissimilarity": ("dissimilarity", "distance"),
    "rater": ("rater", "raterid", "annotator", "worker", "workerid", "participant", "subject", "user"),
    # rows of vectors and of features
    "id": ("id", "ids", "key", "word", "token"),
    # qrels
    "grade": ("grade", "score", "relevance", "rel"),
}


def plain(name: str) -> str:
    """A name in lower case without blanks, "_", "-", "." and what follows a colon (RecBole's types).

    >>> plain("User_ID"), plain("item_id:token")
    ('userid', 'itemid')
    """
    return re.sub(r"[\s_.-]+", "", name.lower().partition(":")[0])


def listed(names: Iterable[str]) -> str:
    """Names as messages show them: at most twelve and 150 letters, each name cut at 40 letters."""
    shown = [name if len(name) <= 40 else f"{name[:40]}..." for name in names]
    few = [name for name, end in zip(shown[:12], accumulate(map(len, shown)), strict=False) if end <= 150]
    return (", ".join(few) or "none") + (f", ... ({len(shown)} in all)" if len(shown) > len(few) else "")
