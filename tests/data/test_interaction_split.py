"""Splits part every pair once; the k-core keeps what it promises."""

import numpy as np
import pytest

from nearkin.data.interactions import (
    planted_interactions,
    split_by_time,
    split_given,
    split_leave_last_out,
    split_random,
)
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions


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


def test_time_split_is_in_time(pairs: Interactions) -> None:
    train, valid, test = split_by_time(pairs, valid=0.2, test=0.1)
    assert train.timestamps.max() < valid.timestamps.min() < valid.timestamps.max() < test.timestamps.min()
    assert len(test) == pytest.approx(0.1 * len(pairs), abs=1)


def test_leave_last_out_holds_out_the_last_two_of_each_row(pairs: Interactions) -> None:
    train, valid, test = split_leave_last_out(pairs)
    for i in range(30):
        times = [part.timestamps[part.indptr[i] : part.indptr[i + 1]] for part in (train, valid, test)]
        if len(times[0]) + len(times[1]) + len(times[2]) >= 3:
            assert len(times[1]) == len(times[2]) == 1
            assert times[0].max() < times[1][0] < times[2][0]
        else:
            assert not len(times[1])


def test_leave_last_out_may_hold_out_several(pairs: Interactions) -> None:
    _, valid, test = split_leave_last_out(pairs, n_test=3)
    counts = np.diff(pairs.indptr)
    enough = counts >= 5
    np.testing.assert_array_equal(np.diff(test.indptr), np.where(enough, 3, 0))
    np.testing.assert_array_equal(np.diff(valid.indptr), enough)
    assert pairs.timestamps is not None
    for i in np.flatnonzero(enough):
        held = set(test.indices[test.indptr[i] : test.indptr[i + 1]])
        row = slice(pairs.indptr[i], pairs.indptr[i + 1])
        assert held == set(pairs.indices[row][np.argsort(pairs.timestamps[row], kind="stable")[-3:]])
    with pytest.raises(ValueError, match="n_test is 0"):
        split_leave_last_out(pairs, n_test=0)


def test_bad_splits_are_named(pairs: Interactions) -> None:
    with pytest.raises(ValueError, match=r"valid \+ test is 1.0; it must be below 1"):
        split_random(pairs, valid=0.5, test=0.5)
    bare = Interactions.from_pairs([0], [0])
    with pytest.raises(ValueError, match="interactions has no split"):
        split_given(bare)
    with pytest.raises(ValueError, match="interactions has no timestamps"):
        split_by_time(bare)


def test_planted_affinities_rank_held_out_pairs_best() -> None:
    planted = planted_interactions(200, 100, random_state=1)
    parts = split_random(planted.interactions, random_state=0)
    best = ranking_metrics(planted.affinities, np.eye(100), parts.test, seen=parts.train, k=20)["ndcg@20"]
    popularity = np.tile(planted.interactions.matrix().sum(axis=0), (200, 1)).astype(np.float64)
    popular = ranking_metrics(popularity, np.eye(100), parts.test, seen=parts.train, k=20)["ndcg@20"]
    assert best > 2 * popular, f"planted order {best:.3f}, popularity {popular:.3f}"


def test_a_given_split_can_fit_its_validation_pairs() -> None:
    pairs = Interactions.from_pairs([0, 0, 1, 1], [0, 1, 0, 1], split=[0, 1, 2, 0])
    parts = split_given(pairs, fit_validation=True)
    assert [len(part) for part in parts] == [3, 0, 1]
    assert parts.test.matrix()[1, 0] == 1


def test_no_pair_of_the_test_was_observed_before_the_cut() -> None:
    """D11: repeats were merged under the latest time, so that pairs bought before the cut came into the test."""
    rng = np.random.default_rng(0)
    left, right, when = rng.integers(0, 30, 2000), rng.integers(0, 20, 2000), rng.permutation(2000)
    for duplicates in ("sum", "last", "max"):
        log = Interactions.from_pairs(left, right, timestamps=when, duplicates=duplicates)
        train, _, test = split_by_time(log, valid=0, test=0.2)
        cut = test.timestamps.min()
        before = set(zip(left[when < cut], right[when < cut], strict=True))
        judged = {(test.left_ids[u], test.right_ids[i]) for u, i in zip(test.rows, test.indices, strict=True)}
        assert judged
        assert not judged & before
        assert judged == set(zip(left, right, strict=True)) - before
        assert train.timestamps.max() < cut
