"""Rivals that sample: five losses on batches of lefts with all their pairs, settings chosen on validation pairs.

All learn two tables by Adam, from the same start, at a rate that falls in a line to a tenth. A batch of lefts serves
all their pairs with one product against the negatives, so a pass costs a tenth of what batches of pairs do. Cosine
losses normalise the rows and learn a bias of every right, which takes one of the k numbers of a row: score = cosine +
bias.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import embedding, normalize, softplus

import nearkin as nk
from nearkin.data import Parts
from nearkin.records import Interactions

PAIRS, STEPS = 8192, 24  # pairs of a batch, about, and the fewest batches of a pass
NEGATIVES = 1024
LAST_RATE = 0.1


JUDGED = 3000  # lefts by which settings are chosen

Check = Callable[[np.ndarray, np.ndarray], float]
Values = dict[str, float]


class Axis(NamedTuple):
    """Where a setting starts, by what factor it moves, and what it must stay under."""

    start: float
    factor: float = 3.0
    under: float = math.inf

    def moved(self, value: float, way: int) -> float:
        return float(f"{value * self.factor**way:.4g}")


@dataclass(frozen=True)
class Setting:
    """What validation pairs choose for a rival."""

    options: Values
    rate: float
    epochs: int


RATE = Axis(0.01)


class Epochs(NamedTuple):
    """Numbers of epochs with which settings are moved, and those that the best one then gets while it gains."""

    climbing: tuple[int, ...]
    longer: tuple[int, ...]


def climbed(axes: Mapping[str, Axis], judge: Callable[[Values], float]) -> Values:
    """The values from which no axis, moved once up or down, is judged better: so none lies at an edge of what was
    tried, unless it is at its bound."""
    seen: dict[tuple[float, ...], float] = {}

    def judged(values: Values) -> float:
        key = tuple(values.values())
        if key not in seen:
            seen[key] = judge(values)
        return seen[key]

    best, moved = {name: axis.start for name, axis in axes.items()}, True
    while moved:
        moved = False
        for name, axis in axes.items():
            for way in (1, -1):
                while axis.moved(best[name], way) < axis.under:
                    other = best | {name: axis.moved(best[name], way)}
                    if judged(other) <= judged(best):
                        break
                    best, moved = other, True
    return best


def longest(best: Setting, metric: float, longer: tuple[int, ...], judge: Callable[[Setting], float]) -> Setting:
    """The setting, of that metric, with the number of epochs after which more of them are no better."""
    for more in longer:
        other = Setting(best.options, best.rate, more)
        found = judge(other)
        if found <= metric:
            break
        best, metric = other, found
    return best


def judged_by(inner: Parts) -> Check:
    """NDCG@20 of the validation pairs of a few lefts."""
    valid = few_users(inner.valid)

    def check(P: np.ndarray, Q: np.ndarray) -> float:
        return nk.metrics.ranking_metrics(P, Q, valid, seen=inner.train, k=20, metrics=("ndcg",))["ndcg@20"]

    return check


def few_users(valid: Interactions, count: int = JUDGED) -> Interactions:
    """The pairs of `count` lefts that have one, the others without: enough for a choice."""
    matrix = valid.matrix().tocsr(copy=True)
    lefts = np.flatnonzero(np.diff(matrix.indptr))
    keep = np.zeros(matrix.shape[0])
    keep[np.random.default_rng(0).permutation(lefts)[:count]] = 1
    kept = sp.diags(keep) @ matrix
    kept.eliminate_zeros()
    return Interactions.from_matrix(sp.csr_matrix(kept))


@dataclass(frozen=True)
class Batch:
    """Lefts P (u, k); their pairs' rights Q (p, k) and places `at` (p,) in P; N (n, k) rights drawn evenly."""

    P: Tensor
    Q: Tensor
    N: Tensor
    at: Tensor
    columns: Tensor  # (p,) numbers of the rights
    log_frequency: Tensor  # (p,) of `columns`

    def own(self) -> Tensor:
        """(p,) the scores of the pairs."""
        return (self.P[self.at] * self.Q).sum(1)


def in_batch_softmax(batch: Batch, temperature: float) -> Tensor:
    """Cosines, temperature and logQ (Yi et al. 2019): as many rights of the batch's pairs are the negatives."""
    drawn = torch.randperm(len(batch.columns))[: len(batch.N)]
    columns, first, counts = np.unique(batch.columns[drawn].numpy(), return_index=True, return_counts=True)
    others = drawn[torch.from_numpy(first)]
    offsets = torch.from_numpy(np.log(counts)).float() - batch.log_frequency[others]
    S = torch.addmm(offsets, batch.P, batch.Q[others].T, alpha=1 / temperature)
    places = np.minimum(np.searchsorted(columns, batch.columns.numpy()), len(columns) - 1)
    met = torch.from_numpy(columns[places]) == batch.columns
    S = S.index_put((batch.at[met], torch.from_numpy(places)[met]), torch.tensor(-torch.inf))  # rights of its own
    own = batch.own() / temperature - batch.log_frequency
    return (torch.logaddexp(own, S.logsumexp(1)[batch.at]) - own).mean()


def uniform_softmax(batch: Batch, temperature: float) -> Tensor:
    """Cosines and temperature: negatives drawn evenly, shared by the batch."""
    own = batch.own() / temperature
    return (torch.logaddexp(own, (batch.P @ batch.N.T / temperature).logsumexp(1)[batch.at]) - own).mean()


def cosine_contrastive(batch: Batch, margin: float, weight: float) -> Tensor:
    """SimpleX (Mao et al. 2021): 1 - cosine of a pair, plus what negatives exceed a margin by."""
    push = (batch.P @ batch.N.T - margin).clamp(min=0).mean(1)
    return (1 - batch.own() + weight * push[batch.at]).mean()


