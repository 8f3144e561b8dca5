"""Measures of rankings by graded relevance: people's judgements of vectors for queries, as in TREC's and BEIR's
qrels."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from nearkin.metrics.retrieval import discounted_gain, reciprocal_rank, tie_groups

NDCG, RECALL, MRR = "NDCG@10", "Recall@100", "MRR@10"
DEPTH = 100  # answers that the measures need
_TOP = 10


def graded_values(
    found: np.ndarray, grades: sp.csr_matrix, scores: np.ndarray | None = None, depth: int = DEPTH
) -> Mapping[str, np.ndarray]:
    """NDCG@10, Recall@100 and MRR@10 (q,) of rankings `found` (q, K), best first, each as trec_eval defines it.

    found: numbers of vectors, -1 for none. grades (q, n): one at least above 0 for each query. Vectors of such a grade
    are relevant, and it is their gain; others gain 0. Vectors of equal `scores` (q, K) are in random order, so that
    values are expected ones. Places from `depth` on do not count, but complete groups of equal scores.
    """
    grades = sp.csr_matrix(grades.multiply(grades > 0))
    gains = np.where(found < 0, 0, grades[np.arange(len(found))[:, None], np.maximum(found, 0)].toarray())
    ideal = np.zeros((len(found), _TOP))
    for row, first, last in zip(ideal, grades.indptr, grades.indptr[1:], strict=False):
        best = np.sort(grades.data[first:last])[::-1][:_TOP]
        row[: len(best)] = best
    new = np.ones(found.shape, bool)
    if scores is not None:
        new[:, 1:] = scores[:, 1:] != scores[:, :-1]
    group, place = tie_groups(new)
    size, hits, gain = (
        np.bincount(group.ravel(), of, group.size)[group][:, :depth]
        for of in (None, (gains > 0).ravel(), gains.ravel())
    )
    hazard = np.minimum(hits / np.maximum(size - place[:, :depth], 1), 1)
    return {
        NDCG: discounted_gain((gain / size)[:, :_TOP]) / discounted_gain(ideal),
        RECALL: (hits / size)[:, :DEPTH].sum(axis=1) / np.diff(grades.indptr),
        MRR: reciprocal_rank(hazard[:, :_TOP]),
    }
