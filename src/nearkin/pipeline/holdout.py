"""Pairs held out of training, and two baselines that an embedding must beat: popularity and item-kNN."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._types import Fields, Record, Seed
from nearkin.data import Parts
from nearkin.linalg.orthonormal import unit_rows
from nearkin.records import Interactions

SPLITS = ("random", "time", "leave-last-out")
MOST_WORK = 3e8  # products; item-kNN with more takes minutes and is left out
EXAMPLES = 8  # rights with most pairs, whose neighbours the report shows


def has_split(pairs: Interactions) -> bool:
    """Whether the table itself says which pairs are for training."""
    return pairs.split is not None and bool((pairs.split == 0).any())


def split_pairs(pairs: Interactions, how: str, share: float, seed: Seed = None) -> Parts:
    """Hold out a `share` of the pairs at random or by time (the latest), or the last pair of each left entity.

    ValueError for a split by time without timestamps.
    """
    if how == "random":
        return nk.data.split_random(pairs, valid=0, test=share, random_state=seed)
    if pairs.timestamps is None:
        raise ValueError(f"--split {how} needs a column of times; name it with --timestamp")
    if how == "time":
        return nk.data.split_by_time(pairs, valid=0, test=share)
    return nk.data.split_leave_last_out(pairs)


def held_out(test: Interactions) -> Record:
    """Number of test pairs and of their left entities, and the first and last time of the pairs."""
    about: Record = {"pairs": len(test), "left": int((np.diff(test.indptr) > 0).sum())}
    if test.timestamps is not None and len(test):
        about |= {"from": test.timestamps.min().item(), "to": test.timestamps.max().item()}
    return about


def held_out_in_words(about: Fields, left: str) -> str:
    """The record of `held_out` as text; `left` names the left side."""
    text = f"{about['pairs']:,} pairs of {about['left']:,} {left}"
    if "from" not in about:
        return text
    return f"{text}, first seen from {_time(about['from'])} to {_time(about['to'])}"


def _time(value: float) -> str:
    """A time as in the table, and as a date if it can be seconds since 1970 (1973 to 2096)."""
    if not 1e8 <= value < 4e9:
        return f"{value:g}"
    return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC ({value:.0f})"


def judge_baselines(
    train: Interactions, test: Interactions, k: Sequence[int], measures: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Measures of the test pairs ranked by popularity and by item-kNN, which both know `train`."""
    if not len(test):
        return {}
    baselines = {"popularity": nk.embedding.popularity}
    if float((np.diff(train.indptr).astype(np.float64) ** 2).sum()) <= MOST_WORK:
        baselines["item-kNN"] = nk.embedding.item_knn
    return {
        name: metrics.list_metrics(rank(train, max(k))[1], test, k=k, metrics=measures)
        for name, rank in baselines.items()
    }


def neighbour_examples(vectors: np.ndarray, ids: np.ndarray, pairs: Interactions) -> list[list[object]]:
    """The rights with most pairs, each with the 5 ids of largest cosine among `vectors` (n, d): for the report."""
    counts = np.bincount(pairs.indices, minlength=len(ids))
    popular, X = np.argsort(-counts, kind="stable")[:EXAMPLES], unit_rows(vectors)
    cosines = X[popular] @ X.T
    cosines[np.arange(len(popular)), popular] = -np.inf
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :5]
    return [[ids[row].item(), *ids[near].tolist()] for row, near in zip(popular, nearest, strict=True)]


def without_totals(history: Sequence[Fields]) -> list[Record]:
    """The history of a training without the number of its steps in each entry."""
    return [{name: value for name, value in entry.items() if name != "total"} for entry in history]
