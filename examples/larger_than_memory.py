"""My vectors do not fit into memory: how do I index them?

    python examples/larger_than_memory.py

The command line does the same: nearkin compress vectors.npy --bytes 8 --ids ids.npy --out idx
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.pipeline.compress import compress_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to write (default: a temporary folder)")
    out = parser.parse_args().out or Path(tempfile.mkdtemp())

    rng = np.random.default_rng(0)
    np.save(out / "vectors.npy", rng.normal(size=(20_000, 32)).astype(np.float32))  # in place of your file

    file = open_vectors(out / "vectors.npy")  # opened, not read; .npz, .fvecs, .bvecs, .parquet and .csv work too
    print(f"{len(file):,} vectors of {file.shape[1]} numbers, read in chunks of {file.chunk_rows:,}")

    # Everything in one call: train on a sample, encode chunk by chunk, save.
    quantizer = nk.ProductQuantizer(n_subspaces=8, n_centroids=16, random_state=0)
    record = compress_file(file, quantizer, out / "idx", train_rows=4_000, random_state=0)
    print(f"{record['bytes_per_vector']} bytes a vector, distortion {record['distortion']:.2f}")

    # Or step by step, where the chunks come from somewhere else.
    quantizer.fit(file.sample(4_000, random_state=0))
    index = nk.Index.empty(file.shape[1], quantizer)
    for chunk in file.chunks(rows=5_000):
        index.add(chunk)
    same = np.array_equal(index.search(chunk[:20], 5)[1], nk.Index.load(out / "idx").search(chunk[:20], 5)[1])
    print(f"both ways give the same answers: {same}")


if __name__ == "__main__":
    main()
