"""Product quantizers and FAISS: what is read from it, and its fast scan, used if its rounding does not matter."""

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin import ProductQuantizer
from nearkin._faiss import innermost, list_codes
from tests.covering import each


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


DRAWS = {
    "t(1.2)": lambda rng, shape: rng.standard_t(1.2, shape),
    "t(2)": lambda rng, shape: rng.standard_t(2, shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
}


@each(("kind", "n_lists"), [*zip(DRAWS, [0, 4, 0, 4], strict=True)])
def test_the_default_scan_of_product_codes_loses_no_neighbours_of_heavy_tails(kind, n_lists, rng):
    """Tables of 8 bits kept .017 of ten neighbours of t(1.2) where exact tables kept .374; t(2): .117 and .452."""
    X, Q = np.split(DRAWS[kind](rng, (1000, 32)).astype(np.float32), [800])
    settings = {"n_lists": n_lists, "init": "identity", "max_iter": 2, "random_state": 0}
    model = nk.ProductQuantizer(16, 16, **settings).fit(X)
    kept = {}
    for fast in (None, False):
        index = nk.Index.build(X, model, fast_scan=fast, n_probe=4 if n_lists else None)
        kept[fast] = nk.metrics.knn_recall(index.search(Q, 10)[1], X, Q)
    assert kept[None] >= kept[False] - 0.01, kept
    assert model.scans_fast("l2") == (kind == "normal")


def test_a_saved_quantizer_keeps_its_choice_and_one_of_faiss_scans_exactly(rng, tmp_path):
    """Nothing is known of the rows of one that FAISS trained."""
    X = rng.normal(size=(300, 8)).astype(np.float32)
    model = nk.ProductQuantizer(4, 16, max_iter=1, random_state=0).fit(X)
    model.save(tmp_path / "pq")
    assert nk.ProductQuantizer.load(tmp_path / "pq").fast_scan_ == model.fast_scan_ == {"l2": True, "ip": True}
    index = nk.Index.build(X, nk.ProductQuantizer.from_faiss(model.to_faiss(fast_scan=True)))
    assert isinstance(innermost(index.faiss_index), faiss.IndexPQ)


@each("metric", ["ip", "cosine"])
def test_an_inverted_fast_scan_stores_the_lists_and_codes_of_encode(metric, rng):
    """By inner product FAISS chose the lists itself."""
    X = rng.normal(size=(500, 8)).astype(np.float32) * rng.gamma(1.0, 3.0, (500, 1)).astype(np.float32)
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    model = nk.ProductQuantizer(4, 16, n_lists=8, max_iter=1, random_state=0).fit(X)
    index = nk.Index.build(X, model, metric=metric, fast_scan=True)
    expected, numbers = model.faiss_codes(X), []
    for number in range(8):
        codes, rows = list_codes(innermost(index.faiss_index), number)
        np.testing.assert_array_equal(expected[rows], np.insert(codes, 0, number, axis=1))
        numbers += rows.tolist()
    assert sorted(numbers) == list(range(len(X)))
