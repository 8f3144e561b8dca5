"""Recall@20 against the bytes of a right: exact tables, compressed after training, and learned with the index.

By the published protocol. An exact row of k numbers takes 4 k bytes; the index has one byte a subspace.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.two_tower.public import DEPTH, TEMPERATURES, read_public
from nearkin.data import Parts
from nearkin.embedding import AllPairs, CosineSoftmax
from nearkin.quantization import IndexingLayer

SIZES = (16, 32, 64)


def by_bytes(
    name: str, folder: Path, only: list[str] | None, sizes: list[int], seed: int, together: bool,
    keep: Callable[[dict[str, Any]], None],
) -> None:  # fmt: skip
    """`keep` gets the rows of every loss and size: exact, compressed after, and if `together` learned together."""
    parts = read_public(name, folder, seed)
    cosines = CosineSoftmax(temperature=TEMPERATURES[name][0.5])
    losses = {
        "CosineSoftmax, k = 64": (64, cosines),
        "CosineSoftmax, k = 128": (128, cosines),
        "all pairs, k = 64": (64, AllPairs()),
        "all pairs, k = 256": (256, AllPairs()),
    }
    for label, (k, loss) in losses.items():
        if only is not None and label not in only:
            continue
        for size, (seconds, ways) in _tables(k, loss, parts, sizes, seed, together=together):
            for way, (n_bytes, left, right) in ways.items():
                found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTH)
                row = {"loss": label, "way": way, "bytes": n_bytes, "seed": seed, "seconds": seconds}
                row |= {measure: found[measure] for measure in ("recall@20", "ndcg@20")}
                print(size, row, flush=True)
                keep({f"{label}, {way}, {n_bytes} bytes": row})


def _tables(
    k: int, loss: Any, parts: Parts, sizes: list[int], seed: int, *, together: bool
) -> Iterator[tuple[int, tuple[float, dict[str, tuple[int, np.ndarray, np.ndarray]]]]]:
    """For each size the CPU seconds of the fit, and bytes and tables of each way; one fit if not `together`."""
    model, seconds = None, 0.0
    for size in sizes:
        if together or model is None:
            start = time.process_time()
            layer = IndexingLayer(k, size, random_state=seed) if together else None
            model = nk.TwoTower(k, loss=loss, index=layer, random_state=seed).fit(parts.train)
            seconds = time.process_time() - start
        P, Q = model.exact_embeddings_ if together else (model.left_embeddings_, model.right_embeddings_)
        after = nk.ProductQuantizer(size, random_state=seed).fit(Q)
        ways = {"exact": (4 * k, P, Q), "OPQ after": (size, P, after.decode(after.encode(Q)))}
        if together:
            ways["learned together"] = (size, model.left_embeddings_, model.right_embeddings_)
        yield size, (seconds, ways)
