"""Can I train here and serve with plain FAISS, or bring a trained FAISS index here?

python examples/leave_to_faiss.py
"""

import argparse
import tempfile
from pathlib import Path

import faiss
import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to save the index (default: a temporary folder)")
    out = parser.parse_args().out or Path(tempfile.mkdtemp())

    X = load_digits().data.astype(np.float32)
    ids = 1000 + np.arange(len(X))  # integer ids travel with the file
    quantizer = nk.ProductQuantizer(n_subspaces=8, n_centroids=64, rotation="givens-greedy", random_state=0).fit(X)
    index = nk.Index.build(X, quantizer, ids=ids)
    index.save(out / "idx")

    # Out: the saved index.faiss is an ordinary FAISS file. Nothing of nearkin is needed to serve it.
    plain = faiss.read_index(str(out / "idx" / "index.faiss"))
    same = np.array_equal(plain.search(X[:50], 5)[1], index.search(X[:50], 5)[1])
    print(f"plain FAISS gives the same ids: {same}")

    # Out, another way: a trained, empty FAISS index to add rows to.
    empty = quantizer.to_faiss()
    empty.add(X)
    print(f"an empty index, filled by FAISS: {empty.ntotal:,} rows of {empty.sa_code_size()} bytes")

    # In: the codebooks (and the rotation, had it one) of an index that FAISS trained.
    trained = faiss.index_factory(64, "PQ8x5")
    trained.train(X)
    ours = nk.ProductQuantizer.from_faiss(trained)
    print(
        f"from FAISS: {ours.n_subspaces} subspaces of {ours.n_centroids} centroids, distortion {ours.distortion(X):.0f}"
    )


if __name__ == "__main__":
    main()
