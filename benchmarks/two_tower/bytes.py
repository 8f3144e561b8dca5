"""Recall@20 against the bytes of a right: exact tables, compressed after training, and learned with the index.

By the published protocol. An exact row of k numbers takes 4 k bytes; the index has one byte a subspace.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nearkin as nk
from benchmarks.two_tower.public import DEPTH, TEMPERATURES, read_public
from nearkin.embedding import AllPairs, CosineSoftmax
from nearkin.quantization import IndexingLayer

SIZES = (16, 32, 64)


def by_bytes(
    name: str, folder: Path, only: list[str] | None, sizes: list[int], seed: int, keep: Callable[[dict[str, Any]], None]
) -> None:
    """One fit a loss, dimension and size; `keep` gets its rows: exact, compressed after, learned together."""
    parts = read_public(name, folder, seed)
    losses = {
        "CosineSoftmax, k = 64": (64, CosineSoftmax(temperature=TEMPERATURES[name][0.5])),
        "CosineSoftmax, k = 128": (128, CosineSoftmax(temperature=TEMPERATURES[name][0.5])),
        "all pairs, k = 64": (64, AllPairs()),
        "all pairs, k = 256": (256, AllPairs()),
    }
    for label, (k, loss) in losses.items():
        if only is not None and label not in only:
            continue
        for size in sizes:
            start = time.process_time()
            model = nk.TwoTower(k, loss=loss, index=IndexingLayer(k, size, random_state=seed), random_state=seed)
            model.fit(parts.train)
            seconds = time.process_time() - start
            P, Q = model.exact_embeddings_
            after = nk.ProductQuantizer(size, random_state=seed).fit(Q)
            ways = {
                "exact": (4 * k, P, Q),
                "OPQ after": (size, P, after.decode(after.encode(Q))),
                "learned together": (size, model.left_embeddings_, model.right_embeddings_),
            }
            for way, (n_bytes, left, right) in ways.items():
                found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTH)
                row = {"loss": label, "way": way, "bytes": n_bytes, "seed": seed, "seconds": seconds}
                row |= {measure: found[measure] for measure in ("recall@20", "ndcg@20")}
                print(row, flush=True)
                keep({f"{label}, {way}, {n_bytes} bytes": row})
