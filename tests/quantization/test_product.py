"""Product codes: distortion by rotation, beside FAISS and in a stream; hard rows, bad calls, weights."""

import itertools

import faiss
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import nearkin as nk
from nearkin import ProductQuantizer
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.rotation import ROTATIONS
from tests.covering import each
from tests.refusals import each_refused


@pytest.mark.usefixtures("few_rounds")
def test_scikit_learn_contract():
    check_estimator(ProductQuantizer(1, 2, max_iter=2, n_lists=2), on_skip=None)


@pytest.fixture(scope="module")
def distortion(vectors):
    """Mean held-out distortion of two fits by rotation, all from the same start."""
    X, test = vectors

    def one(name, seed):
        rotation = None if name == "none" else name
        pq = ProductQuantizer(8, 16, rotation=rotation, init="identity", max_iter=25, random_state=seed)
        return pq.fit(X).distortion(test)

    return {name: (one(name, 0) + one(name, 1)) / 2 for name in ROTATIONS}


def test_order_of_the_rotations(distortion):
    """None > random > greedy ~ 2-opt ~ steepest ~ procrustes."""
    assert distortion["givens-random"] < 0.9 * distortion["none"], distortion
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


def test_distortion_is_the_mean_squared_reconstruction_error(vectors):
    X, test = vectors
    pq = ProductQuantizer(4, 16, max_iter=3, random_state=0).fit(X[:400])
    error = ((test - pq.decode(pq.encode(test))) ** 2).sum(axis=1).mean()
    assert pq.distortion(test) == pytest.approx(error, rel=1e-4)
    np.testing.assert_array_equal(pq.transform(test), pq.encode(test))
    np.testing.assert_array_equal(pq.inverse_transform(pq.encode(test)), pq.decode(pq.encode(test)))


def test_history_falls_and_callback_sees_it(vectors):
    seen = []
    X = vectors[0][:1000]
    pq = ProductQuantizer(8, 16, random_state=0, init="pca").fit(X, callback=lambda i, r: seen.append((i, r)))
    curve = [entry["distortion"] for entry in pq.history_]
    assert all(b <= a * 1.001 for a, b in itertools.pairwise(curve[-8:])), curve  # turns go little further then
    assert [i for i, _ in seen] == list(range(1, pq.n_iter_ + 1))
    assert seen[0][1]["distortion"] == curve[0]
    assert {"kmeans_seconds", "rotation_seconds"} <= set(pq.history_[0])
    assert curve[-1] == pytest.approx(pq.distortion(X), rel=0.02)


def test_same_seed_same_codes(vectors):
    settings = {"rotation": "givens-random", "max_iter": 5, "random_state": 7}
    a, b = (ProductQuantizer(8, 16, **settings).fit(vectors[0][:400]) for _ in range(2))
    np.testing.assert_array_equal(a.encode(vectors[1]), b.encode(vectors[1]))


def test_float64_and_integers_are_taken(vectors):
    X = np.round(vectors[0][:400] * 10)
    a = ProductQuantizer(8, 16, max_iter=2, random_state=0).fit(X)
    np.testing.assert_array_equal(a.encode(X.astype(np.int32)), a.encode(X.astype(np.float64)))


HARD = {
    "all rows equal": lambda rng: np.full((40, 8), 3.0),
    "duplicate rows": lambda rng: np.repeat(rng.normal(size=(5, 8)), 8, axis=0),
    "constant columns": lambda rng: np.hstack([rng.normal(size=(40, 4)), np.ones((40, 4))]),
    "zeros": lambda rng: np.zeros((40, 8)),
    "far from the origin": lambda rng: rng.normal(size=(40, 8)) + 1e4,
    "tiny": lambda rng: rng.normal(size=(40, 8)) * 1e-12,
    "as many rows as centroids": lambda rng: rng.normal(size=(16, 8)),
}


@each(
    ("case", "rotation"),
    [*((case, "procrustes") for case in HARD), *zip(HARD, itertools.cycle([None, "givens-greedy", "cayley"]))],
)
def test_hard_data(case, rotation, rng):
    X = HARD[case](rng).astype(np.float32)
    pq = ProductQuantizer(2, 16, rotation=rotation, random_state=0).fit(X)
    assert np.abs(pq.rotation_.T @ pq.rotation_ - np.eye(8)).max() < 1e-4
    spread = float(((X - X.mean(0)) ** 2).sum(1).mean())
    assert pq.distortion(X) <= 0.8 * spread + 1e-6 * float((X**2).sum(1).mean())
    if case in ("all rows equal", "duplicate rows"):
        np.testing.assert_allclose(pq.decode(pq.encode(X)), X, atol=1e-3)


