"""Rivals that sample: five losses on batches of pairs, each with its settings chosen on validation pairs.

All learn two tables by sparse Adam on batches of observed pairs, from the same start. Cosine losses normalise the rows.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, softplus

import nearkin as nk
from nearkin.data import Parts
from nearkin.records import Interactions

BATCH, NEGATIVES = 2048, 1024
EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Batch:
    """A batch of pairs: P and their rights Q, (b, k); N (n, k) rights drawn evenly; log frequencies of both."""

    P: Tensor
    Q: Tensor
    N: Tensor
    columns: Tensor
    log_frequency: Tensor  # (b,) of `columns`


def in_batch_softmax(batch: Batch, temperature: float) -> Tensor:
    """Cosines, temperature and logQ (Yi et al. 2019): the batch's other rights are the negatives."""
    logits = batch.P @ batch.Q.T / temperature - batch.log_frequency
    same = batch.columns[:, None] == batch.columns[None, :]
    logits = logits.masked_fill(same.fill_diagonal_(False), -torch.inf)
    return cross_entropy(logits, torch.arange(len(logits)))


def uniform_softmax(batch: Batch, temperature: float) -> Tensor:
    """Cosines and temperature: negatives drawn evenly, shared by the batch."""
    own = (batch.P * batch.Q).sum(1, keepdim=True)
    logits = torch.cat([own, batch.P @ batch.N.T], 1) / temperature
    return cross_entropy(logits, torch.zeros(len(own), dtype=torch.long))


def cosine_contrastive(batch: Batch, margin: float, weight: float) -> Tensor:
    """SimpleX (Mao et al. 2021): 1 - cosine of a pair, plus what negatives exceed a margin by."""
    own = 1 - (batch.P * batch.Q).sum(1)
    return (own + weight * (batch.P @ batch.N.T - margin).clamp(min=0).mean(1)).mean()


def bpr(batch: Batch, ridge: float) -> Tensor:
    """Bayesian personalised ranking (Rendle et al. 2009), one negative a pair."""
    N = batch.N[torch.randint(len(batch.N), (len(batch.P),))]
    lead = (batch.P * (batch.Q - N)).sum(1)
    return softplus(-lead).mean() + ridge * sum(X.square().sum(1).mean() for X in (batch.P, batch.Q, N))


def uniform_bce(batch: Batch, weight: float, ridge: float) -> Tensor:
    """Binary cross-entropy; all evenly drawn negatives of a pair together weigh `weight`."""
    own = softplus(-(batch.P * batch.Q).sum(1)).mean() + weight * softplus(batch.P @ batch.N.T).mean()
    return own + ridge * sum(X.square().sum(1).mean() for X in (batch.P, batch.Q))


@dataclass(frozen=True)
class Rival:
    loss: Callable[..., Tensor]
    cosine: bool
    grid: dict[str, tuple[float, ...]]
    rates: tuple[float, ...] = (3e-3, 1e-2)


RIVALS = {
    "softmax on cosines, in batch, logQ": Rival(in_batch_softmax, True, {"temperature": (0.1, 0.15, 0.2)}),
    "softmax on cosines, 1,024 uniform negatives": Rival(uniform_softmax, True, {"temperature": (0.1, 0.15, 0.2)}),
    "cosine contrastive, 1,024 negatives (SimpleX)": Rival(
        cosine_contrastive, True, {"margin": (0.2, 0.4), "weight": (10.0, 100.0)}
    ),
    "BPR": Rival(bpr, False, {"ridge": (1e-3, 1e-2)}),
    "logistic, 1,024 uniform negatives": Rival(uniform_bce, False, {"weight": (10.0, 100.0), "ridge": (1e-3, 1e-2)}),
}


