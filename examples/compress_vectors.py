"""I have vectors: how do I make them many times smaller and still find the nearest?

python examples/compress_vectors.py
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to save the index (default: a temporary folder)")
    out = parser.parse_args().out or Path(tempfile.mkdtemp())

    X, y = load_digits(return_X_y=True)  # 1,797 images of 64 numbers; put your own (n, d) array here
    base, queries = X[:-100], X[-100:]

    # Eight subspaces of 16 centroids: 8 x 4 bits are 4 bytes. With 10,000 rows and more, leave n_centroids at 256.
    quantizer = nk.ProductQuantizer(n_subspaces=8, n_centroids=16, random_state=0)
    index = nk.Index.build(base, quantizer, keep_vectors=True)
    print(f"{index.bytes_per_vector} bytes a vector instead of {4 * X.shape[1]}")

    _, truth = nk.Index.build(base).search(queries, k=10)  # exact search, to compare with
    _, ids = index.search(queries, k=10)
    _, rescored = index.search(queries, k=10, oversample=4)  # 40 candidates by code, the best 10 by exact distance
    print(f"of the 10 exact neighbours, {nk.metrics.recall_k_at_k(ids, truth, 10):.0%} are found by the codes alone,")
    print(f"and {nk.metrics.recall_k_at_k(rescored, truth, 10):.0%} with rescoring")
    print(f"neighbours with the query's digit: {np.mean(y[ids] == y[-100:, None]):.0%}")

    index.save(out / "digits-index")
    again = nk.Index.load(out / "digits-index")
    print(f"saved, loaded, the same answers: {np.array_equal(again.search(queries, k=10)[1], ids)}")


if __name__ == "__main__":
    main()
