"""Which code keeps most neighbours at which size: ours beside FAISS's, with the processor time of training and search.

    python -m benchmarks codecs --quick
    python -m benchmarks codecs --sets sift mnist --bits 0.5 1

Recall 10@10 by codes alone (the exact query against decoded rows), 20,000 rows that are learned from and searched,
1,000 queries: SIFT descriptors, MNIST's test images, and sentences against glosses (unlike the rows). RaBitQ has one
bit a column and 8 bytes of factors; FAISS leaves its rotation to the user: it gets a random one, and beside it ours.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser
from nearkin import ProductQuantizer, Rotation
from nearkin.linalg.haar import haar_orthogonal
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.faiss_bridge import behind_rotation

SETS = ("sift", "mnist", "sentences")
BITS = (0.25, 0.5, 1.0, 2.0, 4.0)  # bits a column
ROWS, QUERIES = 20_000, 1_000
LONGEST = 32  # codebooks of a residual code that are still tried


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows and queries, float32."""
    if name == "sentences":
        with np.load(folder / "wordnet_minilm.npz") as z:
            X, Q = z["X"], z["Q"]
    elif name == "mnist":
        with np.load(folder / "mnist.npz") as z:
            X, Q = z["X_train"], z["X_test"]
    else:
        with np.load(folder / "sift_bsds.npz") as z:
            X, Q = z["base"], z["query"]
    return X[:ROWS].astype(np.float32), Q[:QUERIES].astype(np.float32)


def codecs(d: int, n_bytes: int) -> Iterator[tuple[str, Callable[[np.ndarray], faiss.Index]]]:
    """Name -> what makes a trained, empty FAISS index of rows X."""
    divides = d % n_bytes == 0
    if divides:
        yield "FAISS PQ", lambda X: _factory(X, f"PQ{n_bytes}x8")
        yield "FAISS OPQ", lambda X: _factory(X, f"OPQ{n_bytes},PQ{n_bytes}x8")
    if n_bytes <= d:
        yield "ours, product", lambda X: ProductQuantizer(n_bytes, random_state=0).fit(X).to_faiss()
    for splits in (2, 4, 8):
        size = n_bytes // splits
        if n_bytes % splits == 0 and d % splits == 0 and 2 <= size <= 8:
            yield f"FAISS PRQ {splits} x {size}", lambda X, s=splits, m=size: _factory(X, f"PRQ{s}x{m}x8")
            yield (
                f"ours, product residual {splits} x {size}",
                lambda X, s=splits, m=size: ProductResidualQuantizer(s, m, random_state=0).fit(X).to_faiss(),
            )
            break
    if 2 <= n_bytes <= LONGEST:
        yield "FAISS RQ", lambda X: _factory(X, f"RQ{n_bytes}x8")
        yield "ours, residual", lambda X: ResidualQuantizer(n_bytes, random_state=0).fit(X).to_faiss()


def rabitq(d: int) -> Iterator[tuple[str, Callable[[np.ndarray], faiss.Index]]]:
    """RaBitQ behind a random rotation, and behind ours."""
    yield "RaBitQ, random rotation", lambda X: _rabitq(X, haar_orthogonal(d, d, random_state=0).numpy())
    yield "RaBitQ, nk.Rotation", lambda X: _rabitq(X, Rotation("rabitq", random_state=0).fit(X).rotation_)


def _factory(X: np.ndarray, text: str) -> faiss.Index:
    index = faiss.index_factory(X.shape[1], text)
    index.train(X)
    return index


def _rabitq(X: np.ndarray, R: np.ndarray) -> faiss.Index:
    index = behind_rotation(R, faiss.IndexRaBitQ(X.shape[1]))
    index.train(X)
    return index


def judge(
    name: str, make: Callable[[np.ndarray], faiss.Index], X: np.ndarray, Q: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    """Train, add, search: recall and seconds of the processor."""
    seconds, index = cpu_seconds(lambda: make(X))
    adding, _ = cpu_seconds(lambda: index.add(X))
    searching, found = cpu_seconds(lambda: index.search(Q, 10)[1])
    return {
        "codec": name, "bytes": index.sa_code_size(), "recall": recall_k_at_k(found, truth, 10),
        "train_seconds": seconds, "encode_microseconds": 1e6 * adding / len(X),
        "search_microseconds": 1e6 * searching / len(Q),
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options.add_argument("--bits", nargs="+", type=float, default=BITS, help="bits a column")
    options.add_argument("--name", default="codecs", help="name of the JSON")
    given = options.parse_args()
    limit_threads(given.threads)
    rows: list[dict[str, Any]] = []
    for name in ("sift",) if given.quick else given.sets:
        X, Q = load(name, given.data)
        exact = faiss.IndexFlatL2(X.shape[1])
        exact.add(X)
        truth, d = exact.search(Q, 10)[1], X.shape[1]
        cases = [
            (bits, *case)
            for bits in ((0.25,) if given.quick else given.bits)
            for case in codecs(d, round(bits * d / 8))
        ]
        cases += [(1.0, *case) for case in rabitq(d)]
        for bits, codec, make in cases:
            rows.append({"data": name, "bits": bits, **judge(codec, make, X, Q, truth)})
            save(given.name, rows, rows=ROWS, queries=QUERIES, threads=given.threads, data=given.data)
            print(time.strftime("%H:%M"), rows[-1], flush=True)


if __name__ == "__main__":
    main()
