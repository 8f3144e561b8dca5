"""Residual and product residual quantizers: what they keep beside FAISS's, by inner product, and in a fast scan."""

from functools import partial

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin._exact import nearest
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from tests.covering import each


def _kept(index, add, X, Q):
    """Of ten neighbours of queries Q among rows X, how many the index finds."""
    add(X)
    return nk.metrics.recall_k_at_k(index.search(Q, 10)[1], nearest(X, Q, 10)[1], 10)


@each(
    ("made", "peer"),
    [
        (partial(ResidualQuantizer, 3), faiss.IndexResidualQuantizer(24, 3, 5)),
        (partial(ProductResidualQuantizer, 3, 2), faiss.IndexProductResidualQuantizer(24, 3, 2, 5)),
    ],
)
def test_more_neighbours_are_kept_than_by_faiss_and_product_codes(made, peer, rng):
    """Rows of unequal length, whose codes leave errors of unequal length."""
    X = rng.normal(size=(2000, 24)) * np.arange(1, 25) ** -0.6 * rng.gamma(2.0, 0.5, (2000, 1))
    learned, others, Q = np.split(X.astype(np.float32), [1000, 1800])
    peer.train(learned)
    kept = {"faiss": _kept(peer, peer.add, others, Q)}
    codes = made(n_centroids=32, random_state=0)
    for name, model in {"ours": codes, "product": nk.ProductQuantizer(codes.n_splits * codes.n_codebooks, 32)}.items():
        index = model.set_params(random_state=0).fit(learned).to_faiss()
        kept[name] = _kept(index, partial(model.add_to, index), others, Q)
    assert kept["ours"] > max(kept["faiss"] - 0.02, kept["product"]), kept


@each(("made", "more"), [(partial(ResidualQuantizer, 3), 0.05), (partial(ProductResidualQuantizer, 2, 3), 0.005)])
def test_codes_learned_for_queries_by_inner_product_keep_more_of_what_they_find(made, more, rng):
    """Queries that hardly look along half of the axes: errors there do no harm."""
    X = rng.normal(size=(800, 24)).astype(np.float32)
    Q = (rng.normal(size=(400, 24)) * np.repeat([1, 0.1], 12)).astype(np.float32)
    truth, kept = np.argsort(-(Q[200:] @ X.T), axis=1)[:, :10], {}
    for name, metric in {"l2": "l2", "rows": "ip", "queries": "ip"}.items():
        model = made(n_centroids=32, metric=metric, max_iter=5, random_state=0)
        model.fit(X, queries=Q[:200] if name == "queries" else None)
        index = model.to_faiss("ip")
        model.add_to(index, X)
        kept[name] = nk.metrics.recall_k_at_k(index.search(Q[200:], 10)[1], truth, 10)
    assert kept["queries"] > kept["rows"] + more
    assert kept["queries"] > kept["l2"] + more
    with pytest.raises(ValueError, match="queries are for metric='ip'; metric is 'l2'"):
        made(n_centroids=64).fit(X, queries=Q)
    with pytest.raises(ValueError, match="queries has 23 columns"):
        made(n_centroids=64, metric="ip").fit(X, queries=Q[:, 1:])


def test_an_index_of_faiss_with_norms_in_its_codes_is_refused(vectors):
    peer = faiss.index_factory(vectors[0].shape[1], "RQ4x4_Nqint8")
    peer.train(vectors[0][:500])
    with pytest.raises(ValueError, match="keeps a norm in each code"):
        ResidualQuantizer.from_faiss(peer)
    rows = faiss.index_factory(vectors[0].shape[1], "IVF4,RQ4x4")  # which codes rows and not what lists leave
    rows.train(vectors[0][:500])
    rows.by_residual = False
    with pytest.raises((ValueError, TypeError)):
        ResidualQuantizer.from_faiss(rows)


@each("made", [ResidualQuantizer, partial(ProductResidualQuantizer, 2)])
def test_rounds_do_not_lead_away_from_the_start_where_centroids_are_as_many_as_rows(rng, made):
    """Noise as large as the error of the rows, and shrinking by it, left ten times the error of the start."""
    X = rng.normal(size=(300, 12)).astype(np.float32)
    start, refitted = (made(4, n_centroids=64, max_iter=n, random_state=0).fit(X).distortion(X) for n in (0, 12))
    assert refitted < 0.8 * start


def test_lists_are_those_of_their_rows_and_no_others(vectors):
    fitted, X = ResidualQuantizer(4, 16, n_lists=8, max_iter=0, random_state=0).fit(vectors[0][:900]), vectors[1][:200]
    codes, distances = fitted.encode(X), np.square(X[:, None] - fitted.coarse_centroids_).sum(axis=2)
    np.testing.assert_array_equal(codes[:, 0], distances.argmin(axis=1))
    codes[1, 0] = 8
    with pytest.raises(ValueError, match="n_lists=8"):
        fitted.decode(codes)


@each(("n_codebooks", "n_centroids", "beam"), [(1, 2, 5), (1, 16, 20), (2, 2, 5), (2, 4, 20)])
def test_a_beam_wider_than_there_are_codes(n_codebooks: int, n_centroids: int, beam: int) -> None:
    """FAISS then chose among candidates that it never wrote: most codes were not the nearest, and differed by batch."""
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    model = ResidualQuantizer(n_codebooks, n_centroids, beam_size=beam, max_iter=1, random_state=0)
    every = model.fit(X).codebooks_[0, 0]
    for books in model.codebooks_[0, 1:]:
        every = (every[:, None] + books).reshape(-1, 3)
    best = ((X[:, None] - every) ** 2).sum(-1).min(axis=1)
    found = ((X - model.decode(model.encode(X))) ** 2).sum(-1)
    np.testing.assert_allclose(found, best, rtol=1e-4, atol=1e-6)


def test_a_part_of_constant_columns_gets_the_column_of_errors_too() -> None:
    """Parts without spread got none, and their codebooks could not be stacked beside the others'."""
    X = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    X[:, 8:] = 0
    model = ProductResidualQuantizer(4, 2, 16, rotation=None, random_state=0).fit(X)
    assert model.codebooks_.shape == (4, 2, 16, 5)
    np.testing.assert_allclose(model.decode(model.encode(X))[:, 8:], 0, atol=1e-6)