def test_bad_parameters(vectors):
    bad = [
        ({"n_subspaces": 33}, ValueError, "n_subspaces is 33, more than the 32 columns"),
        ({"n_centroids": 5000}, ValueError, r"n_samples=200 vectors, fewer than n_centroids=5000"),
        ({"n_centroids": 1}, ValueError, "n_centroids is 1"),
        ({"n_centroids": 2.5}, TypeError, "n_centroids is 2.5"),
        ({"rotation": "givens"}, ValueError, "rotation is 'givens'; it must be one of None, 'procrustes'"),
        ({"init": "best"}, ValueError, "init is 'best'"),
        ({"n_lists": 300, "n_centroids": 16}, ValueError, "fewer than n_lists=300"),
        ({"step": -1.0}, ValueError, "step is -1.0"),
        ({"max_iter": 0}, ValueError, "max_iter is 0"),
        ({"n_blocks": 10**9}, ValueError, "n_blocks is 1000000000"),  # before, it ran for days
    ]
    made = (
        (ProductQuantizer(**{"n_subspaces": 8, "n_centroids": 16, **given}), error, match)
        for given, error, match in bad
    )
    each_refused(((model.fit, error, match) for model, error, match in made), vectors[0][:200])
    uses = (getattr(ProductQuantizer(2), use) for use in ("encode", "decode", "distortion"))
    each_refused(((use, NotFittedError, "not fitted yet") for use in uses), np.zeros((1, 2), np.uint8))


def test_bad_data(vectors):
    X = vectors[0][:200].copy()
    pq = ProductQuantizer(8, 16, random_state=0).fit(X)
    X[7, 3] = np.nan
    X[9, 0] = np.inf
    cases = [
        (lambda: ProductQuantizer(8, 16).fit(X), "in 2 of 200 rows, the first is row 7"),
        (lambda: ProductQuantizer(8, 16).partial_fit(vectors[0][:10]), "n_samples=10"),
        (lambda: pq.encode(X[0]), "Expected 2D array, got 1D"),
        (lambda: pq.encode(X.astype(complex)), "Complex data not supported"),
        (lambda: pq.encode(vectors[0][:, :16]), "16 features, but ProductQuantizer is expecting 32"),
        (lambda: pq.decode(np.zeros((2, 3), int)), r"codes have shape \(2, 3\).*\(n, 8\)"),
        (lambda: pq.decode(np.full((2, 8), 16)), r"codes hold 16; they must lie in 0..15"),
        (lambda: ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_ * 2), "orthonormal"),
        (lambda: ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_[:, :16]), "do not belong together"),
    ]
    each_refused((call, ValueError, match) for call, match in cases)
    again = ProductQuantizer.from_arrays(pq.codebooks_, pq.rotation_)
    np.testing.assert_array_equal(again.encode(vectors[1]), pq.encode(vectors[1]))


@each("n_subspaces", [2, 8])
def test_a_row_encodes_alone_as_in_any_batch(rng, n_subspaces):
    """Wide subspaces far from the origin: FAISS's own encoder gave other codes to one row in a hundred."""
    X = (30 + rng.normal(size=(400, 64))).astype(np.float32)
    pq = ProductQuantizer(n_subspaces, 64, random_state=0, max_iter=2).fit(X)
    codes = pq.encode(X)
    for size in (1, 7, 300):
        parts = [pq.encode(X[i : i + size]) for i in range(0, min(400, 100 * size), size)]
        np.testing.assert_array_equal(codes[: sum(map(len, parts))], np.concatenate(parts))


