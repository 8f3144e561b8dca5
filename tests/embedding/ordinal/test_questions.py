"""Questions worth asking: those that were not asked yet, and of these the informative ones."""

import numpy as np
import pytest

from nearkin.data import comparisons_from_vectors
from nearkin.embedding.ordinal.questions import information, informative_queries, random_queries
from nearkin.records import Comparisons
from tests.covering import each

X = np.random.default_rng(0).normal(0, 1, (8, 2))


def test_triplets_written_as_quadruplets_are_the_same_answers():
    """They counted as no answers once: `nearkin ask` repeated questions and chose as if nothing was known."""
    triplets = comparisons_from_vectors(X, 60, random_state=0)
    i, j, k = triplets.indices.T
    forms = [np.stack(columns, axis=1) for columns in ((i, j, i, k), (j, i, i, k), (i, j, k, i), (j, i, k, i))]
    wanted = informative_queries(X, triplets, 10, np.random.default_rng(1))
    for rows in forms:
        found = informative_queries(X, Comparisons(rows, np.arange(8)), 10, np.random.default_rng(1))
        np.testing.assert_array_equal(found, wanted)


@each("choose", [informative_queries, lambda X, *given: random_queries(len(X), *given)])
@each("missing", [[], [(2, 0, 3)], [(2, 0, 3), (1, 0, 2), (3, 1, 2)]])
@each("n", [4, 12])
def test_the_last_open_questions_are_found_and_then_none(n, missing, choose):
    points = np.random.default_rng(1).normal(size=(n, 2))
    every = [(i, j, k) for i in range(n) for j in range(n) for k in range(j + 1, n) if i not in (j, k)]
    asked = Comparisons(np.array([row for row in every if row not in missing]), np.arange(n))
    found = choose(points, asked, 10, np.random.default_rng(0)).tolist()
    assert sorted((i, *sorted((j, k))) for i, j, k in found) == sorted(missing)
    rankings = choose(points, asked, 10, np.random.default_rng(0), "ranking")
    assert rankings.shape[1] == min(n, 5)
    assert missing or not len(rankings)


def test_information_of_two_places_and_of_answers_about_an_object_in_each_role():
    """Two places, each sure of its answer: variance 1/4; a question of which both answer alike tells 0. An answer with
    the object in whichever role makes one of the places likelier, by (1 - lapse / 2) to lapse / 2 = 4."""
    X = np.array([[0.0], [-40.0], [40.0], [90.0], [-90.0]])
    places, rows = np.array([[-9.0], [9.0]]), np.array([[0, 1, 2], [0, 1, 3]])
    nothing = np.empty((0, 3), np.int64)
    np.testing.assert_allclose(information(places, X, nothing, rows)[:, 0], [1 / 4, 0], atol=1e-6)
    X[4] = -36.0
    for answer in ([0, 1, 2], [2, 3, 0], [1, 0, 4]):
        found = information(np.array([[-40.0], [9.0]]), X, np.array([answer]), rows)[0, 0]
        assert found == pytest.approx(4 / 25, abs=1e-6)
