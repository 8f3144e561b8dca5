"""Recall@20 against the bytes of a right: exact tables, compressed after training, and learned with the index.

By the published protocol. An exact row of k numbers takes 4 k bytes; the index has one byte a subspace or a codebook.
One teacher, as `solver="joint"` trains it, serves all sizes of its loss. `--after`: compressed after training only.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from benchmarks.two_tower.public import DEPTH, known_temperature, read_public
from nearkin.embedding import ALS, AllPairs, CosineSoftmax, Joint, SphereSweeps
from nearkin.embedding.two_tower.joint import DEFAULTS
from nearkin.quantization import IndexingLayer

Found = tuple[str, int, float, np.ndarray, np.ndarray]  # the way, bytes, CPU seconds, and both tables


class Taught:
    """A teacher that has learned."""

    def __init__(self, P: np.ndarray, Q: np.ndarray) -> None:
        self.tables = torch.from_numpy(P), torch.from_numpy(Q)

    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.tables


def losses_of(name: str) -> dict[str, tuple[int, Any]]:
    """Every loss and number of dimensions."""
    cosines = CosineSoftmax(temperature=known_temperature(name, {}) or CosineSoftmax().temperature)
    return {f"CosineSoftmax, k = {k}": (k, cosines) for k in (64, 128, 256, 512)} | {
        f"all pairs, k = {k}": (k, AllPairs()) for k in (64, 256)
    }


def by_bytes(name: str, folder: Path, label: str, sizes: tuple[int, ...], seed: int, together: bool) -> Iterator[Row]:
    """The rows of one loss: exact, compressed after, and if `together` trained together."""
    parts, (k, loss) = read_public(name, folder, seed), losses_of(name)[label]
    for way, n_bytes, seconds, left, right in _ways(k, loss, parts.train, sizes, seed, together=together):
        found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTH)
        yield {"way": way, "bytes": n_bytes, "seconds": seconds} | {key: found[key] for key in ("recall@20", "ndcg@20")}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for seed, name, label in product(range(given.seeds), given.sets, given.losses):
        work = partial(by_bytes, name, given.data, label, tuple(given.bytes), seed, not given.after)
        yield "two_tower_bytes", Job({"set": name, "loss": label, "seed": seed}, work)


def main() -> None:
    losses = tuple(losses_of(""))
    command(__doc__, jobs, {}, sets=("gowalla",), losses=losses, bytes=(16, 32, 64), seeds=3, after=False)


def _ways(
    k: int, loss: Any, pairs: nk.Interactions, sizes: tuple[int, ...], seed: int, *, together: bool
) -> Iterator[Found]:
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
            yield "trained together", size, time.process_time() - start, *learned


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