@each(("rotation", "n_lists"), [(None, 3), ("procrustes", 0), ("givens-greedy", 3)])
def test_any_number_of_bytes_for_any_width(rng, tmp_path, rotation, n_lists):
    """30 columns to 7 codes: four columns a code or five, the others padded."""
    X = (rng.normal(size=(400, 30)) @ rng.normal(size=(30, 30)) + 5).astype(np.float32)
    pq = ProductQuantizer(7, 16, rotation, n_lists=n_lists, random_state=0, max_iter=5).fit(X)
    assert pq.rotation_.shape == (30, 35)
    assert pq.codebooks_.shape == (7, 16, 5)
    codes = pq.encode(X)
    Y = pq.decode(codes)
    assert Y.shape == X.shape
    assert ((X - Y) ** 2).sum(1).mean() <= pq.distortion(X) * 1.0001  # what lies in the padding is cut off
    narrower = ProductQuantizer(6, 16, rotation, n_lists=n_lists, random_state=0, max_iter=5).fit(X)
    assert pq.distortion(X) < narrower.distortion(X)
    index = pq.to_faiss()
    pq.add_to(index, X)
    assert index.d == 30
    again = ProductQuantizer.from_faiss(index)
    np.testing.assert_array_equal(again.encode(X), codes)
    pq.save(tmp_path / "pq")
    np.testing.assert_array_equal(ProductQuantizer.load(tmp_path / "pq").encode(X), codes)
    before = pq.distortion(X)
    assert pq.partial_fit(X).distortion(X) < 1.1 * before
    assert pq.rotation_.shape == (30, 35)
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


def test_greedy_blocks_come_near_an_svd_a_batch(streamed):
    assert streamed["greedy"] < 0.9 * streamed["random"], streamed
    assert streamed["greedy"] < 1.1 * streamed["svd"], streamed
    assert streamed["greedy x 4"] < 1.03 * streamed["svd"], streamed


def test_partial_fit_continues_a_fit_and_takes_one_row(vectors):
    X, test = vectors
    pq = ProductQuantizer(8, 16, max_iter=5, random_state=0).fit(X)
    before = pq.distortion(test)
    for i in range(0, 2000, 200):
        pq.partial_fit(X[i : i + 200])
    pq.partial_fit(X[:1])
    assert pq.distortion(test) < 1.1 * before


def test_partial_fit_follows_a_drift(vectors):
    X, test = vectors
    pq = ProductQuantizer(8, 16, rotation="givens-greedy", horizon=500, max_iter=5, random_state=0).fit(X)
    stale = pq.distortion(test + 8)
    for i in range(0, 2000, 200):
        pq.partial_fit(X[i : i + 200] + 8)
    assert pq.distortion(test + 8) < 0.5 * stale


X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32) ** 3


def test_cluster_sums_with_weights_are_sums_of_repeated_rows() -> None:
    codes = np.random.default_rng(1).integers(0, 4, (400, 2))
    times = np.random.default_rng(2).integers(1, 4, 400)
    weighted = ClusterSums(2, 4, 8).update(X, codes, times.astype(np.float32))
    repeated = ClusterSums(2, 4, 8).update(np.repeat(X, times, 0), np.repeat(codes, times, 0))
    np.testing.assert_allclose(weighted.sums, repeated.sums, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(weighted.counts, repeated.counts)


@each("rotation", [None, "procrustes"])
def test_heavy_rows_are_quantized_better(rotation: str | None) -> None:
    weights = np.where(np.arange(400) < 40, 100.0, 1.0)
    plain, heavy = (
        nk.ProductQuantizer(2, 16, rotation=rotation, random_state=0).fit(X, weights=w) for w in (None, weights)
    )
    assert heavy.distortion(X[:40]) < 0.6 * plain.distortion(X[:40])


def test_only_the_ratios_of_the_weights_count() -> None:
    """Weights are divided by their mean, so that none of them leaves float32."""
    weights = np.where(np.arange(400) < 40, 100.0, 1.0)
    fitted, *scaled = (
        nk.ProductQuantizer(2, 16, max_iter=4, random_state=0).fit(X, weights=unit * weights)
        for unit in (1, 1e-25, 1e25)
    )
    for other in scaled:
        np.testing.assert_allclose(other.codebooks_, fitted.codebooks_, rtol=1e-3, atol=1e-3)


def test_bad_weights_are_named() -> None:
    for bad in (np.ones(3), np.zeros(400), np.full(400, np.nan)):
        with pytest.raises(ValueError, match=r"weights has shape .*must be \(400,\) finite numbers greater than 0"):
            nk.ProductQuantizer(2, 16).fit(X, weights=bad)
