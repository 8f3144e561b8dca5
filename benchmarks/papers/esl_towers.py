"""ESL, sections 1 and 2 on ml100k with networks as towers: all pairs beside sampled ones.

Features are made from the training pairs' graph, the singular vectors of D_u^-1/2 R D_v^-1/2; each tower is one hidden
layer of tanh on them. One squared loss, one solver (full-batch Adam, its rate chosen for
each on the validation pairs), one budget. What differs is the part of the unobserved pairs: exactly, or from 1, 4, 16
pairs an observed one, drawn anew for every step and weighted up to the whole. Seconds are CPU seconds of learning.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import svds
from torch import Tensor, nn

import nearkin as nk
from benchmarks.jobs import Job, Row
from benchmarks.two_tower.problems import read
from nearkin.embedding import AllPairs
from nearkin.embedding.two_tower.objective import Objective

ZEROS = (0, 1, 4, 16)  # sampled for an observed pair; 0 for all of them
RATES = (0.001, 0.003, 0.01)
LAMBDAS = (0.003, 0.01, 0.03)


@dataclass(frozen=True)
class Size:
    """Features, hidden units, components; seeds; CPU seconds and steps of a run, both at least; steps of a choice."""

    features: int = 64
    hidden: int = 128
    k: int = 32
    seeds: int = 5
    seconds: float = 4.0
    steps: int = 100
    trial: int = 60


FULL, SMALL = Size(), Size(8, 8, 4, 1, 0.2, 5, 3)


@dataclass(frozen=True)
class Problem:
    """Pairs, the features of both sides, the objective without its penalties' strength."""

    parts: Any
    U: np.ndarray
    V: np.ndarray
    objective: Objective
    observed: Tensor  # (m, n) bool

    def judged(self, P: Tensor, Q: Tensor, pairs: Any) -> float:
        found = nk.metrics.ranking_metrics(P.numpy(), Q.numpy(), pairs, seen=self.parts.train, k=100, metrics=("ndcg",))
        return float(found["ndcg@100"])

    @torch.no_grad()
    def record(self, P: Tensor, Q: Tensor, strength: float, seconds: float, step: int) -> Row:
        """What is kept of a step: seconds, its number, the exact objective, NDCG@100 of both held-out parts."""
        reached = float(value(self, P, Q, strength, 0, torch.Generator()))
        valid, test = (self.judged(P, Q, pairs) for pairs in (self.parts.valid, self.parts.test))
        return {"seconds": seconds, "step": step, "objective": reached, "valid": valid, "test": test}


@lru_cache(maxsize=1)
def problem(data: Path, size: Size, seed: int) -> Problem:
    parts = read("ml100k", data, seed)
    R = parts.train.matrix().astype(np.float64)
    R.data[:] = 1.0
    halves = [sp.diags(np.maximum(np.asarray(R.sum(axis=axis)).ravel(), 1) ** -0.5) for axis in (1, 0)]
    left, _, right = svds(halves[0] @ R @ halves[1], size.features, random_state=0)
    U, V = (X * len(X) ** 0.5 for X in (left, right.T))
    observed = torch.from_numpy(R.toarray() > 0)
    objective = AllPairs(weighting="none").objective(parts.train)
    return Problem(parts, U.astype(np.float32), V.astype(np.float32), objective, observed)


