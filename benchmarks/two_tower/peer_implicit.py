"""implicit's ALS on a saved split: run by `peers.py` with the Python that has implicit installed.

usage: python peer_implicit.py SPLIT.npz OUT.npz K SEED [ALPHA REGULARIZATION]; SPLIT holds the CSR of training and
validation pairs. Confidence alpha and regularization are chosen on the validation pairs from a grid unless they are
given; the seconds are CPU seconds of the one best fit.
"""

import sys
import time
from itertools import product

import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares

GRID = list(product((1.0, 2.0, 5.0, 20.0, 50.0, 100.0), (0.1, 1.0, 5.0, 20.0, 60.0)))  # alpha, regularization


def main() -> None:
    split, out, k, seed = sys.argv[1:5]
    grid = [tuple(map(float, sys.argv[5:7]))] if len(sys.argv) > 5 else GRID
    z = np.load(split)
    shape = tuple(z["shape"])
    train, valid = (
        sp.csr_matrix((np.ones(len(z[f"{p}_indices"]), np.float32), z[f"{p}_indices"], z[f"{p}_indptr"]), shape=shape)
        for p in ("train", "valid")
    )
    rows = np.flatnonzero(np.diff(valid.indptr))[:1000]
    best = None
    for alpha, regularization in grid:
        start = time.process_time()
        model = AlternatingLeastSquares(
            factors=int(k),
            alpha=alpha,
            regularization=regularization,
            iterations=15,
            num_threads=1,
            random_state=int(seed),
        )
        model.fit(train, show_progress=False)
        seconds = time.process_time() - start
        found, _ = model.recommend(rows, train[rows], N=100)
        hits = [
            np.isin(f, valid.indices[valid.indptr[i] : valid.indptr[i + 1]]) for f, i in zip(found, rows, strict=True)
        ]
        metric = float(np.mean(np.array(hits) @ (1 / np.log2(np.arange(2, 102)))))
        if best is None or metric > best[0]:
            best = (metric, model, seconds, alpha, regularization)
    _, model, seconds, alpha, regularization = best
    np.savez(out, left=model.user_factors, right=model.item_factors, seconds=seconds, settings=[alpha, regularization])


if __name__ == "__main__":
    main()
