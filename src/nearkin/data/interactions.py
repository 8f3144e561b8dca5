"""Tables of observed pairs, read into `Interactions`."""

from contextlib import suppress
from os import PathLike
from typing import Any

import numpy as np

from nearkin.data.feature_tables import read_features
from nearkin.data.interaction_tables import Table, read_table
from nearkin.records import Interactions

SYNONYMS = {  # role -> names of columns that mean it, in lower case, without punctuation and without a final "id"
    "left": ("left", "user", "query", "instance", "customer", "session", "reader", "member", "account", "u"),
    "right": (
        *("right", "item", "movie", "product", "document", "doc", "label", "artist", "book", "song", "track"),
        *("business", "place", "location", "poi", "venue", "article", "video", "i"),
    ),
    "weight": ("weight", "rating", "count", "value", "score", "plays", "stars"),
    "timestamp": ("timestamp", "time", "unixtime", "datetime", "date"),
    "split": ("split", "fold"),
}
POSITIONS = ("left", "right", "weight", "timestamp")  # of the columns of a table without a header


def read_interactions(
    path: str | PathLike,
    *,
    left: str | None = None,
    right: str | None = None,
    weight: str | None = None,
    timestamp: str | None = None,
    split: str | None = None,
    min_weight: float | None = None,
    duplicates: str = "sum",
    left_features: str | PathLike | None = None,
    right_features: str | PathLike | None = None,
) -> Interactions:
    """Read observed pairs from a .csv, .tsv, .parquet or .npz table with one row a pair.

    Columns are taken by the names given, else by the usual ones (user and item, query and document, rating,
    timestamp, ...), else, in a table without a header, by position: left, right, weight, timestamp. `split` holds
    0 for training, 1 for validation and 2 for test, or their names, or is a mask of the test pairs. Rows whose weight
    is below `min_weight` are left out, and the weights of a pair that occurs more than once are merged by
    `duplicates`: "sum", "last" or "max". `left_features` and `right_features` are tables with an id in the first column
    and features in the others (see `read_features`); their ids are then the whole catalogue of that side, so that ids
    without any pair get vectors too. Raises ValueError for columns that are missing or cannot be told, and for ids of
    pairs that a table of features lacks.

    >>> import nearkin as nk, tempfile, pathlib
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = table.write_text("user,item,rating\\nann,7,5\\nann,9,2\\nbob,7,4\\n")
    >>> pairs = nk.read_interactions(table)
    >>> pairs.shape, pairs.left_ids.tolist(), pairs.weights.tolist()
    ((2, 2), ['ann', 'bob'], [5.0, 2.0, 4.0])
    """
    table = read_table(path)
    asked = {"left": left, "right": right, "weight": weight, "timestamp": timestamp, "split": split}
    columns = {role: find_column(table, role, name, str(path)) for role, name in asked.items()}
    numbers = _weights(columns["weight"], asked["weight"])
    keep = slice(None) if min_weight is None or numbers is None else numbers >= min_weight

    def kept(values: Any) -> Any:
        return None if values is None else values[keep]

    if columns["left"] is None or columns["right"] is None:
        raise ValueError(f"{path} has fewer than two columns")
    return Interactions.from_pairs(
        kept(columns["left"]),
        kept(columns["right"]),
        kept(numbers),
        kept(_times(columns["timestamp"], asked["timestamp"])),
        split=kept(_parts(columns["split"], asked["split"] or "split")),
        duplicates=duplicates,
        **_catalogue("left", left_features),
        **_catalogue("right", right_features),
    )


def _catalogue(side: str, path: str | PathLike | None) -> dict[str, Any]:
    """The ids and features of one side as `from_pairs` takes them."""
    if path is None:
        return {}
    ids, features, _ = read_features(path)
    return {f"{side}_ids": ids, f"{side}_features": features}


def holds_pairs(path: str | PathLike) -> bool:
    """Whether the table at `path` has columns with the usual names of both sides of a pair."""
    with suppress(ValueError):
        names = {_normal(column) for column in read_table(path)}
        return all(names & set(SYNONYMS[role]) for role in ("left", "right"))
    return False


def find_column(table: Table, role: str, name: str | None, source: str = "the table") -> np.ndarray | None:
    """The column of a role: the one named, else the one with a usual name, else by position; None if it has none."""
    if name is not None:
        if name not in table:
            raise ValueError(f"{role} is {name!r}, which {source} lacks; its columns are {', '.join(table)}")
        return table[name]
    found = [column for column in table if _normal(column) in SYNONYMS[role]]
    found = sorted(found, key=lambda column: SYNONYMS[role].index(_normal(column)))
    if found:
        return table[found[0]]
    headless = all(column == str(i) for i, column in enumerate(table))
    position = POSITIONS.index(role) if role in POSITIONS else len(table)
    if position < len(table) and (headless or (len(table) == 2 and position < 2)):
        return list(table.values())[position]
    if role in ("left", "right"):
        raise ValueError(
            f"{source} has no column with a usual {role} name; its columns are {', '.join(table)}. "
            f"Say which one it is: {role}={next(iter(table), '...')!r} (on the command line --{role})"
        )
    return None


def _normal(name: str) -> str:
    letters = "".join(letter for letter in name.lower() if letter.isalnum())
    return letters.removesuffix("id") or letters


def _weights(values: np.ndarray | None, asked: str | None) -> np.ndarray | None:
    """Weights as numbers; a column of text with a usual name is no weight unless it was asked for."""
    if values is None or values.dtype.kind in "iufb":
        return values
    if asked is None:
        return None
    raise ValueError(f"weight is {asked!r}, a column that is not numeric; name a column of numbers")


def _times(values: np.ndarray | None, asked: str | None) -> np.ndarray | None:
    if values is None or values.dtype.kind in "iufM":
        return values
    try:
        return values.astype("datetime64[s]")
    except (ValueError, TypeError) as error:
        if asked is None:
            return None
        raise ValueError(f"timestamp is {asked!r}, neither numbers nor ISO dates ({error})") from error


def _parts(values: np.ndarray | None, name: str) -> np.ndarray | None:
    """Split as 0, 1, 2: numbers as they are, words by their meaning, a mask (bools, or 0 and 1 under a name with
    "test" in it) as the test pairs."""
    if values is None:
        return None
    if values.dtype.kind in "iub":
        mask = values.dtype.kind == "b" or ("test" in name.lower() and set(np.unique(values)) <= {0, 1})
        parts = values.astype(np.uint8) * (2 if mask else 1)
    else:
        words = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2}
        unknown = sorted({str(v) for v in values} - set(words))
        if unknown:
            raise ValueError(f"split holds {unknown[0]!r}; it must hold 0, 1, 2 or train, valid, test")
        parts = np.array([words[str(v)] for v in values], dtype=np.uint8)
    if parts.max(initial=0) > 2:
        raise ValueError(f"split holds {parts.max()}; it must hold 0 (train), 1 (validation) and 2 (test)")
    return parts
