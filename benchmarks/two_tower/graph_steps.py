"""Tables averaged over the steps of a graph, as LightGCN's, for NumPy and for autograd."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numba import njit
from torch import Tensor

from nearkin.records import Interactions


class Graph(NamedTuple):
    """A symmetric matrix (m + n, m + n) by rows."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def graph_of(pairs: Interactions) -> Graph:
    """D^-1/2 A D^-1/2 of lefts and rights, lefts first."""
    X = (pairs.matrix() > 0).astype(np.float32)
    A = sp.bmat([[None, X], [X.T, None]], format="csr")
    scale = sp.diags(np.maximum(np.diff(A.indptr), 1) ** -0.5)
    A = sp.csr_matrix(scale @ A @ scale, dtype=np.float32)
    return Graph(A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data)


def averaged(graph: Graph, table: np.ndarray, layers: int) -> np.ndarray:
    """(m + n, k) the mean of the float32 table after 0, 1, ..., `layers` steps, as (1 + A (1 + A (...))) by Horner."""
    total = table
    for _ in range(layers):
        total = _step(*graph, total, table)
    return total / np.float32(layers + 1)


def smoothed(graph: Graph, table: Tensor, layers: int) -> Tensor:
    """`averaged` for autograd; the graph is symmetric, so its gradient is averaged alike."""
    return _Averaged.apply(graph, table, layers)  # pyright: ignore[reportReturnType]


class _Averaged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, graph: Graph, table: Tensor, layers: int) -> Tensor:
        ctx.again = lambda X: torch.from_numpy(averaged(graph, X.contiguous().numpy(), layers))  # pyright: ignore[reportAttributeAccessIssue]
        return ctx.again(table.detach())  # pyright: ignore[reportAttributeAccessIssue]

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[None, Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, ctx.again(gradient), None  # pyright: ignore[reportAttributeAccessIssue]


@njit(cache=True, fastmath=True, error_model="numpy")
def _step(indptr, indices, values, X, table):
    """table + A X."""
    out = table.copy()
    for i in range(len(indptr) - 1):
        row = out[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, v = X[indices[e]], values[e]
            for c in range(len(row)):
                row[c] += v * x[c]
    return out
