"""implicit's ALS or BPR on a saved split: run by `peers.py` with the Python that has implicit installed.

usage: python peer_implicit.py FOLDER als|bpr K SEED [SETTINGS ...]; FOLDER/data.npz holds the CSR of training and
validation pairs; both tables are written beside it. The two settings, alpha and regularization of "als", learning rate
and regularization of "bpr", are chosen on the validation pairs from a grid unless they are given; the seconds are CPU
seconds of the one best fit.
"""

import json
import sys
import time
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
from implicit.bpr import BayesianPersonalizedRanking

GRIDS = {
    "als": list(product((1.0, 2.0, 5.0, 20.0, 50.0, 100.0), (0.1, 1.0, 5.0, 20.0, 60.0))),
    "bpr": list(product((0.01, 0.03, 0.1), (0.0001, 0.001, 0.01, 0.03))),
}
FEW = {  # for large tables
    "als": [(2.0, 2.0), (5.0, 2.0), (5.0, 5.0), (5.0, 20.0), (20.0, 5.0), (20.0, 20.0)],
    "bpr": [(0.01, 0.001), (0.03, 0.0001), (0.03, 0.001), (0.03, 0.003), (0.1, 0.001)],
}
LARGE = 500_000  # pairs
ITERATIONS = {"als": 15, "bpr": 100}


def main() -> None:
    folder, method, k, seed = sys.argv[1:5]
    train, valid = read(f"{folder}/data.npz")
    grid = FEW[method] if train.nnz > LARGE else GRIDS[method]
    rows, best = np.flatnonzero(np.diff(valid.indptr))[:1000], None
    for settings in [tuple(map(float, sys.argv[5:7]))] if len(sys.argv) > 5 else grid:
        start = time.process_time()
        model = make(method, int(k), int(seed), *settings)
        model.fit(train, show_progress=False)
        seconds = time.process_time() - start
        metric = gain(model, train, valid, rows) if len(rows) else 0.0
        if best is None or metric > best[0]:
            best = (metric, model, seconds, settings)
    if best is not None:
        _, model, seconds, settings = best
        np.save(f"{folder}/left.npy", model.user_factors)
        np.save(f"{folder}/right.npy", model.item_factors)
        print(json.dumps({"seconds": seconds, "settings": settings}))


def make(method: str, k: int, seed: int, first: float, regularization: float) -> Any:
    shared = {
        "factors": k, "regularization": regularization, "iterations": ITERATIONS[method], "num_threads": 1,
        "random_state": seed,
    }  # fmt: skip
    if method == "als":
        return AlternatingLeastSquares(alpha=first, **shared)
    return BayesianPersonalizedRanking(learning_rate=first, **shared)


def read(split: str) -> list[sp.csr_matrix]:
    z = np.load(split)
    shape = tuple(z["shape"])
    return [
        sp.csr_matrix((np.ones(len(z[f"{p}_indices"]), np.float32), z[f"{p}_indices"], z[f"{p}_indptr"]), shape=shape)
        for p in ("train", "valid")
    ]


def gain(model: Any, train: sp.csr_matrix, valid: sp.csr_matrix, rows: np.ndarray) -> float:
    """The mean discounted gain of the 100 best rights of some lefts."""
    found, _ = model.recommend(rows, train[rows], N=100)
    hits = [np.isin(f, valid.indices[valid.indptr[i] : valid.indptr[i + 1]]) for f, i in zip(found, rows, strict=True)]
    return float(np.mean(np.array(hits) @ (1 / np.log2(np.arange(2, 102)))))


if __name__ == "__main__":
    main()
