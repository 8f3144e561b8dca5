"""The error of an embedding, against a plain loop, and where NaN, ties and wrong indices must not slip through."""

import numpy as np
import pytest

from nearkin.data.comparisons import comparisons_from_array, comparisons_from_names
from nearkin.data.comparisons.votes import comparisons_from_vectors
from nearkin.metrics import triplet_error
from nearkin.metrics.ordinal import satisfied
from tests.covering import each


@each("quadruplets", [False, True])
def test_equals_a_plain_loop(quadruplets, rng):
    X, other = rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    answers = comparisons_from_vectors(other, 300, quadruplets=quadruplets, random_state=1)
    wrong = 0
    for i, j, l, k in answers.quadruplets():  # noqa: E741
        wrong += not np.linalg.norm(X[i] - X[j]) < np.linalg.norm(X[l] - X[k])
    assert triplet_error(X, answers) == pytest.approx(wrong / 300)
    assert triplet_error(X, answers.indices) == pytest.approx(wrong / 300)


def test_nan_and_ties_are_violations_and_votes_weigh():
    assert triplet_error(np.full((3, 2), np.nan), [[0, 1, 2]]) == 1.0
    assert triplet_error(np.zeros((3, 2)), [[0, 1, 2], [0, 2, 1]]) == 1.0
    assert triplet_error(np.array([[0], [2], [6]]) + 2**53, [[0, 1, 2]]) == 0.0  # beyond float32
    X = np.array([[0.0], [1.0], [3.0]])
    assert triplet_error(X, comparisons_from_array([[0, 1, 2], [0, 2, 1]], weights=[3, 1])) == pytest.approx(0.25)


def test_errors():
    X, few = np.zeros((3, 1)), "comparisons has 3 objects, X 4 vectors"
    for points, comparisons, match in (
        (X, [[0, 1, 5]], "largest index in comparisons is 5; it must be an integer of at most 2"),
        (X[:, 0], [[0, 1, 2]], "2-D"),
        (X, np.empty((0, 3), int), "at least one is needed"),
        (np.zeros((4, 1)), comparisons_from_names([["b", "c", "d"]]), f"{few}; vector r is object r"),
        (np.zeros((4, 1)), comparisons_from_names([[1, 2, 3]]), few),  # numbers from 1 are names
    ):
        with pytest.raises(ValueError, match=match):
            triplet_error(points, comparisons)


@each("index", [-1, 4, 10**7])
def test_satisfied_never_reads_outside(index):
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match=rf"comparisons .*is .*{index}"):
        satisfied(X, np.array([[0, 1, index]]))
    with pytest.raises(ValueError, match=r"comparisons has shape \(1, 2\)"):
        satisfied(X, np.array([[0, 1]]))
