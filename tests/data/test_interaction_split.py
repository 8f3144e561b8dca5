"""Splits part every pair once, and what is held out is what they say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from nearkin.data import (
    planted_interactions,
    read_interactions,
    split_by_time,
    split_given,
    split_leave_last_out,
    split_random,
)
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions
from tests.covering import each


@pytest.fixture
def pairs(rng: np.random.Generator) -> Interactions:
    left, right = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    return Interactions.from_pairs(left, right, rng.random(400), rng.permutation(400))


def test_every_split_parts_every_pair_once(pairs: Interactions) -> None:
    for parts in (split_random(pairs, random_state=0), split_by_time(pairs), split_leave_last_out(pairs)):
        assert sum(map(len, parts)) == len(pairs)
        total = sum(part.matrix().toarray() for part in parts)
        np.testing.assert_allclose(total, pairs.matrix().toarray())
        assert all(part.shape == pairs.shape for part in parts)


@each("n_test", [1, 3])
def test_leave_last_out_holds_out_the_last_of_each_row(pairs: Interactions, n_test: int) -> None:
    _, valid, test = split_leave_last_out(pairs, n_test=n_test)
    enough = np.diff(pairs.indptr) >= n_test + 2
    np.testing.assert_array_equal(np.diff(test.indptr), np.where(enough, n_test, 0))
    np.testing.assert_array_equal(np.diff(valid.indptr), enough)
    for i in np.flatnonzero(enough):
        row = slice(pairs.indptr[i], pairs.indptr[i + 1])
        last = pairs.indices[row][np.argsort(pairs.timestamps[row])][-n_test - 1 :]
        assert valid.indices[valid.indptr[i] : valid.indptr[i + 1]].tolist() == [last[0]]
        assert set(test.indices[test.indptr[i] : test.indptr[i + 1]]) == set(last[1:])


def test_bad_splits_are_named(pairs: Interactions, rng: np.random.Generator) -> None:
    masked = {"user": [1, 2], "item": [1, 2], "test": [True, False]}  # True is not 1, validation
    bare, log = Interactions.from_pairs([0], [0]), tied_log(rng, times=1)
    for split, why in (
        (lambda: split_random(pairs, valid=0.5, test=0.5), r"valid \+ test is 1.0; it must be below 1"),
        (lambda: split_leave_last_out(pairs, n_test=0), "n_test is 0"),
        (lambda: split_given(bare), "interactions has no split"),
        (lambda: Interactions.from_pairs([0, 1], [0, 1], split=[True, False]), "split holds True"),
        (lambda: read_interactions(pd.DataFrame(masked), split="test"), "'test'.* no part"),
        (lambda: split_by_time(bare), "interactions has no timestamps"),
        (lambda: split_leave_last_out(log), "timestamps are all 0.*split_random"),
        (lambda: split_by_time(log), "1 different time; a split into 3 parts by time needs 3.*split_random"),
    ):
        with pytest.raises(ValueError, match=why):
            split()


def test_planted_affinities_rank_held_out_pairs_best() -> None:
    planted = planted_interactions(200, 100, random_state=1)
    planted_at = replace(planted.interactions, timestamps=np.arange(len(planted.interactions)))
    parts = split_random(planted_at, random_state=0)
    assert parts.train.timestamps is None  # of a random part no pair is the latest
    best = ranking_metrics(planted.affinities, np.eye(100), parts.test, seen=parts.train, k=20)["ndcg@20"]
    popularity = np.tile(planted.interactions.matrix().sum(axis=0), (200, 1)).astype(np.float64)
    popular = ranking_metrics(popularity, np.eye(100), parts.test, seen=parts.train, k=20)["ndcg@20"]
    assert best > 2 * popular, f"planted order {best:.3f}, popularity {popular:.3f}"


def test_no_pair_of_the_test_was_observed_before_the_cut() -> None:
    """D11: repeats were merged under the latest time, so that pairs bought before the cut came into the test."""
    rng = np.random.default_rng(0)
    left, right, when = rng.integers(0, 30, 2000), rng.integers(0, 20, 2000), rng.permutation(2000)
    log = Interactions.from_pairs(left, right, timestamps=when)
    train, _, test = split_by_time(log, valid=0, test=0.2)
    cut = test.timestamps.min()
    before = set(zip(left[when < cut], right[when < cut], strict=True))
    judged = {(test.left_ids[u], test.right_ids[i]) for u, i in zip(test.rows, test.indices, strict=True)}
    assert judged
    assert not judged & before
    assert judged == set(zip(left, right, strict=True)) - before
    assert train.timestamps.max() < cut


def tied_log(rng: np.random.Generator, times: int = 5) -> Interactions:
    """100 histories of 12 of 40 items in baskets of equal time."""
    left, right = np.repeat(np.arange(100), 12), np.concatenate([rng.permutation(40)[:12] for _ in range(100)])
    return Interactions.from_pairs(left, right, timestamps=rng.integers(0, times, 1200))


def test_which_of_equal_times_is_last_is_drawn(rng: np.random.Generator) -> None:
    """The highest item number was held out, so that a figure depended on how items were numbered."""
    log = tied_log(rng)
    held = [split_leave_last_out(log, random_state=seed) for seed in range(20)]
    assert held[0].test.indices.tolist() == split_leave_last_out(log, random_state=0).test.indices.tolist()
    for train, valid, test in held:
        ends = [np.array([part.timestamps[part.rows == user].max() for user in range(100)]) for part in (train, valid)]
        assert (ends[0] <= ends[1]).all()
        assert (ends[1] <= test.timestamps).all()
    number = np.mean([parts.test.indices.mean() for parts in held])
    assert number == pytest.approx(19.5, abs=1.5), f"mean held-out item number {number:.1f} of 0 to 39"
    (note,) = held[0].notes
    assert "of 100 histories have several pairs at the time of the cut" in note
    distinct = Interactions.from_pairs(log.rows, log.indices, timestamps=rng.permutation(len(log)))
    assert not split_leave_last_out(distinct, random_state=0).notes


@each(("valid", "test"), [(0.1, 0.1), (0.0, 0.3), (0.2, 0.0)])
@each("times", [3, 7, 1000])
def test_pairs_of_one_time_are_in_one_part(times: int, valid: float, test: float, rng: np.random.Generator) -> None:
    log = tied_log(rng, times)
    parts = split_by_time(log, valid=valid, test=test)
    spans = [(part.timestamps.min(), part.timestamps.max()) for part in parts if len(part)]
    assert len(spans) == 1 + (valid > 0) + (test > 0)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(spans))
    largest = np.unique(log.timestamps, return_counts=True)[1].max()
    if times > 3:  # with three times and three parts, each is one time
        assert len(parts.test) == pytest.approx(test * len(log), abs=int(largest) if test else 0)
    assert "pairs of one time stay together" in parts.notes[0]


def test_times_within_a_second_are_no_ties() -> None:
    for unit, factor in (("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        when = np.datetime64("2026-01-01", unit) + np.arange(9) * (factor // 1000)  # a pair every millisecond
        log = Interactions.from_pairs(np.zeros(9, int), np.arange(9)[::-1], timestamps=when)
        parts = split_leave_last_out(log)
        assert (parts.test.indices.tolist(), parts.notes) == ([0], ())
    whole = Interactions.from_pairs([0], [0], timestamps=np.array(["2026-01-01"], "datetime64[ns]"))
    assert whole.timestamps.tolist() == [1767225600]
    assert whole.timestamps.dtype == np.int64
