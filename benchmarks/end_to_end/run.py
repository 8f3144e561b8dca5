"""Learning the index with the towers, beside compressing afterwards.

    python -m benchmarks end_to_end [--sets ml100k gowalla] [--seeds 5]

Precision, recall and NDCG at 100 through the index at 4, 8 and 16 bytes: exact search, OPQ after training, and the
joint learning of `TwoTower(index=IndexingLayer(...))`. Every way starts from the same kind of towers.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nearkin as nk
from benchmarks.end_to_end.problems import measured, read
from benchmarks.jobs import Job, Row, command
from nearkin.quantization import IndexingLayer

BYTES = (4, 8, 16)


def quality(data: Path, name: str, seed: int) -> Iterator[Row]:
    """One record a way and size."""
    parts, strength = read(data, name, 1, seed), "auto"
    for size in BYTES:
        layer = IndexingLayer(64, size, random_state=seed)
        start = time.process_time()
        settings: dict[str, Any] = {"loss": "all-pairs", "regularization": strength, "random_state": seed}
        model = nk.TwoTower(64, index=layer, **settings).fit(parts.train, validation=parts.valid)
        seconds = time.process_time() - start
        strength = model.regularization_
        P, Q = model.exact_embeddings_
        after = nk.ProductQuantizer(size, random_state=seed).fit(Q)
        if size == BYTES[0]:
            yield {"bytes": 256, "way": "exact", **measured(P, Q, parts)}
        yield {"bytes": size, "way": "OPQ after", **measured(P, after.decode(after.encode(Q)), parts)}
        learned = measured(model.left_embeddings_, model.right_embeddings_, parts)
        yield {"bytes": size, "way": "joint", "cpu_seconds": seconds, **learned}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in given.sets:
        for seed in range(1 if given.quick else given.seeds):
            yield "end_to_end", Job({"set": name, "seed": seed}, partial(quality, given.data, name, seed))


def main() -> None:
    command(__doc__, jobs, {}, sets=("ml100k", "gowalla"), seeds=5)
