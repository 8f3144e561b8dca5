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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to write (default: a temporary folder)")
    out = parser.parse_args().out or Path(tempfile.mkdtemp())

    rng = np.random.default_rng(0)
    np.save(out / "vectors.npy", rng.normal(size=(20_000, 32)).astype(np.float32))  # in place of your file

    file = open_vectors(out / "vectors.npy")  # opened, not read; .fvecs, .bvecs, .h5 and .parquet work too
    print(f"{len(file):,} vectors of {file.shape[1]} numbers, read in chunks of {file.chunk_rows:,}")

    # Train on a sample, encode chunk by chunk, save.
    quantizer = nk.ProductQuantizer(n_subspaces=8, n_centroids=16, random_state=0)
    quantizer.fit(file.sample(4_000, random_state=0))
    index = nk.Index.empty(file.shape[1], quantizer)
    for chunk in file.chunks(rows=5_000):
        index.add(chunk)
    index.save(out / "idx")
    print(f"{index.bytes_per_vector:g} bytes a vector, distortion {quantizer.distortion(chunk):.2f}")


if __name__ == "__main__":
    main()
