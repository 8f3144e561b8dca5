"""Pairs held out of training, and what recommends without learning: the two that every embedding must beat."""

from collections.abc import Sequence

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._types import Seed
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
