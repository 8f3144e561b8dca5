"""The sets of vectors: rows to learn from, other rows to search, queries, and the rows that are truly nearest."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import arrays
from benchmarks.words import word_vectors
from nearkin._check import has_unit_rows
from nearkin._exact import nearest

REAL = ("sift", "gist", "mnist", "sentences", "vocabulary")
MADE = ("gaussian", "heavy", "blobs")
SETS = (*REAL, *MADE)
_ALL = 10**6
LEARNED = {"sift": 16_384, "gist": 8_192, "mnist": 8_192, "sentences": 8_192, "vocabulary": _ALL}  # wide: slow
LEARNED |= dict.fromkeys(MADE, 16_384)
SEARCHED = {"sift": 20_000, "gist": _ALL, "mnist": 10_000, "sentences": 10_000, "vocabulary": _ALL}
SEARCHED |= dict.fromkeys(MADE, _ALL)
QUERIES = 1_000
NEIGHBOURS = 10
_APART = 16_384  # rows of a set that has no parts of its own from which searched ones are drawn


class Problem(NamedTuple):
    """`learned` (n, d) and `searched` (m, d) share no row, but for the vocabulary, where they are the same.

    `truth` (q, 10) numbers rows of `searched`.
    """

    learned: np.ndarray
    searched: np.ndarray
    queries: np.ndarray
    truth: np.ndarray

    @property
    def d(self) -> int:
        return self.learned.shape[1]

    @property
    def metric(self) -> str:
        """ "cosine" where all rows have length 1, by which the same rows are nearest; else "l2"."""
        return "cosine" if has_unit_rows(self.learned) else "l2"


def load(name: str, folder: Path, n_learned: int | None = None, n_searched: int | None = None) -> Problem:
    """Rows of a set.

    SIFT descriptors of three disjoint groups of photos; GIST of images of the training part, halved, and of the test
    part as queries; MNIST's training images, and test images as queries; glosses of WordNet in an order drawn once, and
    sentences, which are unlike them, as queries; word vectors made here ("words"), or the same searched as they were
    learned from ("vocabulary"); normal rows of variances 1/i ("gaussian"), Student's t about a far mean ("heavy"), and
    200 clusters ("blobs").
    """
    learned, searched, queries = _parts(name, folder)
    learned, searched, queries = (
        np.ascontiguousarray(part[:count], np.float32)
        for part, count in (
            (learned, n_learned or LEARNED[name]),
            (searched, n_searched or SEARCHED[name]),
            (queries, QUERIES),
        )
    )
    return Problem(learned, searched, queries, nearest(searched, queries, NEIGHBOURS)[1])


def other_queries(name: str, folder: Path) -> np.ndarray | None:
    """As many queries that are not the problem's, None where the set has no more."""
    others = _parts(name, folder)[2][QUERIES : 2 * QUERIES]
    return np.ascontiguousarray(others, np.float32) if len(others) == QUERIES else None


def _parts(name: str, folder: Path) -> tuple[np.ndarray, ...]:
    if name == "sift":
        return arrays(folder, "sift_bsds", "learn", "base", "query")
    if name == "gist":
        X, tested = arrays(folder, "cifar10_gist512", "X", "test")
        images, asked = X[~tested.astype(bool)], X[tested.astype(bool)]
        half = len(images) // 2
        return images[:half], images[half:], asked
    if name == "mnist":
        X, Q = arrays(folder, "mnist", "X_train", "X_test")
        return X[:_APART], X[_APART:], Q
    if name == "sentences":
        X, Q = arrays(folder, "wordnet_minilm", "X", "Q")
        X = X[np.random.default_rng(0).permutation(len(X))]
        return X[:_APART], X[_APART:], Q[np.random.default_rng(1).permutation(len(Q))]
    if name == "words":
        X = word_vectors()
        return X[: len(X) // 2], X[len(X) // 2 : -QUERIES], X[-QUERIES:]
    if name == "vocabulary":
        X = np.ascontiguousarray(word_vectors()[:, :300])
        return X[QUERIES:], X[QUERIES:], X[:QUERIES]
    if name in MADE:
        return _made(name)
    raise ValueError(f"no data set {name!r}; there are {', '.join(SETS)}")


def _made(name: str) -> tuple[np.ndarray, ...]:
    """Rows of 128 columns from a fixed seed, randomly rotated."""
    rng = np.random.default_rng(20_26)
    n, d = 60_000, 128
    if name == "gaussian":
        X = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5
    elif name == "heavy":
        X = rng.standard_t(4, size=(n, d)) * np.arange(1, d + 1) ** -0.4 + 2
    else:
        X = rng.normal(size=(n, d)) * 0.3 + rng.normal(size=(200, d))[rng.integers(200, size=n)]
    X = (X @ np.linalg.qr(rng.normal(size=(d, d)))[0]).astype(np.float32)
    return X[:40_000], X[40_000:59_000], X[59_000:]
