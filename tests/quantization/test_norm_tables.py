"""Norms as sums of two of sixteen numbers each, as FAISS's fast scan adds them."""

import faiss
import numpy as np

from nearkin.quantization import additive
from nearkin.quantization.norm_tables import fill_tables, learn_tables, learned_scale


def test_sums_lie_near_the_norms_and_faiss_codes_by_the_nearest(rng):
    norms = rng.gamma(5.0, 10.0, 4000)
    tables = learn_tables(norms, 0)
    sums = (tables[0][:, None] + tables[1]).ravel()
    nearest = np.abs(norms[:, None] - sums).argmin(1)
    assert np.square(norms - sums[nearest]).mean() < 1e-3 * norms.var()
    index = faiss.IndexResidualQuantizerFastScan(4, 2, 4, faiss.METRIC_L2, faiss.AdditiveQuantizer.ST_norm_rq2x4)
    books = rng.normal(size=(2, 16, 4)).astype(np.float32)
    additive.fill(index.rq, books, 1)
    fill_tables(index.rq, tables)
    centres = (np.sqrt(norms[:50, None]) * np.eye(4)[0]).astype(np.float32)
    codes = additive.packed(index.rq, np.zeros((50, 2)), centres - books[0, 0] - books[1, 0])
    low, high = codes[:, 1] & 15, codes[:, 1] >> 4
    found = tables[0][low] + tables[1][high]
    np.testing.assert_allclose(found, sums[nearest[:50]], rtol=1e-4)
    assert learned_scale(index, rng.normal(size=(30, 4)).astype(np.float32)) >= 1
