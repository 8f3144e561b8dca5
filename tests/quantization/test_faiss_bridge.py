from functools import cache

import faiss
import numpy as np
import pytest

from nearkin import ProductQuantizer
from tests.covering import each


def inner(index):
    index = faiss.downcast_index(index)
    return faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index


KINDS = {
    "pq": {"rotation": None},
    "opq": {},
    "5 bits": {"n_centroids": 32},
    "9 bits": {"n_centroids": 300},
    "not a power of two": {"n_centroids": 100},
    "4 bits": {"n_centroids": 16},
    "ivf": {"n_lists": 10},
    "ivf, two bytes of list": {"n_lists": 300, "n_centroids": 16, "rotation": None},
}


@pytest.fixture(scope="module")
def fits(vectors):
    """Makes the fitted quantizer of a kind, once."""
    settings = {"n_centroids": 64, "init": "pca", "max_iter": 2, "random_state": 0}
    return cache(lambda kind: ProductQuantizer(**settings | KINDS[kind]).fit(vectors[0][:800]))


@each("kind", KINDS)
def test_codes_are_faiss_codes(kind, fits, vectors):
    """`encode`, the filled FAISS index and FAISS's own encoder agree code by code, but for centroids equally near."""
    fitted = fits(kind)
    X = vectors[1]
    index = fitted.to_faiss()
    theirs = index.sa_encode(X)
    rows = fitted.decode(fitted.encode(X))
    decoded = index.sa_decode(theirs)
    differ = np.abs(decoded - rows).max(axis=1) > 1e-4
    assert differ.mean() <= 0.002
    errors = [np.square(X.astype(np.float64) - found).sum(axis=1) for found in (decoded, rows)]
    np.testing.assert_allclose(*errors, rtol=1e-5)
    if fitted.n_centroids in (64, 16, 32, 100, 300) and not fitted.n_lists:
        codec = inner(index).pq
        unpacked = faiss.unpack_bitstrings(theirs, codec.M, codec.nbits)
        np.testing.assert_array_equal(unpacked[~differ], fitted.encode(X)[~differ])


@each("kind", KINDS)
def test_distances_are_those_to_the_decoded_rows(kind, fits, vectors):
    fitted = fits(kind)
    X, Q = vectors[0][:500], vectors[1]
    index = fitted.to_faiss()
    index.add(X)
    if fitted.n_lists:
        inner(index).nprobe = fitted.n_lists
    scores, ids = index.search(Q[:50], 5)
    rows = fitted.decode(fitted.encode(X))
    exact = ((Q[:50, None] - rows) ** 2).sum(-1)
    np.testing.assert_allclose(scores, np.take_along_axis(exact, ids, 1), rtol=1e-5, atol=1e-5 * exact.max())
    np.testing.assert_allclose(scores, np.sort(exact, axis=1)[:, :5], rtol=1e-4)


@each("kind", KINDS)
def test_round_trip_through_faiss(kind, fits, vectors):
    fitted = fits(kind)
    back = ProductQuantizer.from_faiss(fitted.to_faiss())
    np.testing.assert_array_equal(back.codebooks_, fitted.codebooks_)  # without what FAISS needs to fill a power of two
    np.testing.assert_array_equal(back.encode(vectors[1]), fitted.encode(vectors[1]))
    np.testing.assert_allclose(
        back.decode(back.encode(vectors[1])), fitted.decode(fitted.encode(vectors[1])), atol=1e-4
    )


@each("kind", KINDS)
def test_one_row_encodes_as_in_a_batch_on_any_threads(kind, fits, vectors):
    fitted = fits(kind)
    X = vectors[1][:60]
    batch = fitted.encode(X)
    np.testing.assert_array_equal(np.vstack([fitted.encode(X[i : i + 1]) for i in range(len(X))]), batch)
    np.testing.assert_array_equal(fitted.encode(X[::-1])[::-1], batch)
    threads = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(4)
        np.testing.assert_array_equal(fitted.encode(X), batch)
    finally:
        faiss.omp_set_num_threads(threads)


@each("factory", ["PQ8x5", "OPQ8,IVF10,PQ8x4", "IVF10,PQ4x5"])
def test_reads_what_faiss_trained(factory, vectors, quick_faiss):
    X, Q = vectors
    index = faiss.index_factory(32, factory)
    index.train(X[:1300])
    pq = ProductQuantizer.from_faiss(index)
    np.testing.assert_allclose(pq.decode(pq.encode(Q)), index.sa_decode(index.sa_encode(Q)), atol=2e-3)


@pytest.mark.usefixtures("few_rounds")
def test_refuses_what_it_cannot_read(vectors):
    with pytest.raises(TypeError, match=r"faiss.IndexFlatL2; it must be a PQ"):
        ProductQuantizer.from_faiss(faiss.IndexFlatL2(8))
    with pytest.raises(ValueError, match="not trained"):
        ProductQuantizer.from_faiss(faiss.IndexPQ(8, 2, 4))
    shrinking = faiss.index_factory(32, "PCA16,PQ4x4")
    shrinking.train(vectors[0])
    with pytest.raises(ValueError, match="32 to 16 dimensions"):
        ProductQuantizer.from_faiss(shrinking)
    with pytest.raises(ValueError, match="fast_scan needs n_centroids=16; this quantizer has 32"):
        ProductQuantizer(8, 32, init="pca").fit(vectors[0][:300]).to_faiss(fast_scan=True)
    with pytest.raises(ValueError, match="metric is 'cosine'"):
        ProductQuantizer(8, 16, init="pca").fit(vectors[0][:300]).to_faiss("cosine")
