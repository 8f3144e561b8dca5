"""Neighbours kept of rows with heavy tails: our default scan, the exact scan of the same codes, FAISS's own default.

    python -m benchmarks codecs tails
    python -m benchmarks codecs tails --quick

10,000 rows and 500 queries of 32 columns, drawn independently from one distribution; codes are learned from the rows.
Recall 10@10 by codes alone, where rows at one distance count as equally right. FAISS's default for 4 bits is its fast
scan.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import faiss
import numpy as np

from benchmarks.harness import limit_threads, save
from benchmarks.options import parser
from nearkin import Index, ProductQuantizer
from nearkin._faiss import innermost
from nearkin.metrics import neighbours_kept
from nearkin.quantization import ResidualQuantizer

N, QUERIES, D, NEIGHBOURS = 10_000, 500, 32, 10
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
KINDS: dict[str, Draw] = {
    "Student t(1.2)": lambda rng, shape: rng.standard_t(1.2, shape),
    "Student t(2)": lambda rng, shape: rng.standard_t(2, shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "Laplace": lambda rng, shape: rng.laplace(size=shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
    "half of the columns constant": lambda rng, shape: rng.normal(size=shape) * (np.arange(shape[1]) % 2) + 3,
    "all rows equal": lambda rng, shape: np.full(shape, rng.normal()),
}
CODES: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    "product, 8 bytes, 4 bits": ("PQ16x4fs", lambda: ProductQuantizer(16, 16, random_state=0), lambda: None),
    "product, 8 bytes, 8 bits": ("PQ8", lambda: ProductQuantizer(8, random_state=0), lambda: None),
    "residual, 9 bytes, 4 bits": (
        "RQ16x4fs_Nrq2x4",
        lambda: ResidualQuantizer(16, 16, norm_bits=8, random_state=0),
        lambda: ResidualQuantizer(16, 16, random_state=0),
    ),
    "residual, 8 bytes, 8 bits": ("RQ8x8", lambda: ResidualQuantizer(8, random_state=0), lambda: None),
}
"""For each: FAISS's factory string, ours, and ours without norms in the code, if the code has norms."""


def measured(kind: str, codes: str) -> dict[str, Any]:
    """A row of the table."""
    X, Q = np.split(KINDS[kind](np.random.default_rng(0), (N + QUERIES, D)).astype(np.float32), [N])
    text, made, without_norms = CODES[codes]

    def kept(search: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]) -> float:
        return neighbours_kept(search(Q, NEIGHBOURS)[1], X, Q)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of far rows
        quantizer = made().fit(X)
        exact = without_norms() or quantizer
        peer = faiss.index_factory(D, text)
        peer.train(X)
        peer.add(X)
        index = Index.build(X, quantizer)
        fast_scan = None if isinstance(exact, ResidualQuantizer) else False
        return {
            "kind": kind, "codes": codes, "default": kept(index.search),
            "fast": "FastScan" in type(innermost(index.faiss_index)).__name__,
            "exact": kept(Index.build(X, exact, fast_scan=fast_scan).search), "faiss": kept(peer.search),
            "faiss_codec": text,
        }  # fmt: skip


def rows(quick: bool) -> Iterator[dict[str, Any]]:
    """All rows; with `quick` those of product codes of 4 bits."""
    for kind in KINDS:
        for codes in list(CODES)[: 1 if quick else None]:
            yield measured(kind, codes)


def main() -> None:
    given = parser(__doc__).parse_args()
    limit_threads(given.threads)
    found = []
    for row in rows(given.quick):
        found.append(row)
        print(row, flush=True)
        if not given.quick:
            save("codecs_tails", found, rows=N, queries=QUERIES, columns=D, threads=given.threads)


if __name__ == "__main__":
    main()
