import numpy as np

from nearkin.data.comparisons import comparisons_from_array
from nearkin.data.comparisons.votes import comparisons_from_vectors
from nearkin.embedding.ordinal.answers import choose_dimension, count_per_object, describe, group_objects


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


def test_no_more_dimensions_are_tried_than_answers_can_tell_apart():
    """n points satisfy any answers in n - 2 dimensions: of five objects one to three, though four would be tried."""
    points, tried = np.random.default_rng(0).standard_normal((5, 2)), []
    answers = comparisons_from_vectors(points, 60, random_state=1)

    def embed(train, p):
        tried.append(p)
        return np.pad(points, ((0, 0), (0, max(0, p - 2))))[:, :p]

    choose_dimension(answers, embed, np.random.default_rng(2))
    assert set(tried) == {1, 2, 3}


def test_coin_flips_are_told_from_answers_of_points():
    """By the 1 % quantile of as many flips: 84 of 200."""
    points = np.random.default_rng(0).standard_normal((9, 2))
    answers = comparisons_from_vectors(points, 200, random_state=1)
    _, curve = choose_dimension(answers, lambda train, p: points[:, :p], np.random.default_rng(0))
    assert curve["chance"] == 84 / 200
    assert min(curve["error"]) < 0.1
    flipped = answers.indices.copy()
    wrong = np.random.default_rng(2).random(200) < 0.5
    flipped[wrong] = flipped[wrong][:, [0, 2, 1]]
    _, curve = choose_dimension(
        comparisons_from_array(flipped), lambda train, p: points[:, :p], np.random.default_rng(0)
    )
    assert min(curve["error"]) > curve["chance"]
