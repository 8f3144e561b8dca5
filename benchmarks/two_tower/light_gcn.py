"""LightGCN (He et al. 2020) over torch.sparse: tables averaged over the steps of a graph, BPR, Adam."""

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nearkin.records import Interactions

BATCH, LAYERS, RIDGE = 16384, 3, 1e-4  # the paper has batches of 2,048; one step on the graph serves eight of them here


def light_gcn(
    pairs: Interactions, k: int, rate: float, seed: int, *,
    seconds: float = np.inf, epochs: int = 1000, check: Callable[[np.ndarray, np.ndarray], float] | None = None,
) -> tuple[np.ndarray, np.ndarray, float, int]:  # fmt: skip
    """P, Q, CPU seconds and the best epoch by `check`, which is asked every second epoch."""
    generator = torch.Generator().manual_seed(seed)
    m, n = pairs.shape
    graph = _graph(pairs)
    table = torch.nn.Parameter(0.1 * torch.randn(m + n, k, generator=generator))
    adam = torch.optim.Adam([table], lr=rate)
    rows, columns = (torch.from_numpy(x.astype(np.int64)) for x in (pairs.rows, pairs.indices))
    used, done, best = 0.0, 0, (-1.0, np.empty(0), np.empty(0), 0)
    while used < seconds and done < epochs:
        start = time.process_time()
        for part in torch.randperm(len(rows), generator=generator).split(BATCH):
            X = _smoothed(graph, table)
            drawn = torch.randint(n, (len(part),), generator=generator)
            at = rows[part], m + columns[part], m + drawn
            P, Q, N = (X[numbers] for numbers in at)
            penalty = sum(table[numbers].square().sum() for numbers in at) / (2 * len(part))
            adam.zero_grad()
            (softplus((P * (N - Q)).sum(1)).mean() + RIDGE * penalty).backward()
            adam.step()
        used, done = used + time.process_time() - start, done + 1
        if check is None or done % 2 == 0 or used >= seconds:
            with torch.no_grad():
                P, Q = (X.numpy() for X in _smoothed(graph, table).split([m, n]))
            metric = done if check is None else check(P, Q)
            best = (metric, P, Q, done) if metric > best[0] else best
    return best[1], best[2], used, best[3]


def _graph(pairs: Interactions) -> Tensor:
    """D^-1/2 A D^-1/2 of lefts and rights as one sparse (m + n, m + n) tensor."""
    X = (pairs.matrix() > 0).astype(np.float32)
    A = sp.bmat([[None, X], [X.T, None]], format="csr")
    scale = sp.diags(np.maximum(np.diff(A.indptr), 1) ** -0.5)
    A = sp.csr_matrix(scale @ A @ scale, dtype=np.float32)
    starts, numbers = (torch.from_numpy(x.astype(np.int64)) for x in (A.indptr, A.indices))
    return torch.sparse_csr_tensor(starts, numbers, torch.from_numpy(A.data), size=A.shape, check_invariants=True)


def _smoothed(graph: Tensor, table: Tensor) -> Tensor:
    """The mean of the table after 0, 1, ..., LAYERS steps on the graph."""
    total = X = table
    for _ in range(LAYERS):
        X = _Step.apply(graph, X)
        total = total + X
    return total / (LAYERS + 1)


class _Step(torch.autograd.Function):
    """graph @ X; the graph is symmetric, so its transpose is not made."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, graph: Tensor, X: Tensor) -> Tensor:
        ctx.graph = graph  # pyright: ignore[reportAttributeAccessIssue]
        return graph @ X

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[None, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, ctx.graph @ gradient  # pyright: ignore[reportAttributeAccessIssue]
