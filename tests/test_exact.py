"""Exact neighbours, on the data that float32's expansion of squares confuses, against plain float64."""

import numpy as np
import pytest

from nearkin._exact import keys_of_pairs, nearest, nearest_of_parts

N, Q, D, K = 700, 2_200, 64, 10  # with so many queries FAISS expands squares


def directions(rng: np.random.Generator, n: int) -> np.ndarray:
    """Vectors of norm 1, 1e-4 from one of 40."""
    centres = np.random.default_rng(1).normal(size=(40, D))
    near = centres[rng.integers(0, 40, n)] / np.linalg.norm(centres, axis=1).mean() + rng.normal(size=(n, D)) * 1e-5
    return near / np.linalg.norm(near, axis=1, keepdims=True)


def shifted(*offsets: float):
    places = np.arange(D) < len(offsets)
    return lambda rng, n: rng.normal(size=(n, D)) + np.where(places, np.resize(offsets, D), 0)


DATA = {
    "about zero": shifted(),
    "one column at 3,000": shifted(3_000),
    "UTM metres": lambda rng, n: np.hstack([rng.normal(size=(n, D - 2)), rng.normal((5e5, 5.8e6), 100, (n, 2))]),
    "all columns at 500,000": shifted(*[5e5] * D),
    "near duplicates": directions,
    "0 and 1": lambda rng, n: rng.integers(0, 2, (n, D)),
    "copies": lambda rng, n: np.random.default_rng(2).normal(size=(9, D))[rng.integers(0, 9, n)],
    "far rows": lambda rng, n: rng.normal(size=(n, D)) * np.where(np.arange(n) % 50 == 3, 1e12, 1)[:, None],
    "tiny": lambda rng, n: rng.normal(size=(n, D)) * 1e-18,
}


def slow(X: np.ndarray, asked: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Each pair by itself in float64; equal ones by number."""
    keys = np.stack([keys_of_pairs(X, one[None], metric) for one in asked])
    ids = np.argsort(keys, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(keys if metric == "l2" else -keys, ids, axis=1), ids


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_nearest_is_float64s(data, metric: str, rng: np.random.Generator) -> None:
    X, asked = (data(rng, n).astype(np.float32) for n in (N, Q))
    if metric == "cosine":
        X, asked = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30) for rows in (X, asked))
    found, few = nearest(X, asked, K, metric), slice(0, Q, 23)
    for ours, right in zip(found, slow(X, asked[few], K, metric), strict=True):
        np.testing.assert_array_equal(ours[few], right)
    for other in (
        nearest(X, asked[:5], K, metric),
        nearest(X.astype(np.float64), asked[:5].astype(np.float64), K, metric),
        nearest(np.asfortranarray(X), asked[:5], K, metric),
        nearest_of_parts([(np.arange(N)[part], X[part]) for part in (slice(90), slice(90, N))], asked[:5], K, metric),
    ):
        for ours, theirs in zip(found, other, strict=True):
            np.testing.assert_array_equal(ours[:5], theirs)
