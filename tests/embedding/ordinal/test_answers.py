import numpy as np

from nearkin.data.comparisons import comparisons_from_array
from nearkin.embedding.ordinal.answers import count_per_object, describe, group_objects


def test_groups_are_joined_by_pairs_only():
    """d(0, 1) < d(2, 3) compares the scales of two pairs, and leaves their relative position open."""
    groups = group_objects(comparisons_from_array([[0, 1, 2, 3]]))
    assert groups[0] == groups[1] != groups[2] == groups[3]
    assert len(set(group_objects(comparisons_from_array([[0, 1, 2], [2, 3, 1]])).tolist())) == 1


def test_answers_repeated_often_still_connect():
    answers = comparisons_from_array(np.tile([[0, 1, 2]], (256, 1)))  # 256 is 0 in eight bits
    assert len(set(group_objects(answers).tolist())) == 1


def test_counts_take_a_row_once():
    answers = comparisons_from_array([[0, 1, 1, 2], [0, 1, 2, 0], [3, 2, 0, 1]])
    assert count_per_object(answers).tolist() == [3, 3, 3, 1]


def test_complete_answers_have_no_notes():
    answers = comparisons_from_array([[0, 1, 2], [1, 2, 0]])
    assert describe(answers, few=2)["notes"] == []
