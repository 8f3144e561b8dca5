"""Questions, splits that keep their answers together, and the error that no model can beat."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import noise_floor, split_comparisons
from nearkin.data.comparison_votes import questions
from nearkin.data.comparisons import comparisons_from_array


def asked(n_questions: int, answers: int, p: np.ndarray, rng: np.random.Generator) -> nk.Comparisons:
    """Questions (0, 2 q + 1, 2 q + 2), each answered `answers` times, the first pair with chance p[q]."""
    q = np.repeat(np.arange(n_questions), answers)
    near, far = 2 * q + 1, 2 * q + 2
    turned = rng.random(len(q)) > p[q]
    return comparisons_from_array(np.stack([0 * q, np.where(turned, far, near), np.where(turned, near, far)], axis=1))


def test_a_question_has_one_number_however_it_is_answered():
    number, first = questions(comparisons_from_array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2]]))
    assert number[0] == number[1] == number[3] != number[2]
    assert first[0] == first[3] != first[1]
    number, _ = questions(comparisons_from_array([[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3]]))
    assert number[0] == number[1] != number[2]


def test_a_split_by_questions_does_not_leak(rng):
    answers = asked(50, 6, np.full(50, 0.7), rng)
    train, test = split_comparisons(answers, 0.2, by="questions", random_state=1)
    sides = [{tuple(sorted(row[1:])) for row in part.indices.tolist()} for part in (train, test)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == 10
    by_rows = split_comparisons(answers, 0.2, random_state=1)
    assert {tuple(sorted(row[1:])) for row in by_rows[0].indices.tolist()} & {
        tuple(sorted(row[1:])) for row in by_rows[1].indices.tolist()
    }


@pytest.mark.parametrize("p", [0.5, 0.7, 0.9, 1.0])
def test_the_noise_floor_is_the_error_of_the_best_model(rng, p):
    answers = asked(4000, 3, np.full(4000, p), rng)
    assert noise_floor(answers) == pytest.approx(1 - p, abs=0.1 if p == 0.5 else 0.015)


def test_the_noise_floor_is_a_lower_bound_where_questions_differ(rng):
    p = rng.uniform(0.5, 1.0, 4000)
    floor = noise_floor(asked(4000, 4, p, rng))
    assert 0.1 < floor < np.minimum(p, 1 - p).mean()


def test_without_repetition_there_is_no_floor():
    with pytest.raises(ValueError, match="no question was answered twice"):
        noise_floor(comparisons_from_array([[0, 1, 2], [1, 2, 0]]))
