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


def test_nan_and_ties_are_violations():
    assert triplet_error(np.full((3, 2), np.nan), [[0, 1, 2]]) == 1.0
    assert triplet_error(np.zeros((3, 2)), [[0, 1, 2], [0, 2, 1]]) == 1.0
    assert triplet_error(np.array([[0], [2], [6]]) + 2**53, [[0, 1, 2]]) == 0.0  # beyond float32


def test_votes_weigh():
    X = np.array([[0.0], [1.0], [3.0]])
    assert triplet_error(X, comparisons_from_array([[0, 1, 2], [0, 2, 1]], weights=[3, 1])) == pytest.approx(0.25)


def test_errors():
    with pytest.raises(ValueError, match="largest index in comparisons is 5; it must be an integer of at most 2"):
        triplet_error(np.zeros((3, 1)), [[0, 1, 5]])
    with pytest.raises(ValueError, match="2-D"):
        triplet_error(np.zeros(3), [[0, 1, 2]])
    with pytest.raises(ValueError, match="at least one is needed"):
        triplet_error(np.zeros((3, 1)), np.empty((0, 3), int))
    with pytest.raises(ValueError, match="comparisons has 3 objects, X 4 vectors; vector r is object r"):
        triplet_error(np.zeros((4, 1)), comparisons_from_names([["b", "c", "d"]]))
    with pytest.raises(ValueError, match="comparisons has 3 objects, X 4 vectors"):  # numbers from 1 are names
        triplet_error(np.zeros((4, 1)), comparisons_from_names([[1, 2, 3]]))


@each("index", [-1, 4, 10**7])
def test_satisfied_never_reads_outside(index):
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match=rf"comparisons .*is .*{index}"):
        satisfied(X, np.array([[0, 1, index]]))
    with pytest.raises(ValueError, match=r"comparisons has shape \(1, 2\)"):
        satisfied(X, np.array([[0, 1]]))
