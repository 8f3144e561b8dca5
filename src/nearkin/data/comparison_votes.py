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


def net_votes(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Per question (two pairs, whichever is nearer): votes for one answer minus votes for the other, and their sum.

    Both are (number of questions,). A question is contradicted where |net| < sum.
    """
    i, j, l, k = comparisons.quadruplets().T.astype(np.uint64)  # noqa: E741  the paper's letters
    n = np.uint64(comparisons.n_objects)
    near = np.minimum(i, j) * n + np.maximum(i, j)  # a pair has no order
    far = np.minimum(l, k) * n + np.maximum(l, k)
    question = np.stack([np.minimum(near, far), np.maximum(near, far)], axis=1)
    _, inverse = np.unique(question, axis=0, return_inverse=True)
    weights = np.ones(len(near)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    signs = np.where(near < far, 1.0, -1.0)
    size = int(inverse.max()) + 1 if len(inverse) else 0
    inverse = inverse.ravel()
    return np.bincount(inverse, weights * signs, minlength=size), np.bincount(inverse, weights, minlength=size)


def count_contradictions(comparisons: Comparisons) -> int:
    """The number of questions that were answered both ways."""
    net, total = net_votes(comparisons)
    return int((np.abs(net) < total * (1 - 1e-6)).sum())
