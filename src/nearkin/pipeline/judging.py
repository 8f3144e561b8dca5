"""Pairs held out of training, and what recommends without learning: the two that every embedding must beat."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._types import Fields, Record, Seed
from nearkin.data import Parts
from nearkin.records import Interactions

SPLITS = ("random", "time", "leave-last-out")
MOST_WORK = 3e8  # products of item-kNN above which it is left out: some minutes


def split_pairs(pairs: Interactions, how: str, share: float, seed: Seed = None) -> Parts:
    """Part the pairs: a `share` at random or by time (the latest), or the last pair of each left entity.

    ValueError for another `how`, and for "time" without timestamps.
    """
    if how == "random":
        return nk.data.split_random(pairs, valid=0, test=share, random_state=seed)
    if pairs.timestamps is None:
        raise ValueError(f"--split {how} needs a column of times; name it with --timestamp")
    if how == "time":
        return nk.data.split_by_time(pairs, valid=0, test=share)
    return nk.data.split_leave_last_out(pairs)


def held_out(test: Interactions) -> Record:
    """How many pairs of how many left entities judge, and the first and the last of their times."""
    about: Record = {"pairs": len(test), "left": int((np.diff(test.indptr) > 0).sum())}
    if test.timestamps is not None and len(test):
        about |= {"from": test.timestamps.min().item(), "to": test.timestamps.max().item()}
    return about


def held_out_in_words(about: Fields, left: str) -> str:
    """The same as text, `left` being the name of the left side."""
    text = f"{about['pairs']:,} pairs of {about['left']:,} {left}"
    if "from" not in about:
        return text
    return f"{text}, first seen from {_time(about['from'])} to {_time(about['to'])}"


def _time(value: float) -> str:
    """A time as the table has it; as a date too where it can be seconds since 1970 (from 1973 to 2096)."""
    if not 1e8 <= value < 4e9:
        return f"{value:g}"
    return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC ({value:.0f})"


def judge_baselines(
    train: Interactions, test: Interactions, k: Sequence[int], measures: Sequence[str]
) -> dict[str, dict[str, float]]:
    """How popularity and item-kNN, which know `train`, rank the pairs of `test`; item-kNN below `MOST_WORK`."""
    if not len(test):
        return {}
    ways = {"popularity": nk.embedding.popularity}
    if float((np.diff(train.indptr).astype(np.float64) ** 2).sum()) <= MOST_WORK:
        ways["item-kNN"] = nk.embedding.item_knn
    return {
        name: metrics.list_metrics(way(train, max(k))[1], test, k=k, metrics=measures) for name, way in ways.items()
    }