def towers(size: Size, seed: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Two networks; the last layers small, so that all scores begin near 0."""
    torch.manual_seed(seed)
    made = [nn.Sequential(nn.Linear(size.features, size.hidden), nn.Tanh(), nn.Linear(size.hidden, size.k))
            for _ in range(2)]  # fmt: skip
    for tower in made:
        nn.init.normal_(tower[2].weight, std=0.1 * size.hidden**-0.5)
    return made[0], made[1]


def unobserved(p: Problem, P: Tensor, Q: Tensor, zeros: int, generator: torch.Generator) -> Tensor:
    """Half the weighted squares of the unobserved pairs' scores: of all, or estimated from sampled ones."""
    (m, n), count = p.observed.shape, len(p.parts.train.rows)
    if zeros == 0:
        return p.objective.omega / 2 * (((P.T @ P) * (Q.T @ Q)).sum() - observed_scores(p, P, Q).square().sum())
    drawn = torch.randint(m * n, (zeros * count,), generator=generator)
    i, j = drawn // n, drawn % n
    free = ~p.observed[i, j]
    scores = (P[i[free]] * Q[j[free]]).sum(1)
    return p.objective.omega / 2 * (m * n - count) / len(scores) * scores.square().sum()


def observed_scores(p: Problem, P: Tensor, Q: Tensor) -> Tensor:
    rows, columns = (torch.from_numpy(ids.astype(np.int64)) for ids in (p.parts.train.rows, p.parts.train.indices))
    return (P[rows] * Q[columns]).sum(1)


def value(p: Problem, P: Tensor, Q: Tensor, strength: float, zeros: int, generator: torch.Generator) -> Tensor:
    """The objective over the observed weight: squared errors from 1, the unobserved pairs' from 0, the rows' ridge."""
    ridge = [torch.from_numpy(r).float() @ X.square().sum(1) for r, X in zip(p.objective.ridge, (P, Q), strict=True)]
    errors = (1 - observed_scores(p, P, Q)).square().sum()
    whole = errors / 2 + unobserved(p, P, Q, zeros, generator) + strength / 2 * (ridge[0] + ridge[1])
    return whole / len(p.parts.train.rows)


def learn(
    p: Problem, size: Size, zeros: int, rate: float, strength: float, seed: int, seconds: float, steps: int
) -> list[Row]:
    """Adam until both are spent; a record every tenth of the steps."""
    pair, generator = towers(size, seed), torch.Generator().manual_seed(seed)
    U, V = torch.from_numpy(p.U), torch.from_numpy(p.V)
    optimizer = torch.optim.Adam([w for tower in pair for w in tower.parameters()], lr=rate)
    records, used, step = list[Row](), 0.0, 0
    while used < seconds or step < steps:
        began = time.process_time()
        for _ in range(max(1, steps // 10)):
            optimizer.zero_grad()
            value(p, pair[0](U), pair[1](V), strength, zeros, generator).backward()
            optimizer.step()
            step += 1
        used += time.process_time() - began
        with torch.no_grad():
            records.append(p.record(pair[0](U), pair[1](V), strength, used, step))
    return records


def best(records: list[Row]) -> Row:
    """The record that the validation pairs choose."""
    return max(records, key=lambda record: record["valid"])


@lru_cache
def strength_of(data: Path, size: Size) -> float:
    """lambda that the validation pairs choose with all pairs, for every method: one loss."""
    p = problem(data, size, 0)
    return max(LAMBDAS, key=lambda s: best(learn(p, size, 0, RATES[1], s, 0, 0.0, size.trial))["valid"])


@lru_cache
def rate_of(data: Path, size: Size, zeros: int) -> float:
    """The rate that the validation pairs choose for one way of sampling."""
    p, strength = problem(data, size, 0), strength_of(data, size)
    return max(RATES, key=lambda rate: best(learn(p, size, zeros, rate, strength, 0, 0.0, size.trial))["valid"])


def sampled(data: Path, size: Size, zeros: int, seed: int) -> Row:
    """NDCG@100 of test pairs within the seconds and within the steps, and the objective at the end of the seconds."""
    rate, strength = rate_of(data, size, zeros), strength_of(data, size)
    records = learn(problem(data, size, seed), size, zeros, rate, strength, seed, size.seconds, size.steps)
    in_time = [r for r in records if r["seconds"] <= size.seconds] or records[:1]
    row: Row = {"lambda": strength, "rate": rate, "steps in the seconds": in_time[-1]["step"]}
    row |= {"in seconds": best(in_time)["test"], "objective": in_time[-1]["objective"]}
    in_steps = [r for r in records if r["step"] <= size.steps]
    return row | {"in steps": best(in_steps)["test"], "objective in steps": in_steps[-1]["objective"]}


def jobs(data: Path, size: Size) -> Iterator[Job]:
    for seed in range(size.seeds):
        for zeros in ZEROS:
            key: Row = {"zeros": zeros, "seconds": size.seconds, "seed": seed}
            yield Job(key, partial(sampled, data, size, zeros, seed))
