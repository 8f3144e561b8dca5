"""Where answers disagree: over one question, and with the map."""

import numpy as np
import pytest

from nearkin.web.ask.questions import FORMS, Question
from nearkin.web.ask.server import pairs_against_map, split_questions, votes_by_question

NAMES = ["a", "b", "c", "d"]


def answered(form, *given):
    """Questions with their answers: (rater, items shown, choice)."""
    return [Question(n, rater, "random", shown, choice) for n, (rater, shown, choice) in enumerate(given)]


def test_a_question_that_people_answer_differently_is_named_with_its_counts():
    form = FORMS["triplet"]
    asked = answered(
        form, ("x", (0, 1, 2), 0), ("y", (0, 2, 1), 1), ("z", (0, 1, 2), 1), ("x", (0, 1, 3), 0), ("y", (0, 1, 3), 0)
    )
    (row,) = split_questions(form, votes_by_question(form, asked), NAMES)
    assert row == {"items": ["a", "b", "c"], "chosen": [["b", 2], ["c", 1]]}


def test_one_person_who_answers_twice_is_no_disagreement():
    """Two answers of one person were listed among the questions that people answer differently."""
    form = FORMS["triplet"]
    asked = answered(form, ("x", (0, 1, 2), 0), ("x", (0, 2, 1), 0), ("y", (0, 1, 2), 1))
    assert split_questions(form, votes_by_question(form, asked), NAMES) == []
    asked = [*asked, *answered(form, ("z", (0, 1, 2), 0))]
    (row,) = split_questions(form, votes_by_question(form, asked), NAMES)
    assert row["chosen"] == [["c", 2], ["b", 1]]  # the last answer of x


@pytest.mark.parametrize(("name", "words"), [("triplet", "b"), ("odd-one-out", "a"), ("pairs", "a and b")])
def test_what_was_chosen_is_named(name, words):
    form = FORMS[name]
    shown = (0, 1, 2, 3)[: len(form.columns)]
    asked = answered(form, ("x", shown, 0), ("y", shown, 1))
    (row,) = split_questions(form, votes_by_question(form, asked), NAMES)
    assert [words, 1] in row["chosen"]


def test_the_pair_that_the_map_places_otherwise_comes_first():
    form, places = FORMS["triplet"], np.array([[0.0], [1.0], [3.0], [7.0]])
    shown = (0, 1, 3), (1, 0, 3), (2, 1, 3), (0, 2, 3)
    right = [(rater, items, 0) for rater in "xyz" for items in shown]
    wrong = [(rater, (0, 1, 2), 1) for rater in "vwxyz"]

    def pairs(*given):
        return pairs_against_map(form, votes_by_question(form, answered(form, *given)), places, NAMES)

    found = pairs(*right, *wrong)
    assert found[0] == {"items": ["a", "c"], "answers": 8, "against": 5 / 8}
    assert pairs() == []
    assert pairs(*right, *wrong, *wrong) == found  # one vote a rater
