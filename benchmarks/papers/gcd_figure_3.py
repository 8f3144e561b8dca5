"""GCD, Figure 3 and Table 1, as printed: towers, index and rotation learn together in mini-batches.

Cosine hinge loss with margin .1 plus the distortion (eq. 1), straight through the codes; towers alone first, then 200
iterations of OPQ on the items of 8,192 examples, then the joint steps. Every rule of one seed starts from the same
towers and index and sees the same batches. The rotation moves by Algorithm 2 with one plain lambda for all rules: no
moments, no division. Cayley's matrix moves by the same lambda times its own derivatives, all of them.

The paper gives neither lambda here, nor batch, towers, codes, nor the number of joint steps. Ours: tables of ids, 256
pairs a batch, every other item of the batch as a negative, unit item vectors, Adam for the tables and codebooks.
"""

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import nearkin as nk
from benchmarks.end_to_end.problems import read
from benchmarks.jobs import Job, Row
from nearkin.orthogonal import GivensDescent

MARGIN, BATCH, COLLECTED = 0.1, 256, 8192
RULES = {"GCD-R": "random", "GCD-G": "greedy", "GCD-S": "steepest"}


D, M, K = 64, 8, 16  # dimensions of the towers, codes and their centroids
RATE = 1.0  # lambda
JUDGED_USERS = 1000  # the first


@dataclass(frozen=True)
class Size:
    """Warm-up steps of the towers, rounds of OPQ, joint steps, seeds."""

    warmup: int = 2500
    opq_rounds: int = 200
    steps: int = 300
    seeds: int = 10


FULL, SMALL = Size(), Size(60, 3, 30, 2)


