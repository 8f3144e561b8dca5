"""SCQ as printed: Tables 2, 3 and Figures 4, 5 on the whole training set.

Table 2: all six methods learn from every row of the database; k-means hashing is the best of b = 2, 4, 8 by mAP.
Figure 4, Table 3: 20 images of each class leave the training set and ask. Figure 5: fifty iterations of OnE, OgE and
ITQ, PCA included, all methods on the same rows.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.hashing.judge import by_labels
from benchmarks.hashing.problems import Features, network_features, raw_pixels
from benchmarks.hashing.rivals import BinaryAutoencoder, KMeansHash, SphericalHashing
from benchmarks.hashing.run import CACHE
from benchmarks.jobs import Job, Row

METHODS: dict[str, Callable[..., Any]] = {
    "SpH": SphericalHashing,
    **{f"KMH, b = {b}": lambda n, b=b, **kw: KMeansHash(n, bits_per_subspace=b, **kw) for b in (2, 4, 8)},
    "BA": BinaryAutoencoder,
    "ITQ": nk.ITQ,
    "SCQ-OnE": nk.OnE,
    "SCQ-OgE": nk.OgE,
}
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of eq. 25's scale
KINDS = {  # the pixels of MNIST, and the features of a network on classes that it never saw
    "raw": raw_pixels,
    "network": lambda data: network_features(data, CACHE),
}


@dataclass(frozen=True)
class Size:
    """Of Table 2: bits, executions (of k-means hashing, which takes a minute a cell, fewer), queries of MNIST's 10,000.

    `rows` are the most of any database, `iterations` the most of Figure 5, `sets` the kinds, `scale_executions` those
    of Figure 4 and Table 3.
    """

    bits: tuple[int, ...] = (8, 16, 24, 32)
    executions: int = 5
    of_kmh: int = 1
    queries: int = 2000
    rows: int = 100_000
    iterations: int = 50
    sets: tuple[str, ...] = ("raw", "network")
    scale_executions: int = 3


FULL = Size()
SMALL = Size((8,), executions=1, queries=100, rows=1500, iterations=3, sets=("raw",), scale_executions=1)


def measured(hasher: Any, f: Features) -> dict[str, float]:
    """Learn from the database, ask: mAP, precision within radius 2 and at 1000 in per cent, CPU seconds of learning."""
    began = time.process_time()
    hasher.fit(f.base)
    row = {"fit seconds": time.process_time() - began, "iterations": hasher.n_iter_}
    row |= by_labels(hasher.encode(f.queries), hasher.encode(f.base), f, isinstance(hasher, SphericalHashing))
    if isinstance(hasher, nk.ITQ | nk.OnE | nk.OgE):
        row |= {"loss per bit": hasher.quantization_error(f.base), "retained": 100 * hasher.retained_variance(f.base)}
    return {key: float(value) for key, value in row.items()}


@cache
def features(data: Path, kind: str, rows: int, queries: int) -> Features:
    """One of the kinds, with the first rows and queries."""
    f = KINDS[kind](data)
    return Features(f.name, f.base[:rows], f.base_labels[:rows], f.queries[:queries], f.query_labels[:queries])


def table_2(data: Path, size: Size) -> Iterator[Job]:
    """SCQ, Table 2 and Figure 5's seconds: six methods that learn from the whole database."""
    for seed, kind, n_bits, name in product(range(size.executions), size.sets, size.bits, METHODS):
        if seed < size.of_kmh or not name.startswith("KMH"):
            key = {"set": kind, "method": name, "bits": n_bits, "seed": seed}
            yield Job(key, partial(of_table_2, data, size, key))


def of_table_2(data: Path, size: Size, key: Row) -> Row:
    f = features(data, key["set"], size.rows, size.queries)
    return {"rows": len(f.base), **measured(METHODS[key["method"]](key["bits"], random_state=key["seed"]), f)}


def scale(data: Path, size: Size) -> Iterator[Job]:
    """SCQ, Figure 4 and Table 3: 20 images of each class of the training set ask, the rest is learned from."""
    for kind in size.sets:
        for seed, factor in product(range(size.scale_executions), (*FACTORS, None)):
            name = {"method": "ITQ"} if factor is None else {"method": "OnE", "factor": factor}
            yield Job({"set": kind, **name, "seed": seed}, partial(of_scale, data, size, kind, factor, seed))


def of_scale(data: Path, size: Size, kind: str, factor: float | None, seed: int) -> Row:
    """OnE with so many times eq. 25's scale; ITQ without."""
    v = validation(features(data, kind, size.rows, size.queries), seed)
    if factor is None:
        return {"rows": len(v.base), **measured(nk.ITQ(32, random_state=seed), v)}
    eq25 = nk.PCAHash(32).fit(v.base).scale_
    return {"rows": len(v.base), **measured(nk.OnE(32, scale=float(factor * eq25), random_state=seed), v)}


def validation(f: Features, seed: int = 0) -> Features:
    """20 random images of each class ask the other rows of the database."""
    order = np.random.default_rng([seed, 3]).permutation(len(f.base))
    held = np.concatenate([order[f.base_labels[order] == label][:20] for label in np.unique(f.base_labels)])
    rest = np.setdiff1d(order, held)
    return Features(f.name, f.base[rest], f.base_labels[rest], f.base[held], f.base_labels[held])


def seconds(data: Path, size: Size) -> Iterator[Job]:
    """SCQ, Figure 5: fifty iterations at 32 bits on 60,000 x 784, PCA included."""
    for name, make in {"ITQ": nk.ITQ, "SCQ-OgE": nk.OgE, "SCQ-OnE": nk.OnE}.items():
        yield Job({"method": name}, partial(of_seconds, data, size, make))


def of_seconds(data: Path, size: Size, make: Callable[..., Any]) -> Row:
    X = features(data, "raw", size.rows, size.queries).base
    began = time.process_time()
    hasher = make(32, max_iter=size.iterations, tol=0.0, random_state=0).fit(X)
    return {"rows": len(X), "seconds": time.process_time() - began, "iterations": hasher.n_iter_}
