"""Costs and settings that SCQ and ESL name outside their tables and figures: each a job of seconds."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nearkin as nk
from benchmarks.harness import median_ms
from benchmarks.hashing.problems import Features
from benchmarks.jobs import Job, Row
from benchmarks.papers.scq_whole import KINDS, measured, validation


@dataclass(frozen=True)
class Size:
    """Rows of the timings; bits of eq. 25's other lengths, and seeds."""

    rows: int = 100_000
    bits: tuple[int, ...] = (16, 64)
    seeds: int = 3


FULL, SMALL = Size(), Size(2000, (8,), 1)


def toy(size: Size) -> Row:
    """Figure 3: two axes of variances 4 and 1, one bit: the direction against the scale, and the loss."""
    X = np.random.default_rng(7).standard_normal((max(2000, size.rows // 10), 2)).astype(np.float32) * [2, 1]
    angles, losses = [], []
    for scale in (0.2, 0.5, 1.0, 1.5):
        hasher = nk.OnE(1, scale=scale, random_state=0).fit(X.astype(np.float32))
        v = np.asarray(hasher.projection_)[:, 0]
        angles.append(float(np.degrees(np.arccos(min(1.0, abs(v[0]) / np.linalg.norm(v))))))
        losses.append(float(hasher.quantization_error(X.astype(np.float32))))
    return {"angles": angles, "losses": losses}


def seconds_of(make: Callable[..., Any], n: int, d: int, bits: int) -> float:
    X = np.random.default_rng(8).standard_normal((n, d), dtype=np.float32) * np.linspace(2, 0.5, d, dtype=np.float32)
    times = []
    for _ in range(3):
        began = time.process_time()
        make(bits, max_iter=10, tol=0.0, random_state=0).fit(X)
        times.append(time.process_time() - began)
    return min(times)


def slopes(name: str, size: Size) -> Row:
    """Table 1: the slope of a fit's CPU seconds in n, d and L, ten iterations."""
    make, n = {"OgE": nk.OgE, "OnE": nk.OnE}[name], size.rows // 5

    def slope(first: tuple[int, int, int], last: tuple[int, int, int]) -> float:
        ratio = max(b / a for a, b in zip(first, last, strict=True))
        return math.log(seconds_of(make, *last) / seconds_of(make, *first)) / math.log(ratio)

    return {
        "n": slope((n, 128, 32), (4 * n, 128, 32)),
        "d": slope((n, 128, 32), (n, 512, 32)),
        "L": slope((n, 256, 16), (n, 256, 64)),
    }


def hundred_thousand(size: Size) -> Row:
    """Fig. 5's "just over a minute" of OnE for 100,000 x 512, fifty iterations; seconds to encode, and the product."""
    X = np.random.default_rng(9).standard_normal((size.rows, 512), dtype=np.float32) * np.linspace(
        2, 0.5, 512, dtype=np.float32
    )
    began = time.process_time()
    hasher = nk.OnE(32, max_iter=50, tol=0.0, random_state=0).fit(X)
    spent, P = time.process_time() - began, np.ascontiguousarray(hasher.projection_, dtype=np.float32)
    times = []
    for function in (hasher.encode, lambda rows: rows @ P):
        function(X)
        began = time.process_time()
        function(X)
        times.append(time.process_time() - began)
    return {"rows": size.rows, "fit": spent, "encode": times[0], "product": times[1]}


def other_lengths(data: Path, size: Size, bits: int, factor: float, seed: int) -> Row:
    """Eq. 25's scale at another length, network features, validation images."""
    f = KINDS["network"](data) if size.rows > 5000 else KINDS["raw"](data)
    f = Features(f.name, f.base[: size.rows], f.base_labels[: size.rows], f.queries, f.query_labels)
    v = validation(f, seed)
    eq25 = nk.PCAHash(bits).fit(v.base).scale_
    return {"map": measured(nk.OnE(bits, scale=float(factor * eq25), random_state=seed), v)["map"]}


def value_and_gradient(data: Path, size: Size) -> Iterator[Job]:
    """Eqs. 15 and 28: CPU milliseconds of one function value and of one gradient, 100 random pairs a row, k = 64."""
    del data
    for m in (2000, 8000) if size.rows > 5000 else (500, 1000):
        yield Job({"m": m}, partial(all_pairs_ms, m))


def all_pairs_ms(m: int) -> Row:
    rng = np.random.default_rng(0)
    pairs = nk.Interactions.from_pairs(np.repeat(np.arange(m), 100), rng.integers(0, m, 100 * m)).matrix()
    loss = nk.embedding.AllPairsLoss(pairs, omega=0.01, labels=1.0)
    P, Q = (torch.from_numpy(rng.standard_normal((n, 64), dtype=np.float32)) / 8 for n in pairs.shape)
    return median_ms({"value": lambda: loss.at(P, Q).value(), "gradient": lambda: loss.gradient(P, Q)}, 5)


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """SCQ: Figure 3, Table 1, section 4's seconds, eq. 25."""
    made: dict[str, Callable[[], Row]] = {
        "Figure 3": partial(toy, size),
        **{f"Table 1, {name}": partial(slopes, name, size) for name in ("OgE", "OnE")},
        "100,000 rows": partial(hundred_thousand, size),
    }
    for bits, factor, seed in product(size.bits, (0.5, 1.0, 2.0, 4.0, 8.0), range(size.seeds)):
        work = partial(other_lengths, data, size, bits, factor, seed)
        made[f"eq. 25, {bits} bits, {factor:g}, seed {seed}"] = work
    for claim, function in made.items():
        yield Job({"claim": claim}, function)
