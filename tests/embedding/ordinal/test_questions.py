"""Questions worth asking, and a function as the rater: honest, biased to a position, silent, wrong."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import comparisons_from_vectors
from nearkin.embedding import ask_function
from nearkin.embedding.ordinal.questions import informative_queries, random_queries
from nearkin.records import Comparisons

ITEMS = ["ant", "bee", "cat", "dog", "elk", "fox"]
PLACE = {name: number**1.5 for number, name in enumerate(ITEMS)}  # no two distances are equal


def honest(anchor, first, second):
    return int(abs(PLACE[anchor] - PLACE[second]) < abs(PLACE[anchor] - PLACE[first]))


def test_an_honest_rater_has_no_bias():
    asked = ask_function(ITEMS, honest, 60, random_state=0)
    assert (asked.n_questions, asked.n_consistent, asked.n_unanswered) == (60, 60, 0)
    assert asked.first_share == 0.5
    assert asked.position_bias == 0.0
    X = np.array([[PLACE[name]] for name in ITEMS])
    assert nk.metrics.triplet_error(X, asked.comparisons) == 0.0
    assert asked.comparisons.objects.tolist() == ITEMS


@pytest.mark.parametrize(("place", "sign"), [(0, 1), (1, -1)])
def test_a_rater_who_prefers_a_place_is_reported_and_left_out(place, sign):
    rng = np.random.default_rng(1)

    def biased(anchor, first, second):
        return place if rng.random() < 0.5 else honest(anchor, first, second)

    asked = ask_function(ITEMS, biased, 400, random_state=0)
    # where the honest answer stands at the other place, half of the answers go by preference: the same place twice
    assert asked.position_bias == pytest.approx(sign * 0.5, abs=0.1)
    assert asked.first_share == pytest.approx(0.5 + sign * 0.25, abs=0.05)
    assert asked.n_consistent == pytest.approx(200, abs=40)
    X = np.array([[PLACE[name]] for name in ITEMS])
    assert nk.metrics.triplet_error(X, asked.comparisons) == 0.0
    assert f"{asked.n_consistent} answered alike" in str(asked)


def test_both_orders_of_a_question_follow_each_other():
    calls = []

    def rater(*shown):
        calls.append(shown)
        return honest(*shown)

    ask_function(ITEMS, rater, 20, random_state=3)
    for first, second in zip(calls[::2], calls[1::2], strict=True):
        assert second == (first[0], first[2], first[1])


def test_silence_and_given_questions():
    steps = []
    asked = ask_function(
        ITEMS,
        lambda a, b, c: None if a == "ant" else honest(a, b, c),
        questions=[["ant", "bee", "cat"], ["fox", "ant", "elk"]],
        callback=lambda step, record: steps.append((step, record["total"])),
    )
    assert asked.n_unanswered == 1
    assert asked.comparisons.objects[asked.comparisons.indices].tolist() == [["fox", "elk", "ant"]]
    assert steps == [(1, 2), (2, 2)]


def test_what_was_asked_can_be_learnt():
    asked = ask_function(ITEMS, honest, 100, random_state=0)
    model = nk.OrdinalEmbedding(1, random_state=0).fit(asked.comparisons)
    again = ask_function(ITEMS, honest, questions=model.next_queries(3))
    assert model.partial_fit(again.comparisons).score(asked.comparisons) > 0.9


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((ITEMS, lambda *shown: 2), "rater returned 2; it must return 0"),
        ((ITEMS, lambda *shown: "dog"), "rater returned 'dog'"),
        ((ITEMS, lambda *shown: 0), "the rater chooses by position"),
        ((ITEMS, lambda *shown: None), r"none of 100 questions was answered alike in both orders \(0 were answered\)"),
        ((["a", "b", "a"], honest), "at least 3 different items"),
        ((ITEMS, honest, 0), "n is 0"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises(ValueError, match=text):
        ask_function(*arguments, random_state=0)
    with pytest.raises(ValueError, match="questions names 'yak'"):
        ask_function(ITEMS, honest, questions=[["yak", "ant", "bee"]])


X = np.random.default_rng(0).normal(0, 1, (8, 2))


def coin(near, far):
    return 1 / (1 + np.exp(near - far))


def test_triplets_written_as_quadruplets_are_the_same_answers():
    """They counted as no answers once: `nearkin ask` repeated questions and chose as if nothing was known."""
    triplets = comparisons_from_vectors(X, 60, random_state=0)
    i, j, k = triplets.indices.T
    forms = [np.stack(columns, axis=1) for columns in ((i, j, i, k), (j, i, i, k), (i, j, k, i), (j, i, k, i))]
    wanted = informative_queries(X, triplets, coin, 10, np.random.default_rng(1))
    for rows in forms:
        found = informative_queries(X, Comparisons(rows, np.arange(8)), coin, 10, np.random.default_rng(1))
        np.testing.assert_array_equal(found, wanted)


def test_asked_quadruplets_are_not_asked_again():
    triplets = comparisons_from_vectors(X, 120, random_state=0)
    asked = Comparisons(triplets.quadruplets(), np.arange(8))
    known = {(i, *sorted((j, k))) for i, j, k in triplets.indices.tolist()}
    fresh = random_queries(8, asked, 30, np.random.default_rng(5)).tolist()
    assert len(fresh) > 5
    assert not {(i, *sorted((j, k))) for i, j, k in fresh} & known
