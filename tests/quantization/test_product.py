"""Product codes: distortion by rotation, beside FAISS and in a stream; hard rows, bad calls, weights."""

import faiss
import numpy as np
import pytest
from sklearn.base import clone

from nearkin import ProductQuantizer
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.training import ROTATIONS
from tests.covering import each


@pytest.fixture(scope="module")
def distortion(vectors):
    """Mean held-out distortion of two fits by rotation, all from the same start."""
    X, test = vectors

    def one(name, seed):
        pq = ProductQuantizer(8, 16, rotation=name, init="identity", max_iter=25, random_state=seed)
        return pq.fit(X).distortion(test)

    return {name: (one(name, 0) + one(name, 1)) / 2 for name in ROTATIONS}


def test_order_of_the_rotations(distortion):
    """None > random > greedy ~ 2-opt ~ steepest ~ procrustes."""
    assert distortion["givens-random"] < 0.9 * distortion[None], distortion
    assert distortion["givens-greedy"] < distortion["givens-random"], distortion
    for name in ("givens-greedy", "givens-steepest", "cayley"):
        assert distortion[name] == pytest.approx(distortion["procrustes"], rel=0.07), distortion


def test_not_worse_than_faiss(vectors):
    X, test = vectors
    opq = faiss.OPQMatrix(32, 8)
    opq.niter, opq.pq = 20, faiss.ProductQuantizer(32, 8, 5)
    index = faiss.IndexPreTransform(opq, faiss.IndexPQ(32, 8, 5))
    index.train(X[:1000])
    theirs = float(((test - index.sa_decode(index.sa_encode(test))) ** 2).sum(1).mean())
    ours = ProductQuantizer(8, 32, random_state=0).fit(X[:1000]).distortion(test)
    assert ours <= 1.005 * theirs, f"ours {ours}, FAISS {theirs}"


def test_arrays_make_a_quantizer_or_are_refused(vectors):
    pq = ProductQuantizer(8, 16, init="pca", max_iter=2, random_state=0).fit(vectors[0][:200])
    again = ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_)
    np.testing.assert_array_equal(again.encode(vectors[1]), pq.encode(vectors[1]))
    for call, match in (
        (lambda: ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_ * 2), "orthonormal"),
        (lambda: ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_[:, :16]), "do not belong together"),
        (lambda: pq.decode(np.full((2, 8), 16)), r"codes hold 16; .* 0..15"),
        (lambda: ProductQuantizer(8, 16).partial_fit(vectors[0][:10]), "n_samples=10"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


@each(("rotation", "n_lists"), [(None, 3), ("procrustes", 0), ("givens-greedy", 3)])
def test_any_number_of_bytes_for_any_width(rng, rotation, n_lists):
    """30 columns to 7 codes: four columns a code or five, the others padded."""
    X = (rng.normal(size=(400, 30)) @ rng.normal(size=(30, 30)) + 5).astype(np.float32)
    pq, narrower = (
        ProductQuantizer(n, 16, rotation, n_lists=n_lists, random_state=0, max_iter=5).fit(X) for n in (7, 6)
    )
    assert (pq.rotation_.shape, pq.codebooks_.shape, pq.to_faiss().d) == ((30, 35), (7, 16, 5), 30)
    before = pq.distortion(X)
    assert before < narrower.distortion(X)
    assert pq.partial_fit(X).distortion(X) < 1.1 * before
    np.testing.assert_allclose(pq.rotation_ @ pq.rotation_.T, np.eye(30), atol=1e-4)


@pytest.fixture(scope="module")
def streamed(vectors):
    """Distortion after a stream of batches that starts far from a good rotation, for each way of moving it."""
    X, test = vectors
    out = {}
    ways = {"none": (None, 1), "random": ("givens-random", 1), "greedy": ("givens-greedy", 1)}
    for name, (rotation, blocks) in {**ways, "greedy x 4": ("givens-greedy", 4), "svd": ("procrustes", 1)}.items():
        pq = ProductQuantizer(8, 16, rotation, "identity", max_iter=1, n_blocks=blocks, horizon=1000, random_state=0)
        rng = np.random.default_rng(0)
        for _ in range(120):
            pq.partial_fit(X[rng.choice(len(X), 256, replace=False)])
        out[name] = pq.distortion(test)
        assert np.abs(pq.rotation_.T @ pq.rotation_ - np.eye(32)).max() < 1e-4
    return out


def test_a_stream_learns_the_rotation(streamed, vectors):
    batch = ProductQuantizer(8, 16, init="identity", random_state=0).fit(vectors[0]).distortion(vectors[1])
    assert streamed["greedy"] < 0.6 * streamed["none"], streamed
    assert streamed["greedy x 4"] < 1.06 * batch, (streamed, batch)
    assert streamed["greedy"] < 0.9 * streamed["random"], streamed
    assert streamed["greedy"] < 1.1 * streamed["svd"], streamed
    assert streamed["greedy x 4"] < 1.03 * streamed["svd"], streamed


def test_partial_fit_follows_a_drift(vectors):
    X, test = vectors
    pq = ProductQuantizer(8, 16, rotation="givens-greedy", horizon=500, max_iter=5, random_state=0).fit(X)
    stale = pq.distortion(test + 8)
    for i in range(0, 2000, 200):
        pq.partial_fit(X[i : i + 200] + 8)
    pq.partial_fit(X[:1] + 8)
    assert pq.distortion(test + 8) < 0.5 * stale


X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32) ** 3
HEAVY = np.where(np.arange(400) < 40, 100.0, 1.0)


@each("rotation", [None, "procrustes"])
def test_heavy_rows_are_quantized_better_and_only_ratios_of_weights_count(rotation: str | None) -> None:
    """Weights are divided by their mean, so that none of them leaves float32."""
    made = ProductQuantizer(2, 16, rotation=rotation, max_iter=4, random_state=0)
    plain, heavy, *scaled = (clone(made).fit(X, weights=w) for w in (None, HEAVY, 1e-25 * HEAVY, 1e25 * HEAVY))
    assert heavy.distortion(X[:40]) < 0.6 * plain.distortion(X[:40])
    for other in scaled:
        np.testing.assert_allclose(other.codebooks_, heavy.codebooks_, rtol=1e-3, atol=1e-3)
    for bad in (np.ones(3), np.zeros(400), np.full(400, np.nan)):
        with pytest.raises(ValueError, match=r"weights has shape .*\(400,\)"):
            made.fit(X, weights=bad)


def test_sums_with_weights_are_sums_of_repeated_rows() -> None:
    codes, times = (np.random.default_rng(1).integers(*of) for of in ((0, 4, (400, 2)), (1, 4, 400)))
    weighted = ClusterSums(2, 4, 8).update(X, codes, times.astype(np.float32))
    repeated = ClusterSums(2, 4, 8).update(np.repeat(X, times, 0), np.repeat(codes, times, 0))
    np.testing.assert_allclose(weighted.sums, repeated.sums, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(weighted.counts, repeated.counts)
