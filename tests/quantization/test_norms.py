"""FAISS's fast scan of 4-bit codes: used if its rounding does not matter; norms as sums of two table entries."""

import faiss
import numpy as np

import nearkin as nk
from nearkin._faiss import innermost, list_codes
from nearkin.quantization import ResidualQuantizer, additive
from nearkin.quantization.residual import fill_tables, learn_tables, learned_scale
from tests.covering import each


def test_sums_lie_near_the_norms_and_faiss_codes_by_the_nearest(rng):
    norms = rng.gamma(5.0, 10.0, 1500)
    tables = learn_tables(norms, 0)
    sums = (tables[0][:, None] + tables[1]).ravel()
    nearest = np.abs(norms[:, None] - sums).argmin(1)
    assert np.square(norms - sums[nearest]).mean() < 1e-3 * norms.var()
    index = faiss.IndexResidualQuantizerFastScan(4, 2, 4, faiss.METRIC_L2, faiss.AdditiveQuantizer.ST_norm_rq2x4)
    books = rng.normal(size=(2, 16, 4)).astype(np.float32)
    additive.fill(index.rq, books[None], 1)
    fill_tables(index.rq, tables)
    centres = (np.sqrt(norms[:50, None]) * np.eye(4)[0]).astype(np.float32)
    codes = additive.packed(index.rq, np.zeros((50, 2)), centres - books[0, 0] - books[1, 0])
    low, high = codes[:, 1] & 15, codes[:, 1] >> 4
    found = tables[0][low] + tables[1][high]
    np.testing.assert_allclose(found, sums[nearest[:50]], rtol=1e-4)
    assert learned_scale(index, rng.normal(size=(30, 4)).astype(np.float32)) >= 1


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


@each("kind", ["t(1.2)", "normal"])
def test_the_default_scan_of_residual_codes_by_product_loses_no_neighbours(kind, rng):
    X, Q = np.split(DRAWS[kind](rng, (1000, 32)).astype(np.float32), [800])
    model = ResidualQuantizer(16, 16, beam_size=2, max_iter=1, random_state=0).fit(X)
    kept = {}
    for fast in (None, False):
        found = nk.Index.build(X, model, metric="ip", fast_scan=fast).search(Q, 10)[1]
        kept[fast] = nk.metrics.knn_recall(found, X, Q, "ip")
    assert kept[None] >= kept[False] - 0.01, kept
    assert model.scans_fast("ip") == (kind == "normal")


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


@each(
    ("kind", "norm_bits", "n_centroids", "most"),
    [*((kind, 8, 16, 0.01) for kind in DRAWS), ("t(2)", 8, 32, 0.01), ("t(2)", 4, 32, 0.1)],
)
def test_norms_in_a_code_lose_no_neighbours_of_heavy_tails(kind, norm_bits, n_centroids, most, rng):
    """Norms in equal steps kept .146 of ten neighbours of t(2) where whole norms kept .500."""
    X, Q = np.split(DRAWS[kind](rng, (1000, 24)).astype(np.float32), [800])
    settings = {"n_centroids": n_centroids, "beam_size": 2, "max_iter": 1, "random_state": 0}
    kept = {}
    for bits in (norm_bits, 0):
        index = nk.Index.build(X, ResidualQuantizer(8, norm_bits=bits, **settings))
        kept[bits] = nk.metrics.knn_recall(index.search(Q, 10)[1], X, Q)
    assert kept[norm_bits] >= kept[0] - most, kept
