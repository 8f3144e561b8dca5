"""Splits of observed pairs into training, validation and test, and the k-core filter."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nearkin._check import check_instance, check_integer, check_real
from nearkin._random import numpy_generator
from nearkin._types import Seed
from nearkin.records import Interactions


class Parts(NamedTuple):
    """Training, validation and test pairs over the same ids; a part may be empty."""

    train: Interactions
    valid: Interactions
    test: Interactions


def split_given(interactions: Interactions, *, fit_validation: bool = False) -> Parts:
    """Part by the record's own `split`: 0 training, 1 validation, 2 test; ValueError if it has none.

    `fit_validation` puts the validation pairs into the training part, as published results on such a split do: they
    are fitted, and left out of the rankings that the test pairs are judged by.
    """
    check_instance(interactions, "interactions", Interactions)
    check_instance(fit_validation, "fit_validation", bool, int)
    if interactions.split is None:
        raise ValueError("interactions has no split; read it with split='column', or call split_random(interactions)")
    split = np.where(interactions.split == 1, 0, interactions.split) if fit_validation else interactions.split
    train, valid, test = (interactions.select(split == part) for part in range(3))
    return Parts(train, valid, test)


def split_random(
    interactions: Interactions, *, valid: float = 0.1, test: float = 0.1, random_state: Seed = None
) -> Parts:
    """Part at random, each pair alike: the shares `valid` and `test` of all pairs are held out."""
    check_instance(interactions, "interactions", Interactions)
    _check_shares(valid, test)
    draws = numpy_generator(random_state).random(len(interactions))
    return _parts(interactions, (draws < valid + test).astype(np.int8) + (draws < test))


def split_by_time(interactions: Interactions, *, valid: float = 0.1, test: float = 0.1) -> Parts:
    """Part by time: the latest share `test` of all pairs is the test, the share `valid` before it the validation.

    A pair's time is that of its first observation. So the test holds new pairs only: none was observed before the cut.
    """
    check_instance(interactions, "interactions", Interactions)
    _check_shares(valid, test)
    ranks = np.empty(len(interactions))
    ranks[np.argsort(_timestamps(interactions), kind="stable")] = np.arange(len(interactions), dtype=np.float64)
    ranks /= len(interactions)
    return _parts(interactions, (ranks >= 1 - valid - test).astype(np.int8) + (ranks >= 1 - test))


def split_leave_last_out(interactions: Interactions, *, n_test: int = 1, random_state: Seed = None) -> Parts:
    """Hold out the last `n_test` pairs of every left entity as test and the one before as validation.

    Entities with fewer than n_test + 2 pairs keep all of them for training. Without timestamps the order is random.
    """
    check_instance(interactions, "interactions", Interactions)
    n_test = check_integer(n_test, "n_test", low=1)
    if interactions.timestamps is None:
        times = numpy_generator(random_state).random(len(interactions))
    else:
        times = interactions.timestamps
    order = np.lexsort((times, interactions.rows))
    counts = np.diff(interactions.indptr)
    left = np.empty(len(interactions), dtype=np.int64)  # how many pairs of the same entity come after
    left[order] = interactions.indptr[interactions.rows[order] + 1] - 1 - np.arange(len(interactions))
    enough = counts[interactions.rows] >= n_test + 2
    return _parts(interactions, np.where(enough & (left <= n_test), np.where(left < n_test, 2, 1), 0))


def k_core(interactions: Interactions, k: int) -> Interactions:
    """Drop entities with fewer than k pairs on either side until none is left; ids and features shrink with them.

    ValueError if nothing remains.
    """
    check_instance(interactions, "interactions", Interactions)
    k = check_integer(k, "k", low=1)
    (m, n), rows, columns = interactions.shape, interactions.rows, interactions.indices
    keep = np.ones(len(interactions), dtype=bool)
    while True:
        left = np.bincount(rows[keep], minlength=m) >= k
        right = np.bincount(columns[keep], minlength=n) >= k
        still = keep & left[rows] & right[columns]
        if not still.any():
            raise ValueError(f"k is {k}; no entity has that many pairs in the core, use a smaller k")
        if still.sum() == keep.sum():
            break
        keep = still
    core, numbers = interactions.select(keep), np.cumsum(right) - 1
    return replace(
        core,
        indptr=np.concatenate([[0], np.cumsum(np.diff(core.indptr)[left])]),
        indices=numbers[core.indices].astype(np.int32),
        left_ids=core.left_ids[left],
        right_ids=core.right_ids[right],
        left_features=None if core.left_features is None else core.left_features[left],
        right_features=None if core.right_features is None else core.right_features[right],
    )


def _check_shares(valid: float, test: float) -> None:
    check_real(valid, "valid", low=0)
    check_real(test, "test", low=0)
    if valid + test >= 1:
        raise ValueError(f"valid + test is {valid + test}; it must be below 1, so that pairs remain for training")


def _timestamps(interactions: Interactions) -> np.ndarray:
    if interactions.timestamps is None:
        raise ValueError("interactions has no timestamps; read it with timestamp='column', or call split_random")
    return interactions.timestamps


def _parts(interactions: Interactions, part: np.ndarray) -> Parts:
    return split_given(replace(interactions, split=part.astype(np.uint8)))
