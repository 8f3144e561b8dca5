"""Rivals that sample: five losses on batches of pairs, each with its settings chosen on validation pairs.

All learn two tables by sparse Adam on batches of observed pairs, from the same start. Cosine losses normalise the rows
and learn a bias of every right, which takes one of the k numbers of a row: score = cosine + bias.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, softplus

import nearkin as nk
from nearkin.data import Parts
from nearkin.records import Interactions

BATCH, NEGATIVES = 2048, 1024
JUDGED = 3000  # lefts by which settings are chosen
EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)
SHORT = 0.125  # of the budget that every setting gets; the best one gets all of it


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
    rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2)


RIVALS = {
    "softmax on cosines, in batch, logQ": Rival(in_batch_softmax, True, {"temperature": (0.08, 0.12, 0.2)}),
    "softmax on cosines, 1,024 uniform negatives": Rival(uniform_softmax, True, {"temperature": (0.08, 0.12, 0.2)}),
    "cosine contrastive, 1,024 negatives (SimpleX)": Rival(
        cosine_contrastive, True, {"margin": (0.3, 0.6), "weight": (30.0, 150.0)}, (3e-3, 1e-2)
    ),
    "BPR": Rival(bpr, False, {"ridge": (1e-4, 1e-3, 1e-2)}),
    "logistic, 1,024 uniform negatives": Rival(
        uniform_bce, False, {"weight": (10.0, 100.0), "ridge": (1e-4, 1e-3)}, (3e-3, 1e-2)
    ),
}


def fit_rival(
    rival: Rival, settings: dict[str, float], rate: float, pairs: Interactions, k: int, seed: int, *,
    epochs: int = 1000, seconds: float = np.inf, check: Callable[[np.ndarray, np.ndarray], float] | None = None,
) -> tuple[np.ndarray, np.ndarray, float, int]:  # fmt: skip
    """P, Q, CPU seconds and the best epoch; with `check` it stops after three epochs in a row that were no better."""
    torch.manual_seed(seed)
    tables = _random_tables(pairs.shape, k, rival.cosine)
    adam = torch.optim.SparseAdam([table.weight for table in tables], lr=rate * (3 if rival.cosine else 1))
    rows, columns = (torch.from_numpy(x.astype(np.int64)) for x in (pairs.rows, pairs.indices))
    frequency = torch.from_numpy(np.bincount(pairs.indices, minlength=pairs.shape[1]) / len(pairs)).float()
    best, used, done = (-1.0, *_whole(tables, rival.cosine), 0), 0.0, 0
    while used < seconds and done < epochs and done - best[3] < 3:
        start = time.process_time()
        for part in torch.randperm(len(rows)).split(BATCH):
            drawn = torch.randint(pairs.shape[1], (NEGATIVES,))
            P, both = _embedded(tables, rows[part], torch.cat([columns[part], drawn]), rival.cosine)
            Q, N = both.split([len(part), NEGATIVES])
            batch = Batch(P, Q, N, columns[part], frequency[columns[part]].log())
            adam.zero_grad()
            rival.loss(batch, **settings).backward()
            adam.step()
        used, done = used + time.process_time() - start, done + 1
        found = _whole(tables, rival.cosine)
        metric = done if check is None else check(*found)
        best = (metric, *found, done) if metric > best[0] else best
    return best[1], best[2], used, best[3]


def _random_tables(shape: tuple[int, int], k: int, cosine: bool) -> list[torch.nn.Embedding]:
    tables = [torch.nn.Embedding(size, k, sparse=True) for size in shape]
    for table in tables:
        torch.nn.init.normal_(table.weight, std=(1.0 if cosine else 0.1) / k**0.5)
    if cosine:
        tables[1].weight.data[:, -1] = 0.0
    return tables


def _embedded(tables: list[torch.nn.Embedding], rows: Tensor, columns: Tensor, cosine: bool) -> tuple[Tensor, Tensor]:
    """Rows of both tables. With cosines they have length 1 and one number more: 1 at a left, its bias at a right."""
    P, Q = tables[0](rows), tables[1](columns)
    if not cosine:
        return P, Q
    return torch.cat([normalize(P[:, :-1]), torch.ones(len(P), 1)], 1), torch.cat([normalize(Q[:, :-1]), Q[:, -1:]], 1)


def _whole(tables: list[torch.nn.Embedding], cosine: bool) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        left, right = _embedded(tables, *(torch.arange(table.num_embeddings) for table in tables), cosine)
    return left.numpy().copy(), right.numpy().copy()


def chosen(rival: Rival, inner: Parts, k: int, seconds: float) -> tuple[dict[str, float], float, int]:
    """Settings, rate and number of epochs by NDCG@20 of the validation pairs, seed 0.

    Every setting gets an eighth of the seconds; the best of them is fitted with all of them, which gives the epochs.
    """

    def check(P: np.ndarray, Q: np.ndarray) -> float:
        return nk.metrics.ranking_metrics(P, Q, valid, seen=inner.train, k=20, metrics=("ndcg",))["ndcg@20"]

    valid = few_users(inner.valid)
    best: tuple[float, dict[str, float], float] | None = None
    for settings, rate in product(_grid(rival.grid), rival.rates):
        P, Q, _, _ = fit_rival(rival, settings, rate, inner.train, k, 0, seconds=SHORT * seconds)
        metric = check(P, Q)
        print(f"    {settings} rate {rate}: NDCG@20 {metric:.4f}", flush=True)
        if best is None or metric > best[0]:
            best = (metric, settings, rate)
    if best is None:
        raise ValueError("the grid is empty")
    *_, epochs = fit_rival(rival, best[1], best[2], inner.train, k, 0, seconds=seconds, check=check)
    return best[1], best[2], epochs


def few_users(valid: Interactions, count: int = JUDGED) -> Interactions:
    """The pairs of `count` lefts that have one, the others without: enough for a choice."""
    matrix = valid.matrix().tocsr(copy=True)
    lefts = np.flatnonzero(np.diff(matrix.indptr))
    keep = np.zeros(matrix.shape[0])
    keep[np.random.default_rng(0).permutation(lefts)[:count]] = 1
    kept = sp.diags(keep) @ matrix
    kept.eliminate_zeros()
    return Interactions.from_matrix(sp.csr_matrix(kept))


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
