"""Hamming measures against brute force: all orders of tied rows averaged one by one."""

from itertools import permutations

import numpy as np
import pytest

from nearkin.metrics.hamming import hamming_histograms, hamming_radius_precision
from tests.covering import each
from tests.refusals import each_refused


def random_codes(rng, n, width):
    return rng.integers(0, 256, (n, width), dtype=np.uint8)


def average_precision(hits):
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return precision[hits].mean() if hits.any() else 0.0


def orders_of_ties(distances):
    """Every ranking of the rows by distance."""
    for order in permutations(range(len(distances))):
        if (np.diff(distances[list(order)]) >= 0).all():
            yield list(order)


def hamming_distances(a, b):
    return np.bitwise_count(a[:, None] ^ b[None]).sum(axis=2, dtype=int)


@each("width", [1, 3, 8, 9, 16])
def test_histograms_count_unpacked_bits(rng, width):
    a, b = random_codes(rng, 37, width), random_codes(rng, 21, width)
    slow = (np.unpackbits(a, axis=1)[:, None] != np.unpackbits(b, axis=1)[None]).sum(axis=2)
    found = hamming_histograms(a, b, np.zeros(37), np.arange(21)).total
    np.testing.assert_array_equal(found, [np.bincount(row, minlength=8 * width + 1) for row in slow])


@each("seed", range(5))
def test_measures_are_the_mean_over_all_orders_of_ties(seed):
    rng = np.random.default_rng(seed)
    queries, database = random_codes(rng, 3, 1) & 7, random_codes(rng, 6, 1) & 7
    query_labels, labels = rng.integers(0, 2, 3), rng.integers(0, 2, 6)
    histograms = hamming_histograms(queries, database, query_labels, labels)
    for i, distances in enumerate(hamming_distances(queries, database)):
        relevant = labels == query_labels[i]
        rankings = [relevant[order] for order in orders_of_ties(distances)]
        expected = np.mean([average_precision(hits) for hits in rankings])
        assert histograms.average_precision()[i] == pytest.approx(expected, abs=1e-12)
        for k in (1, 3, 6):
            assert histograms.precision_at(k)[i] == pytest.approx(np.mean([hits[:k].mean() for hits in rankings]))


def test_radius_precision_counts_empty_answers_as_zero_and_cut_offs_end_with_the_rows():
    database = np.array([[0], [1], [255], [254]], np.uint8)
    queries = np.array([[0], [0b00111100]], np.uint8)  # the second is 4 and more bits away from everything
    assert hamming_radius_precision(queries, database, [5, 5], [5, 6, 5, 5], radius=2) == pytest.approx(0.5 / 2)
    codes = np.zeros((4, 1), np.uint8)
    assert hamming_histograms(codes[:1], codes, [1], [1, 1, 0, 0]).precision_at(1000) == pytest.approx(0.5)


def test_neighbours_are_relevant_rows_count_once_and_may_be_padded(rng):
    queries, database = random_codes(rng, 7, 2), random_codes(rng, 50, 2)
    neighbours = np.array([[*row[:10], row[0], -1] for row in rng.permuted([range(50)] * 7, axis=1)])
    by_neighbours = hamming_histograms(queries, database, neighbours=neighbours)
    for i in range(7):
        labels = np.isin(np.arange(50), neighbours[i])
        by_labels = hamming_histograms(queries[i : i + 1], database, [True], labels)
        np.testing.assert_array_equal(by_neighbours.total[i], by_labels.total[0])
        np.testing.assert_array_equal(by_neighbours.relevant[i], by_labels.relevant[0])


ONE, TWO, WIDE = (np.zeros(shape, np.uint8) for shape in ((1, 1), (2, 1), (2, 2)))


def test_bad_input_is_named():
    each_refused([
        (lambda: hamming_histograms(np.zeros((2, 1)), TWO, [0, 0], [0, 0]), TypeError, "queries has dtype float64"),
        (lambda: hamming_histograms(TWO, WIDE, [0, 0], [0, 0]), ValueError, "equal width"),
        (lambda: hamming_histograms(TWO, TWO), ValueError, "give both, or neighbours"),
        (lambda: hamming_histograms(TWO, TWO, [0], [0, 0]), ValueError, "query_labels has shape"),
        (lambda: hamming_histograms(ONE, TWO, neighbours=[[0, 9]]), ValueError, "within 0..1"),
        (lambda: hamming_histograms(ONE, TWO, neighbours=[[0.5]]), ValueError, "must be integers"),
        (lambda: hamming_histograms(ONE, ONE, [0], [0]).precision_within(-1), ValueError, "radius is -1"),
        (lambda: hamming_histograms(ONE, ONE, [0], [0]).precision_at(0), ValueError, "k is 0"),
    ])  # fmt: skip