class Model(nn.Module):
    """Two tables, a rotation and codebooks."""

    def __init__(self, shape: tuple[int, int], d: int = D) -> None:
        super().__init__()
        self.left = nn.Embedding(shape[0], d, sparse=True)
        self.right = nn.Embedding(shape[1], d, sparse=True)
        self.R = nn.Parameter(torch.eye(d))
        self.codebooks = nn.Parameter(torch.zeros(0))
        for table in (self.left, self.right):
            nn.init.normal_(table.weight, std=d**-0.5)

    def items(self, ids: Tensor | slice) -> Tensor:
        """Unit item vectors (n, d)."""
        return nn.functional.normalize(self.right.weight[ids] if isinstance(ids, slice) else self.right(ids))

    def through(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """T(X) (n, d), straight through the codes, and the mean distortion."""
        Z = X @ self.R
        parts = Z.reshape(len(Z), len(self.codebooks), -1).transpose(0, 1)  # (M, n, d/M)
        codes = torch.cdist(parts.detach(), self.codebooks.detach()).argmin(-1)
        near = torch.stack([book[code] for book, code in zip(self.codebooks, codes, strict=True)])
        C = near.transpose(0, 1).reshape(len(Z), -1)
        return (Z + (C - Z).detach()) @ self.R.T, (Z - C).square().sum(1).mean()

    def hinge(self, users: Tensor, T: Tensor, ids: Tensor) -> Tensor:
        """Mean of max(0, margin - cos of the pair + cos of another item of the batch)."""
        P = nn.functional.normalize(self.left(users))
        scores = P @ nn.functional.normalize(T).T
        loss = (MARGIN - scores.diagonal()[:, None] + scores).clamp(min=0)
        others = ids[:, None] != ids
        return loss[others].mean()


def descent(model: Model, rule: str, seed: int, rate: float = RATE) -> Any:
    """The step of the rotation, given its gradient, as a function without arguments."""
    if rule == "frozen":
        return lambda: None
    if rule == "Cayley":
        return Cayley(model.R, rate).step
    lr = rate / 2**0.5  # g_ij = A_ij / sqrt(2)
    return GivensDescent([model.R], lr, RULES[rule], side="right", random_state=seed).step


class Cayley:
    """R = R_0 (I - S/2)^-1 (I + S/2), S skew and moved by -lambda times the derivative by S_ij over sqrt(2)."""

    def __init__(self, R: nn.Parameter, rate: float) -> None:
        self.R, self.first, self.rate = R, R.detach().clone(), rate / 2**0.5
        self.S = torch.zeros_like(self.first)

    def step(self) -> None:
        S, G = self.S.requires_grad_(), self.R.grad
        eye = torch.eye(len(S))
        skew = (S - S.T) / 2
        R = self.first @ torch.linalg.solve(eye - skew / 2, eye + skew / 2)
        (slope,) = torch.autograd.grad((R * G).sum(), S)
        self.S = (S - self.rate * 2 * slope).detach()
        skew = (self.S - self.S.T) / 2
        with torch.no_grad():
            self.R.copy_(self.first @ torch.linalg.solve(eye - skew / 2, eye + skew / 2))


@cache
def read_parts(data: Path) -> Any:
    """Training and test pairs: the last ten of each history are asked for."""
    return read(data, "ml100k", 10, 0)


@lru_cache(maxsize=1)
def warmed_up(data: Path, size: Size, seed: int) -> tuple[Model, torch.optim.Optimizer]:
    """Towers after the warm-up steps, and OPQ's rotation and codebooks of the items of 8,192 examples."""
    torch.manual_seed(seed)
    parts = read_parts(data)
    model = Model(parts.train.shape)
    tables = torch.optim.SparseAdam([model.left.weight, model.right.weight], lr=0.01)
    for users, ids in batches(parts, size.warmup, [seed, 1]):
        tables.zero_grad()
        model.hinge(users, model.items(ids), ids).backward()
        tables.step()
    drawn = np.random.default_rng([seed, 2]).integers(len(parts.train.rows), size=COLLECTED)
    with torch.no_grad():
        X = model.items(torch.from_numpy(parts.train.indices[drawn].astype(np.int64))).numpy()
    start = nk.ProductQuantizer(M, K, init="random", max_iter=size.opq_rounds, tol=0.0, random_state=seed).fit(X)
    model.R.data = torch.from_numpy(start.rotation_.copy())
    model.codebooks = nn.Parameter(torch.from_numpy(start.codebooks_.copy()))
    return model, tables


def batches(parts: Any, steps: int, seed: list[int]) -> Any:
    """Pairs drawn uniformly."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        drawn = rng.integers(len(parts.train.rows), size=BATCH)
        yield (
            torch.from_numpy(parts.train.rows[drawn].astype(np.int64)),
            torch.from_numpy(parts.train.indices[drawn].astype(np.int64)),
        )


def joint(data: Path, size: Size, rule: str, seed: int) -> Row:
    """The distortion over the joint steps, what it turned by, and the retrieval at the end."""
    (model, tables), parts = copy.deepcopy(warmed_up(data, size, seed)), read_parts(data)
    began = time.process_time()
    books = torch.optim.Adam([model.codebooks], lr=0.001)
    turn, curve, first = descent(model, rule, seed), [], model.R.detach().clone()
    judged = examples(parts)
    for k, (users, ids) in enumerate(batches(parts, size.steps, [seed, 3])):
        for optimizer in (tables, books):
            optimizer.zero_grad()
        model.R.grad = None
        T, distortion = model.through(model.items(ids))
        (model.hinge(users, T, ids) + distortion).backward()
        tables.step()
        books.step()
        turn()
        if (k + 1) % (size.steps // 30) == 0:
            curve.append(catalogue(model, *judged))
    with torch.no_grad():
        T = nn.functional.normalize(model.through(model.items(slice(None)))[0])
        P = nn.functional.normalize(model.left.weight)
    found = {
        "curve": curve,
        "turned": float((model.R.detach() - first).norm()),
        **retrieval(P.numpy(), T.numpy(), parts),
    }
    return found | {"seconds": time.process_time() - began}


def retrieval(P: np.ndarray, T: np.ndarray, parts: Any) -> dict[str, float]:
    """Precision and recall at 100 of the items not seen in training, of the first 1,000 users."""
    test = parts.test.select(parts.test.rows < JUDGED_USERS)
    found = nk.metrics.ranking_metrics(P, T, test, seen=parts.train, k=100)
    return {key: found[key] for key in ("precision@100", "recall@100")}


def examples(parts: Any) -> tuple[Tensor, Tensor]:
    """The items of 8,192 pairs, the same for every rule, and how often each is among them."""
    drawn = np.random.default_rng(5).integers(len(parts.train.rows), size=COLLECTED)
    ids, counts = np.unique(parts.train.indices[drawn].astype(np.int64), return_counts=True)
    return torch.from_numpy(ids), torch.from_numpy(counts)


@torch.no_grad()
def catalogue(model: Model, ids: Tensor, counts: Tensor) -> float:
    """Mean distortion over the examples."""
    X = model.items(ids)
    C = model.through(X)[0] @ model.R
    return float(((X @ model.R - C).square().sum(1) * counts).sum() / counts.sum())


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """GCD, Figure 3 and Table 1: every rule from the same start."""
    for seed, rule in product(range(size.seeds), ("frozen", "Cayley", *RULES)):
        yield Job({"rule": rule, "seed": seed}, partial(joint, data, size, rule, seed))