def bpr(batch: Batch, ridge: float) -> Tensor:
    """Bayesian personalised ranking (Rendle et al. 2009), one negative a pair."""
    N = batch.N[torch.randint(len(batch.N), (len(batch.at),))]
    P = batch.P[batch.at]
    return softplus((P * (N - batch.Q)).sum(1)).mean() + ridge * _lengths(P, batch.Q, N)


def uniform_bce(batch: Batch, weight: float, ridge: float) -> Tensor:
    """Binary cross-entropy; all evenly drawn negatives of a pair together weigh `weight`."""
    push = softplus(batch.P @ batch.N.T).mean(1)
    return (softplus(-batch.own()) + weight * push[batch.at]).mean() + ridge * _lengths(batch.P[batch.at], batch.Q)


def _lengths(*tables: Tensor) -> Tensor:
    """The mean squared lengths of their rows, added up."""
    return torch.stack([X.square().sum(1).mean() for X in tables]).sum()


@dataclass(frozen=True)
class Rival:
    loss: Callable[..., Tensor]
    cosine: bool
    axes: dict[str, Axis]
    rate: Axis = RATE


_TEMPERATURE = {"temperature": Axis(0.15, 1.5)}
RIVALS = {
    "softmax on cosines, in batch, logQ": Rival(in_batch_softmax, True, _TEMPERATURE),
    "softmax on cosines, uniform negatives": Rival(uniform_softmax, True, _TEMPERATURE),
    "cosine contrastive, uniform negatives": Rival(
        cosine_contrastive, True, {"margin": Axis(0.6, 1.25, under=1.0), "weight": Axis(30.0)}, Axis(0.003)
    ),
    "BPR": Rival(bpr, False, {"ridge": Axis(1e-4)}),
    "logistic, uniform negatives": Rival(uniform_bce, False, {"weight": Axis(3.0), "ridge": Axis(1e-3)}),
}


def fit_rival(
    rival: Rival, setting: Setting, pairs: Interactions, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """P, Q and CPU seconds."""
    torch.manual_seed(seed)
    start = time.process_time()
    tables = _random_tables(pairs.shape, k, rival.cosine)
    adam = torch.optim.Adam(tables, lr=setting.rate, fused=True)
    frequency = torch.from_numpy(np.bincount(pairs.indices, minlength=pairs.shape[1]) / len(pairs)).float()
    size = max(1, pairs.shape[0] * min(PAIRS, len(pairs) // STEPS) // len(pairs))
    steps = setting.epochs * -(-pairs.shape[0] // size)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, LAST_RATE, steps)
    for _ in range(setting.epochs):
        for lefts in torch.randperm(pairs.shape[0]).split(size):
            at, columns = _pairs_of(pairs, lefts.numpy())
            both = torch.cat([columns, torch.randint(pairs.shape[1], (NEGATIVES,))])
            P, both = _embedded(tables, lefts, both, rival.cosine)
            Q, N = both.split([len(columns), NEGATIVES])
            adam.zero_grad()
            rival.loss(Batch(P, Q, N, at, columns, frequency[columns].log()), **setting.options).backward()
            adam.step()
            schedule.step()
    with torch.no_grad():
        left, right = _embedded(tables, *(torch.arange(size) for size in pairs.shape), rival.cosine)
    return left.numpy(), right.numpy(), time.process_time() - start


def _pairs_of(pairs: Interactions, lefts: np.ndarray) -> tuple[Tensor, Tensor]:
    """The pairs of some lefts: places in `lefts`, and numbers of rights."""
    counts = np.diff(pairs.indptr)[lefts]
    first = np.repeat(pairs.indptr[lefts] - np.cumsum(counts) + counts, counts)
    columns = pairs.indices[first + np.arange(counts.sum())].astype(np.int64)
    return torch.from_numpy(np.repeat(np.arange(len(lefts)), counts)), torch.from_numpy(columns)


def _random_tables(shape: tuple[int, int], k: int, cosine: bool) -> list[Parameter]:
    tables = [Parameter((1.0 if cosine else 0.1) / k**0.5 * torch.randn(size, k)) for size in shape]
    if cosine:
        tables[1].data[:, -1] = 0.0
    return tables


def _embedded(tables: list[Parameter], rows: Tensor, columns: Tensor, cosine: bool) -> tuple[Tensor, Tensor]:
    """Rows of both towers. With cosines they have length 1 and one number more: 1 at a left, its bias at a right."""
    P, Q = embedding(rows, tables[0]), embedding(columns, tables[1])
    if not cosine:
        return P, Q
    return torch.cat([normalize(P[:, :-1]), torch.ones(len(P), 1)], 1), torch.cat([normalize(Q[:, :-1]), Q[:, -1:]], 1)


def chosen(rival: Rival, inner: Parts, k: int, epochs: Epochs) -> Setting:
    """The setting of largest NDCG@20 of the validation pairs, seed 0: its options and rate for each number of epochs to
    climb with, then as many more epochs as gain."""
    check = judged_by(inner)

    def judge(setting: Setting) -> float:
        P, Q, seconds = fit_rival(rival, setting, inner.train, k, 0)
        metric = check(P, Q)
        print(f"    {setting} NDCG@20 {metric:.4f}  {seconds:.1f} s", flush=True)
        return metric

    found: dict[float, Setting] = {}
    for count in epochs.climbing:

        def judge_values(values: Values, count: int = count) -> float:
            setting = Setting({name: values[name] for name in rival.axes}, values["rate"], count)
            metric = judge(setting)
            found[metric] = setting
            return metric

        climbed({**rival.axes, "rate": rival.rate}, judge_values)
    metric, best = max(found.items())
    return longest(best, metric, epochs.longer, judge)
