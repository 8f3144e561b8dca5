"""Recall@20 against the bytes of a right: exact tables, compressed after training, and learned with the index.

By the published protocol. An exact row of k numbers takes 4 k bytes; the index has one byte a subspace or a codebook.
One teacher, as `solver="joint"` trains it, serves all sizes of its loss.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nearkin as nk
from benchmarks.two_tower.public import DEPTH, known_temperature, read_public
from nearkin.embedding import ALS, AllPairs, CosineSoftmax, Joint, SphereSweeps
from nearkin.embedding.two_tower.joint import DEFAULTS
from nearkin.quantization import IndexingLayer

SIZES = (16, 32, 64)
Found = tuple[str, int, float, np.ndarray, np.ndarray]  # the way, bytes, CPU seconds, and both tables


class Taught:
    """A teacher that has learned."""

    def __init__(self, P: np.ndarray, Q: np.ndarray) -> None:
        self.tables = torch.from_numpy(P), torch.from_numpy(Q)

    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.tables


def by_bytes(
    name: str, folder: Path, only: list[str] | None, sizes: list[int], seed: int, together: bool,
    keep: Callable[[dict[str, Any]], None],
) -> None:  # fmt: skip
    """`keep` gets the rows of every loss and size: exact, compressed after, and if `together` learned together."""
    parts = read_public(name, folder, seed)
    cosines = CosineSoftmax(temperature=known_temperature(name, {}) or CosineSoftmax().temperature)
    losses = {f"CosineSoftmax, k = {k}": (k, cosines) for k in (64, 128, 256, 512)}
    losses |= {f"all pairs, k = {k}": (k, AllPairs()) for k in (64, 256)}
    for label, (k, loss) in losses.items():
        if only is not None and label not in only:
            continue
        for way, n_bytes, seconds, left, right in _ways(k, loss, parts.train, sizes, seed, together=together):
            found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTH)
            row = {"loss": label, "way": way, "bytes": n_bytes, "seed": seed, "seconds": seconds}
            row |= {measure: found[measure] for measure in ("recall@20", "ndcg@20")}
            print(row, flush=True)
            keep({f"{label}, {way}, {n_bytes} bytes, seed {seed}": row})


def _ways(k: int, loss: Any, pairs: nk.Interactions, sizes: list[int], seed: int, *, together: bool) -> Iterator[Found]:
    """Every way and size, the codes' own CPU seconds without the teacher's."""
    start = time.process_time()
    solver = ALS(max_iter=DEFAULTS.sweeps)
    if not isinstance(loss, AllPairs):
        solver = SphereSweeps(max_iter=DEFAULTS.sphere_sweeps * DEFAULTS.sweeps)
    model = nk.TwoTower(k, loss=loss, solver=solver, random_state=seed).fit(pairs)
    P, Q = model.left_embeddings_, model.right_embeddings_
    yield "exact", 4 * k, time.process_time() - start, P, Q
    for size in sizes:
        codes = {"OPQ after": nk.ProductQuantizer(size, random_state=seed)}
        if together:
            codes["residual code after"] = nk.quantization.ResidualQuantizer(size, random_state=seed)  # pyright: ignore[reportArgumentType]
        for way, quantizer in codes.items():
            start = time.process_time()
            after = quantizer.fit(Q)
            T = after.decode(after.encode(Q))
            yield way, size, time.process_time() - start, P, T
        if together:
            start = time.process_time()
            learned = index_of(P, Q, pairs, size, seed)
            yield "learned together", size, time.process_time() - start, *learned


def index_of(
    P: np.ndarray, Q: np.ndarray, pairs: nk.Interactions, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both tables after the rounds that follow the teacher's P and Q in `solver="joint"`."""
    weights = AllPairs().objective(pairs).weights
    layer = IndexingLayer(Q.shape[1], size, random_state=seed)
    blocks = Joint().follow(Taught(P, Q), layer, pairs, weights)  # pyright: ignore[reportArgumentType]
    blocks.done = DEFAULTS.sweeps
    for _ in range(1 + DEFAULTS.rounds):
        blocks.step()
    left, right = blocks.embeddings()
    return left.numpy(), right.numpy()
