"""Product quantizers and FAISS: what is read from it, and what is refused."""

import faiss
import numpy as np
import pytest

from nearkin import ProductQuantizer
from tests.covering import each


@each("factory", ["PQ8x5", "OPQ8,IVF10,PQ8x4", "IVF10,PQ4x5", "PQ8x4fs"])
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
    with pytest.raises(ValueError, match="metric is 'cosine'"):
        ProductQuantizer(8, 16, init="pca").fit(vectors[0][:300]).to_faiss("cosine")
