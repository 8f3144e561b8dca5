"""Tables averaged over the steps of a graph: three products of 1.6 million numbers and 64 columns in .1 s on gowalla.

The products read the table rounded to bfloat16, which halves what must come from memory; sums are float32. The mean
differs from the exact one by .0004 of its length. The recorded seconds of LightGCN were measured with prefetches, which
took up to half of this time off, as long as nearkin's own products had them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from torch import Tensor

from nearkin.records import Interactions

_jit = njit(cache=True, fastmath=True, error_model="numpy")
HALF = 16  # bits of a bfloat16: the upper half of a float32


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
    total, short = table.copy(), np.empty(table.shape, np.uint16)
    for _ in range(layers):
        _round(total, short)
        _step(*graph, short, table, total)
    total /= layers + 1
    return total


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


def _reading_as(to: ir.Type) -> Callable:
    """What compiles to the same 32 bits read as another kind."""
    return lambda _context, builder, _signature, arguments: builder.bitcast(arguments[0], to)


@intrinsic
def _float_of(typing_context, bits):
    return types.float32(types.uint32), _reading_as(ir.FloatType())


@intrinsic
def _bits_of(typing_context, number):
    return types.uint32(types.float32), _reading_as(ir.IntType(32))


@njit(inline="always")
def _wide(short):
    """The float32 of a bfloat16."""
    return _float_of(np.uint32(short) << np.uint32(HALF))


@_jit
def _round(table, short):
    """short[i] = the upper halves of the numbers of table[i], to the nearest."""
    for i in range(len(table)):
        for c in range(table.shape[1]):
            short[i, c] = (_bits_of(table[i, c]) + np.uint32(1 << (HALF - 1))) >> np.uint32(HALF)


@_jit
def _step(indptr, indices, values, short, table, out):
    """out = table + A short, four entries of a row of A at a time."""
    for i in range(len(indptr) - 1):
        row = out[i]
        row[:] = table[i]
        e, end = indptr[i], indptr[i + 1]
        while e + 4 <= end:
            x0, x1, x2, x3 = short[indices[e]], short[indices[e + 1]], short[indices[e + 2]], short[indices[e + 3]]
            v0, v1, v2, v3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            for c in range(len(row)):
                row[c] += v0 * _wide(x0[c]) + v1 * _wide(x1[c]) + v2 * _wide(x2[c]) + v3 * _wide(x3[c])
            e += 4
        while e < end:
            x, v = short[indices[e]], values[e]
            for c in range(len(row)):
                row[c] += v * _wide(x[c])
            e += 1
