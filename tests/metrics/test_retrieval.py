"""Retrieval measures against answers worked out by hand and against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import average_precision_score, ndcg_score

from nearkin import metrics
from nearkin.metrics.retrieval import graded_values, relevance, without_self
from tests.covering import each
from tests.refusals import each_refused

RETRIEVED = np.array([[5, 1, 9, 2], [7, 8, 3, 4]])
RELEVANT = np.array([[1, 2, 6], [4, -1, -1]])  # -1 pads the second query's list


def test_relevance_by_hand() -> None:
    """A repeated id counts once, padding never; of text and of uneven lists too."""
    assert relevance(RETRIEVED, RELEVANT).tolist() == [[False, True, False, True], [False, False, False, True]]
    assert relevance([[3, 3, -1]], [[3, -1, -1]]).tolist() == [[True, False, False]]
    assert relevance([["a", "b"], ["c", ""]], [["b", "x"], ["a", ""]]).tolist() == [[0, 1], [0, 0]]
    lists = [[1, 2], [3]], [[2], [3, 4]]
    for held in (lists, [np.array(rows, dtype=object) for rows in lists]):  # as pandas holds lists
        assert metrics.recall(*held) == pytest.approx((1 + 1 / 2) / 2)


def by_label(ranked: object, labels: object) -> float:
    return float(metrics.average_precision(metrics.label_relevance(ranked, labels)).mean())


def test_measures_by_hand() -> None:
    """An empty place is a miss."""
    assert metrics.recall(RETRIEVED, RELEVANT) == pytest.approx((2 / 3 + 1) / 2)
    assert metrics.recall(RETRIEVED, RELEVANT, k=2) == pytest.approx((1 / 3 + 0) / 2)
    assert metrics.precision(RETRIEVED, RELEVANT, k=2) == pytest.approx((1 / 2 + 0) / 2)
    assert metrics.precision([[1, -1]], [[1, 2]], k=4) == pytest.approx(1 / 4)
    neighbors, retrieved = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[3, 2, 9], [5, 4, 6]])
    assert metrics.recall(retrieved, neighbors, k=2, n_relevant=1) == pytest.approx(1 / 2)  # 1 is missed, 4 is found
    assert metrics.recall_k_at_k(retrieved, neighbors, k=2) == pytest.approx((1 / 2 + 2 / 2) / 2)
    hits = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    assert metrics.average_precision(hits) == pytest.approx([(1 / 1 + 2 / 3) / 2, 0])
    assert metrics.average_precision(hits, n_relevant=4) == pytest.approx([(1 / 1 + 2 / 3) / 4, 0])
    assert metrics.mean_average_precision([[1, 2]], [[1, 2, 3, 4]], k=2) == 1  # divided by what k allows
    assert metrics.mean_average_precision([[1, 2]], [[1, 2, 3, 4]]) == pytest.approx(1 / 2)


def test_rows_of_several_labels_are_alike_if_they_share_one(rng: np.random.Generator) -> None:
    labels, queries = rng.random((60, 4)) < 0.3, rng.random((25, 4)) < 0.3
    order = rng.permuted([range(60)] * 25, axis=1)
    shared = (queries.astype(int) @ labels.T) > 0
    found = metrics.label_relevance(labels[order], queries)
    np.testing.assert_array_equal(found, np.take_along_axis(shared, order, axis=1))
    classes = rng.integers(0, 4, 60)
    one_hot = np.eye(4, dtype=bool)[classes]
    assert by_label(one_hot[order], one_hot[:25]) == by_label(classes[order], classes[:25])


def test_mean_average_precision_agrees_with_scikit_learn(rng: np.random.Generator) -> None:
    labels = rng.integers(0, 4, 60)
    queries = rng.integers(0, 4, 25)
    scores = rng.normal(size=(25, 60))
    order = np.argsort(-scores, axis=1)
    expected = np.mean([average_precision_score(labels == q, s) for q, s in zip(queries, scores, strict=True)])
    assert by_label(labels[order], queries) == pytest.approx(expected, rel=1e-12)
    relevant = [np.flatnonzero(labels == q) for q in queries]
    assert metrics.mean_average_precision(order, relevant) == pytest.approx(expected, rel=1e-12)


@each("k", [None, 1, 5, 30])
def test_ndcg_agrees_with_scikit_learn(rng: np.random.Generator, k: int | None) -> None:
    truth = rng.random((20, 30)) < 0.2
    truth[:, 0] = True  # scikit-learn counts a query without relevant rows as 0, we leave it out
    scores = rng.normal(size=(20, 30))
    order = np.argsort(-scores, axis=1)
    relevant = [np.flatnonzero(row) for row in truth]
    assert metrics.ndcg(order, relevant, k) == pytest.approx(ndcg_score(truth, scores, k=k), rel=1e-12)


def test_a_query_with_nothing_relevant_is_left_out() -> None:
    retrieved, relevant = [[1, 2], [3, 4]], [[1, -1], [-1, -1]]
    for measure in (metrics.recall, metrics.mean_average_precision, metrics.ndcg):
        assert measure(retrieved, relevant) == 1, measure.__name__
    assert metrics.precision(retrieved, relevant) == 1 / 2


def test_bad_input() -> None:
    each_refused([
        (lambda: metrics.recall([1, 2], [[1]]), ValueError, "retrieved has shape"),
        (lambda: metrics.recall([[0.5]], [[1]]), ValueError, "dtype float64; it must be"),
        (lambda: metrics.recall([[True]], [[True]]), ValueError, "dtype bool; it must be"),
        (lambda: metrics.recall(np.array([[2**64 - 1]]), [[1]]), ValueError, "integers below 2"),
        (lambda: metrics.recall([[1]], [[1], [2]]), ValueError, "retrieved has 1 list and relevant 2"),
        (lambda: metrics.recall([["a"]], [[1]]), TypeError, "ids must be of one type"),
        (lambda: metrics.recall([[1]], [[1]], n_relevant=2), ValueError, "n_relevant is 2; relevant has only 1"),
        (lambda: metrics.recall([[1]], [[1]], k=0), ValueError, "k is 0"),
        (lambda: metrics.ndcg([[2, 0, 1]], [[0, 1, 0]]), ValueError, "relevant: 1 id occurs more than once.*as bool"),
        (lambda: metrics.ndcg([[2, 0, 1]], [[True, False, True]]), ValueError, "relevant has .* dtype bool"),
        (lambda: metrics.label_relevance([[1]], [1, 2]), ValueError, r"labels has shape \(2,\)"),
        (lambda: metrics.label_relevance([1], [1]), ValueError, r"must be \(n, K\) and \(n,\)"),
        (lambda: metrics.label_relevance([[1, 0]], [[True, False]]), ValueError, r"\(n, K, c\) and \(n, c\)"),
        (lambda: metrics.label_relevance([[[1, 0]]], [[True, False]]), ValueError, "retrieved_labels has shape"),
        (lambda: metrics.average_precision([[1, 0]]), ValueError, "must be .* bool"),
        (lambda: metrics.label_relevance([["a"]], [1]), TypeError, "are text and labels numbers; give labels of one"),
        (lambda: metrics.average_precision(np.ones((1, 2), bool), 1), ValueError, "n_relevant is 1"),
        (lambda: metrics.average_precision([[True, False]], [1, 2]), ValueError, "n_relevant"),
        (lambda: metrics.average_precision([[True, False]], [np.nan]), ValueError, "n_relevant"),
        (lambda: metrics.recall([{1, 2}], [[1]]), ValueError, "has shape"),
        (lambda: metrics.recall([[1]], [{1, 2}]), ValueError, "has shape"),
        (lambda: without_self(np.array([[4, 7]]), np.array(["7"])), TypeError, "own <U1; ids must be of one type"),
    ])  # fmt: skip


def test_graded_values_are_those_of_ir_measures() -> None:
    ir = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    found = np.array([rng.permutation(300)[:150] for _ in range(20)])
    found[3, 5:] = -1  # a search that found less
    grades = sp.csr_matrix(np.where(rng.random((20, 320)) < 0.1, rng.integers(1, 4, (20, 320)), 0))
    places = zip(*grades.nonzero(), strict=True)
    qrels = [ir.Qrel(f"q{q}", f"d{d}", int(grades[q, d])) for q, d in places]
    filled = zip(*(found >= 0).nonzero(), strict=True)
    run = [ir.ScoredDoc(f"q{q}", f"d{found[q, place]}", -float(place)) for q, place in filled]
    theirs = ir.iter_calc([ir.nDCG @ 10, ir.R @ 100, ir.RR @ 10], qrels, run)
    expected = {(str(value.measure), value.query_id): value.value for value in theirs}
    values = graded_values(found, grades)
    for name, measure in {"NDCG@10": "nDCG@10", "Recall@100": "R@100", "MRR@10": "RR@10"}.items():
        np.testing.assert_allclose(values[name], [expected[measure, f"q{q}"] for q in range(20)], atol=1e-12)


def test_lists_of_ids_as_people_hold_them() -> None:
    found = [[3, 1, 2], [4, 5, 6]]
    for relevant in ([[1, 7], [6]], [torch.tensor([1, 7]), torch.tensor([6])]):
        assert metrics.recall(found, relevant, k=2) == 0.25
    assert metrics.recall([["a"], []], [["a"], ["b"]]) == 0.5
    assert metrics.recall([["a"]], [[]]) == metrics.ndcg([[], []], [[1], [2]]) == 0
