"""Answers to the same question: merged into votes, and counted where they contradict."""

from dataclasses import replace

import numpy as np

from nearkin.records import Comparisons


def merge_votes(comparisons: Comparisons) -> Comparisons:
    """Equal rows as one, with the sum of their weights; annotators are lost. Rows are in sorted order."""
    rows, inverse = np.unique(comparisons.indices, axis=0, return_inverse=True)
    weights = np.ones(len(comparisons)) if comparisons.weights is None else comparisons.weights
    votes = np.bincount(inverse.ravel(), weights=weights, minlength=len(rows))
    return replace(comparisons, indices=rows, weights=votes, annotators=None)


def questions(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """The question of each comparison (m,), numbered from 0, and which of its two answers was given (m,) bool.

    A question is two pairs, whichever is nearer; a pair has no order.
    """
    i, j, l, k = comparisons.quadruplets().T.astype(np.uint64)  # noqa: E741  the paper's letters
    n = np.uint64(comparisons.n_objects)
    near = np.minimum(i, j) * n + np.maximum(i, j)
    far = np.minimum(l, k) * n + np.maximum(l, k)
    asked = np.stack([np.minimum(near, far), np.maximum(near, far)], axis=1)
    _, number = np.unique(asked, axis=0, return_inverse=True)
    return number.ravel(), near < far


def net_votes(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Per question (two pairs, whichever is nearer): votes for one answer minus votes for the other, and their sum.

    Both are (number of questions,). A question is contradicted where |net| < sum.
    """
    number, first = questions(comparisons)
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    size = int(number.max()) + 1 if len(number) else 0
    return np.bincount(number, np.where(first, weights, -weights), size), np.bincount(number, weights, size)


def noise_floor(comparisons: Comparisons) -> float:
    """The error that no model can beat, in [0, 1/2], from questions that were answered at least twice.

    With p the share of one answer among all that would be given to a question, the best model errs with min(p, 1 - p)
    and two answers disagree with chance D = 2 p (1 - p), so that min(p, 1 - p) = (1 - sqrt(1 - 2 D)) / 2. The mean of
    D over questions, weighted by their answers, is estimated without bias from pairs of answers and put into this
    formula. It is convex in D: where some questions are harder than others, the floor lies above the number returned
    (Jensen). One row is one answer, whatever its weight. ValueError if no question was answered twice.
    """
    number, first = questions(comparisons)
    total = np.bincount(number)
    ones = np.bincount(number, first)
    repeated = total >= 2
    if not repeated.any():
        raise ValueError("no question was answered twice; the noise floor cannot be told from these comparisons")
    total, ones = total[repeated].astype(np.float64), ones[repeated]
    disagree = 2 * ones * (total - ones) / (total * (total - 1))  # share of a question's pairs of answers
    share = float(np.average(disagree, weights=total))
    return 0.5 * (1.0 - float(np.sqrt(max(0.0, 1.0 - 2.0 * share))))


def count_contradictions(comparisons: Comparisons) -> int:
    """The number of questions that were answered both ways."""
    net, total = net_votes(comparisons)
    return int((np.abs(net) < total * (1 - 1e-6)).sum())
