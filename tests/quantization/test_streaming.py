import numpy as np
import pytest

from nearkin import ProductQuantizer


@pytest.fixture(scope="module")
def streamed(vectors):
    """Distortion after a stream of batches that starts far from a good rotation, for each way of moving it."""
    X, test = vectors
    out = {}
    ways = {"none": (None, 1), "random": ("givens-random", 1), "greedy": ("givens-greedy", 1)}
    for name, (rotation, blocks) in {**ways, "greedy x 4": ("givens-greedy", 4), "svd": ("procrustes", 1)}.items():
        pq = ProductQuantizer(8, 16, rotation, "identity", max_iter=1, n_blocks=blocks, horizon=1000, random_state=0)
        rng = np.random.default_rng(0)
        for _ in range(250):
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
    pq = ProductQuantizer(8, 16, random_state=0).fit(X)
    before = pq.distortion(test)
    for i in range(0, 2000, 100):
        pq.partial_fit(X[i : i + 100])
    pq.partial_fit(X[:1])
    assert pq.distortion(test) < 1.1 * before


def test_partial_fit_follows_a_drift(vectors):
    X, test = vectors
    pq = ProductQuantizer(8, 16, rotation="givens-greedy", horizon=1000, random_state=0).fit(X)
    stale = pq.distortion(test + 8)
    for i in range(0, 4000, 200):
        pq.partial_fit(X[i : i + 200] + 8)
    assert pq.distortion(test + 8) < 0.5 * stale


def test_first_batch_needs_enough_rows(vectors):
    with pytest.raises(ValueError, match="n_samples=10"):
        ProductQuantizer(8, 16).partial_fit(vectors[0][:10])
