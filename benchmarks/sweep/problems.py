"""Rows and queries of three kinds, of which a sweep sees some queries and is judged by the others."""

from pathlib import Path

import numpy as np

SETS = ("sift", "mnist", "sentences")
TARGET, NEIGHBOURS, DRAWS, SEEN = 0.8, 10, 40, 1_000


def load(name: str, folder: Path, quick: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and queries (q, d), float32: SIFT descriptors of other photos, test digits, sentences for glosses."""
    X, Q = _parts(name, folder)
    rows = 2_000 if quick else {"sift": 20_000, "mnist": 15_000, "sentences": 8_000}[name]
    queries = 1_500 if quick else 5_000
    return np.ascontiguousarray(X[:rows], np.float32), np.ascontiguousarray(Q[:queries], np.float32)


def _parts(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    if name == "sift":
        data = np.load(folder / "sift_bsds.npz")
        return data["base"], data["learn"]
    if name == "mnist":
        data = np.load(folder / "mnist.npz")
        return data["X_train"], data["X_test"]
    data = np.load(folder / "wordnet_minilm.npz")
    order = np.random.default_rng(0).permutation(len(data["X"]))
    return data["X"][order], data["Q"]
