"""LightGCN (He et al. 2020) over torch.sparse: tables averaged over the steps of a graph, BPR, Adam."""

import time
import warnings

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nearkin.records import Interactions

LAYERS, RIDGE = 3, 1e-4


def light_gcn(
    pairs: Interactions, k: int, rate: float, size: int, seed: int, *, seconds: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """P, Q, CPU seconds and passes over the pairs: batches of `size` pairs until the seconds are used."""
    generator = torch.Generator().manual_seed(seed)
    m, n = pairs.shape
    graph = graph_of(pairs)
    table = torch.nn.Parameter(0.1 * torch.randn(m + n, k, generator=generator))
    adam = torch.optim.Adam([table], lr=rate, fused=True)
    rows, columns = (torch.from_numpy(x.astype(np.int64)) for x in (pairs.rows, pairs.indices))
    order = torch.randperm(len(rows), generator=generator)
    start, done = time.process_time(), 0
    while time.process_time() - start < seconds:
        if len(order) < size:
            order = torch.randperm(len(rows), generator=generator)
        part, order = order[:size], order[size:]
        X = smoothed(graph, table)
        drawn = torch.randint(n, (len(part),), generator=generator)
        at = rows[part], m + columns[part], m + drawn
        P, Q, N = (X[numbers] for numbers in at)
        penalty = sum(table[numbers].square().sum() for numbers in at) / (2 * len(part))
        adam.zero_grad()
        (softplus((P * (N - Q)).sum(1)).mean() + RIDGE * penalty).backward()
        adam.step()
        done += len(part)
    with torch.no_grad():
        P, Q = (X.numpy() for X in smoothed(graph, table).split([m, n]))
    return P, Q, time.process_time() - start, done / len(rows)


def graph_of(pairs: Interactions) -> Tensor:
    """D^-1/2 A D^-1/2 of lefts and rights as one sparse (m + n, m + n) tensor."""
    X = (pairs.matrix() > 0).astype(np.float32)
    A = sp.bmat([[None, X], [X.T, None]], format="csr")
    scale = sp.diags(np.maximum(np.diff(A.indptr), 1) ** -0.5)
    A = sp.csr_matrix(scale @ A @ scale, dtype=np.float32)
    starts, numbers = (torch.from_numpy(x.astype(np.int64)) for x in (A.indptr, A.indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, numbers, torch.from_numpy(A.data), size=A.shape, check_invariants=True)


def smoothed(graph: Tensor, table: Tensor, layers: int = LAYERS) -> Tensor:
    """The mean of the table after 0, 1, ..., `layers` steps on the graph."""
    total = X = table
    for _ in range(layers):
        X = _Step.apply(graph, X)
        total = total + X
    return total / (layers + 1)


class _Step(torch.autograd.Function):
    """graph @ X; the graph is symmetric, so its transpose is not made."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, graph: Tensor, X: Tensor) -> Tensor:
        ctx.graph = graph  # pyright: ignore[reportAttributeAccessIssue]
        return graph @ X

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[None, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, ctx.graph @ gradient  # pyright: ignore[reportAttributeAccessIssue]
