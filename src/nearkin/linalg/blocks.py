"""Disjoint groups of rows: the skew gradient's s x s blocks on them, and a rotation of each group.

Both are one pass over the rows in the order of memory. Up to `SMALL` rows a group they are loops, on one thread: a
library's matrix product of so few rows spends its time on calling, and on gathering copies first: 8 rows a group of
1,024 x 1,024 in float32 take 0.4 ms for the blocks and 1.8 ms for turning, 7.8 and 7.6 by products (2026-11-24).
"""

import numpy as np
import torch
from torch import Tensor

from nearkin._compile import cached_njit
from nearkin.linalg.exponential import plus_product
from nearkin.linalg.skew import for_kernels, left_skew, row_entry

SMALL = 16
WIDTH = 256  # columns at a time: those of s rows and their copy stay in the fastest cache


def skew_blocks(
    X: Tensor,  # (d, k)
    G: Tensor,  # (d, k)
    components: Tensor,  # (l, s) integers: disjoint groups of rows
) -> Tensor:
    """Return Omega = G X^T - X G^T restricted to each group (l, s, s), in O(l s^2 k)."""
    if _by_loops(X, components):
        blocks = torch.empty(*components.shape, components.shape[1], dtype=X.dtype)
        _skew_kernel(X.detach().numpy(), G.detach().numpy(), components.numpy(), blocks.numpy())
        return blocks
    shape, rows = (*components.shape, X.shape[-1]), components.reshape(-1)
    return left_skew(X.index_select(0, rows).view(shape), G.index_select(0, rows).view(shape))


def turn_blocks(
    X: Tensor,  # (d, k), changed in place
    components: Tensor,  # (l, s)
    turn: Tensor,  # (l, s, s), the rotations minus the identity
) -> None:
    """X[c] <- X[c] + turn_c X[c] for the rows X[c] (s, k) of every group c."""
    if _by_loops(X, components):
        _turn_kernel(X.detach().numpy(), components.numpy(), turn.detach().contiguous().numpy())
        return
    rows = components.reshape(-1)
    part = X.index_select(0, rows).view(*components.shape, X.shape[-1])
    X.index_copy_(0, rows, plus_product(part, turn, part).view(-1, X.shape[-1]))


def _by_loops(X: Tensor, components: Tensor) -> bool:
    return for_kernels(X) and components.shape[1] <= SMALL


@cached_njit()
def _skew_kernel(X: np.ndarray, G: np.ndarray, components: np.ndarray, blocks: np.ndarray) -> None:
    s = components.shape[1]
    for number in range(components.shape[0]):
        rows = components[number]
        for a in range(s):
            blocks[number, a, a] = 0
            for b in range(a):
                i, j = rows[a], rows[b]
                entry = row_entry(X[i], X[j], G[i], G[j])
                blocks[number, a, b], blocks[number, b, a] = entry, -entry


@cached_njit(fastmath={"contract"})
def _turn_kernel(X: np.ndarray, components: np.ndarray, turn: np.ndarray) -> None:
    s, k = components.shape[1], X.shape[1]
    part, change = np.empty((s, WIDTH), X.dtype), np.empty(WIDTH, X.dtype)
    for number in range(components.shape[0]):
        rows = components[number]
        for start in range(0, k, WIDTH):
            width = min(WIDTH, k - start)
            for a in range(s):
                for c in range(width):  # numba takes seconds to compile the assignment of a slice
                    part[a, c] = X[rows[a], start + c]
            for a in range(s):
                for c in range(width):
                    change[c] = 0  # summed by itself and added once: each rounding next to X would drift
                for b in range(s):
                    factor = turn[number, a, b]
                    for c in range(width):
                        change[c] += factor * part[b, c]
                row = X[rows[a], start : start + width]
                for c in range(width):
                    row[c] += change[c]