def fit_rival(
    rival: Rival, settings: dict[str, float], rate: float, pairs: Interactions, k: int, seed: int, *,
    epochs: int = 1000, seconds: float = np.inf, check: Callable[[np.ndarray, np.ndarray], float] | None = None,
) -> tuple[np.ndarray, np.ndarray, float, int]:  # fmt: skip
    """P, Q, CPU seconds and the best epoch; with `check` it stops after three epochs in a row that were no better."""
    torch.manual_seed(seed)
    scale = 1.0 if rival.cosine else 0.1
    tables = [torch.nn.Embedding(size, k, sparse=True) for size in pairs.shape]
    for table in tables:
        torch.nn.init.normal_(table.weight, std=scale / k**0.5)
    adam = torch.optim.SparseAdam([table.weight for table in tables], lr=rate * (3 if rival.cosine else 1))
    rows, columns = (torch.from_numpy(x.astype(np.int64)) for x in (pairs.rows, pairs.indices))
    frequency = torch.from_numpy(np.bincount(pairs.indices, minlength=pairs.shape[1]) / len(pairs)).float()
    embed = (lambda table, at: normalize(table(at))) if rival.cosine else (lambda table, at: table(at))
    best, used, done = (-1.0, *_tables(tables, rival.cosine), 0), 0.0, 0
    while used < seconds and done < epochs and done - best[3] < 3:
        start = time.process_time()
        for part in torch.randperm(len(rows)).split(BATCH):
            batch = Batch(
                embed(tables[0], rows[part]), embed(tables[1], columns[part]),
                embed(tables[1], torch.randint(pairs.shape[1], (NEGATIVES,))), columns[part],
                frequency[columns[part]].log(),
            )  # fmt: skip
            adam.zero_grad()
            rival.loss(batch, **settings).backward()
            adam.step()
        used, done = used + time.process_time() - start, done + 1
        found = _tables(tables, rival.cosine)
        metric = done if check is None else check(*found)
        best = (metric, *found, done) if metric > best[0] else best
    return best[1], best[2], used, best[3]


def _tables(tables: list[torch.nn.Embedding], cosine: bool) -> tuple[np.ndarray, np.ndarray]:
    found = [table.weight.detach() for table in tables]
    left, right = ((normalize(X) if cosine else X.clone()).numpy() for X in found)
    return left, right


def chosen(rival: Rival, inner: Parts, k: int, seconds: float) -> tuple[dict[str, float], float, int]:
    """Settings, rate and number of epochs of the best NDCG@20 on the validation pairs, seed 0."""

    def check(P: np.ndarray, Q: np.ndarray) -> float:
        return nk.metrics.ranking_metrics(P, Q, inner.valid, seen=inner.train, k=20, metrics=("ndcg",))["ndcg@20"]

    best: tuple[float, dict[str, float], float, int] | None = None
    for settings, rate in product(_grid(rival.grid), rival.rates):
        P, Q, _, epochs = fit_rival(rival, settings, rate, inner.train, k, 0, seconds=seconds, check=check)
        metric = check(P, Q)
        if best is None or metric > best[0]:
            best = (metric, settings, rate, epochs)
    if best is None:
        raise ValueError("the grid is empty")
    return best[1:]


def ease(pairs: Interactions, k: int, *, random_state: int) -> np.ndarray:
    """(m, k) lists of EASE (Steck 2019), its ridge chosen on a tenth of the pairs by NDCG."""
    inner = nk.data.split_random(pairs, valid=0.1, test=0, random_state=random_state)
    judged = [
        nk.metrics.list_metrics(_ease(inner.train, k, ridge), inner.valid, k=k)[f"ndcg@{k}"] for ridge in EASE_RIDGES
    ]
    return _ease(pairs, k, EASE_RIDGES[int(np.argmax(judged))])


def _ease(pairs: Interactions, k: int, ridge: float) -> np.ndarray:
    X = (pairs.matrix() > 0).astype(np.float64)
    inverse = np.linalg.inv((X.T @ X).toarray() + ridge * np.eye(pairs.shape[1]))
    B = -inverse / np.diag(inverse)
    np.fill_diagonal(B, 0)
    scores = X @ B
    scores[X.nonzero()] = -np.inf
    return np.argsort(-scores, axis=1)[:, :k]


def _grid(grid: dict[str, tuple[float, ...]]) -> Iterable[dict[str, float]]:
    return (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
