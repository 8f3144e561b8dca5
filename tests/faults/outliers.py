"""`python -m tests.faults.outliers`: one outlier among 2,000 rows, FAISS's recall beside nearkin's, as a table."""

import sys
import warnings

import faiss
import numpy as np

import nearkin as nk
from nearkin.metrics import recall_k_at_k

K, QUERIES = 10, 100


def recalls(value: float) -> tuple[float, float]:
    """Recall@10 of FAISS's product quantizer of 4 bytes and of nearkin's, with one entry set to `value` (0: none)."""
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(2000, 16)).astype(np.float32), rng.normal(size=(QUERIES, 16)).astype(np.float32)
    if value:
        X[77, 3] = value
    exact = np.argsort(((Q[:, None].astype(np.float64) - X[None]) ** 2).sum(-1), axis=1)[:, :K]
    peer = faiss.IndexPQ(16, 4, 8)
    peer.pq.cp.min_points_per_centroid = 1
    peer.train(X)
    peer.add(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has far rows")
        ours = nk.Index.build(X, nk.ProductQuantizer(4, rotation=None, random_state=0))
    return tuple(float(recall_k_at_k(found, exact, K)) for found in (peer.search(Q, K)[1], ours.search(Q, K)[1]))  # type: ignore[return-value]


def main() -> None:
    sys.stdout.write("| largest entry | FAISS | nearkin |\n| --- | ---: | ---: |\n")
    for value in (0, 1e6, 1e8, 1e10):
        peer, ours = recalls(value)
        name = f"{value:.0e}" if value else "as drawn"
        sys.stdout.write(f"| {name} | {peer:.3f} | {ours:.3f} |\n")


if __name__ == "__main__":
    main()
