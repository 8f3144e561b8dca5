import numpy as np
import pytest

from nearkin.data.comparisons import comparisons_from_array
from nearkin.data.comparisons.synthetic import comparisons_from_vectors
from nearkin.embedding.ordinal.bootstrap import align, error_interval
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons


def test_align_undoes_a_turn_a_scale_and_a_shift(rng):
    X = rng.normal(size=(12, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rows = np.arange(12) < 9
    np.testing.assert_allclose(align(0.3 * X @ turn + [1.0, -2.0, 5.0], X, rows), X, atol=1e-12)


def test_interval_of_the_error_holds_the_error_to_come(rng):
    """90 % intervals from 300 answers hold the error of 20,000 others in nine of ten cases or so."""
    points = rng.normal(size=(20, 2))
    guess = points + rng.normal(0, 0.4, (20, 2))
    to_come = triplet_error(guess, comparisons_from_vectors(points, 20_000, noise=0.1, random_state=0))
    held = 0
    for seed in range(20):
        answers = comparisons_from_vectors(points, 300, noise=0.1, random_state=seed + 1)
        low, high = error_interval(guess, answers, n_draws=200)
        held += low <= to_come <= high
    assert 15 <= held <= 20


def test_answers_to_one_question_are_drawn_together(rng):
    """Ten answers each to thirty questions know less of the error than three hundred questions."""
    points = rng.normal(size=(20, 2))
    guess = points + rng.normal(0, 0.6, (20, 2))
    some = comparisons_from_vectors(points, 30, random_state=3)
    repeated = Comparisons(np.repeat(some.indices, 10, axis=0), some.objects)
    many = comparisons_from_vectors(points, 300, random_state=3)
    widths = [high - low for low, high in (error_interval(guess, answers) for answers in (repeated, many))]
    assert widths[0] > 2 * widths[1]


def test_no_answers_have_no_error():
    with pytest.raises(ValueError, match="comparisons is empty"):
        error_interval(np.zeros((3, 1)), comparisons_from_array([[0, 1, 2]]).take(slice(0, 0)))
