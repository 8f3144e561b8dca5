"""A fast search finds what its slow twin finds: every code decoded, at its norm, compared with every query."""

from functools import cache

import numpy as np
import pytest

from nearkin import Index, ProductQuantizer
from nearkin.index.searching import decoded_rows, normalised, rows_at_norms
from nearkin.quantization import AxisQuantizer
from tests.covering import each

LOST = 0.002  # of the recall of the codes
N, QUERIES, D = 10_000, 250, 48
QUANTIZERS = {
    "product": ProductQuantizer(12, 256, rotation=None, max_iter=1, random_state=0),
    "axis": AxisQuantizer(12),
    "fast scan": ProductQuantizer(12, 16, rotation=None, max_iter=2, random_state=0),
}


@cache
def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 that codes hold to different shares, so that decoded norms differ; queries of another kind."""
    rng = np.random.default_rng(0)
    basis, share = rng.normal(size=(6, D)), rng.uniform(0.1, 1, size=(N, 1))
    X = share * (rng.normal(size=(N, 6)) @ basis) / 6**0.5 + (1.2 - share) * rng.normal(size=(N, D))
    Q = 0.6 * (rng.normal(size=(QUERIES, 6)) @ basis) / 6**0.5 + rng.normal(size=(QUERIES, D))
    return normalised(X.astype(np.float32)), normalised(Q.astype(np.float32))


def slow_twin(index: Index, Q: np.ndarray, k: int) -> np.ndarray:
    """Ids (q, k) of all decoded rows, at their norms, in float64."""
    scan, own = index._searched.scan(index.faiss_index), np.arange(len(index))
    rows = (decoded_rows(scan, own) if index.norms is None else rows_at_norms(scan, index.norms, own)).astype(float)
    products = Q @ rows[:, :D].T
    scores = np.square(rows).sum(axis=1) - 2 * products if index.metric == "l2" else -products
    return scores.argsort(axis=1)[:, :k]


def recall(ids: np.ndarray, truth: np.ndarray, k: int) -> float:
    return float((ids[:, :k, None] == truth[:, None, :k]).any(axis=2).mean())


@pytest.mark.parametrize("metric", ["l2", "cosine"])
@each("kind", QUANTIZERS)
def test_no_recall_of_the_codes_is_lost(kind: str, metric: str) -> None:
    """Sentences by cosine, 24 bytes, had a recall of .630 where their codes had .651."""
    X, Q = vectors()
    index = Index.build(X, QUANTIZERS[kind], metric=metric)
    truth = (-(Q @ X.T)).argsort(axis=1)[:, :100]
    codes = slow_twin(index, Q, 100)
    for k in (1, 10, 100):
        ids, alone = index.search(Q, k)[1], [index.search(query[None], k)[1][0] for query in Q[:20]]
        lost = recall(codes, truth, k) - recall(ids, truth, k)
        assert lost <= LOST, (k, lost)
        assert recall(ids, codes, k) > 0.99, k
        assert (np.array(alone) == ids[:20]).mean() > 0.99, k


@each("kind", QUANTIZERS)
def test_candidates_for_kept_vectors_are_those_of_the_codes(kind: str) -> None:
    """They were ranked without their norms: of sentences, 24 bytes, .885 of ten neighbours for .939."""
    X, Q = vectors()
    index = Index.build(X, QUANTIZERS[kind], metric="cosine", keep_vectors=True)
    truth, codes = (-(Q @ X.T)).argsort(axis=1)[:, :10], slow_twin(index, Q, 20)
    most = float((truth[:, :, None] == codes[:, None]).any(axis=2).mean())
    assert recall(index.search(Q, 10, oversample=2)[1], truth, 10) > most - 0.005
