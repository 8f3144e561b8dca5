"""The "newton-schulz" step of small matrices as one compiled call: there a product takes as long as calling torch.

The formulas are those of `riemannian_descent` and of `retraction.newton_schulz_orthonormalize`, the slow twins to which
tests hold them.
"""

# pyright: reportConstantRedefinition=false, reportUnknownMemberType=false

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from torch import Tensor

LARGEST = 128 * 128  # entries; beyond, torch's products are faster than the BLAS that numba calls


def is_small(M: Tensor) -> bool:
    """Whether `orthonormalize_small` and `descend_small` take M (..., d, k)."""
    if M.device.type != "cpu" or M.dtype not in (torch.float32, torch.float64):
        return False
    return M.shape[-2] * M.shape[-1] <= LARGEST and M.is_contiguous()


def orthonormalize_small(
    M: Tensor,  # (..., d, k), contiguous; changed
    tolerance: float,  # of ||M^T M - I||_F / sqrt(k)
) -> bool:
    """Bring M onto the manifold by Newton-Schulz steps in place; False if a matrix is too far away for them."""
    if not is_small(M):
        raise ValueError(
            f"M is {M.dtype} {tuple(M.shape)} on {M.device}; it must be contiguous float32 or float64 of at most "
            f"{LARGEST} entries a matrix on the CPU"
        )
    array = M.detach().numpy().reshape(-1, *M.shape[-2:])
    return bool(_orthonormalize(array, array.dtype.type(tolerance)))


@dataclass(frozen=True)
class Rates:
    """The numbers of one step: M <- decay M + gain gradient; with beta2, v averages squares, and M / (sqrt(v) / scale +
    eps) is the direction; without, scale is 0.
    """

    length: float
    decay: float = 0.0
    gain: float = 1.0
    beta2: float = 0.0
    scale: float = 0.0
    eps: float = 0.0


def descend_small(
    X: Tensor,  # (b, d, k), as `is_small` has it
    G: Tensor,  # (b, d, k), contiguous
    moments: tuple[Tensor | None, Tensor | None],  # of the skew gradient (b, d, d), or of a tall one (b, d, k); changed
    rates: Rates,
    tolerance: float,
) -> tuple[Tensor, bool]:
    """One step: X itself, moved, and True; or where it is too long, a new matrix that is still to be orthonormalized.

    X is then as it was. Second moments are for square X only.
    """
    square = X.shape[-2] == X.shape[-1]
    x, g = X.numpy(), G.numpy()
    empty = x[:0]
    m, v = (empty if moment is None else moment.view(X.shape).numpy() for moment in moments)
    numbers = (rates.length, rates.decay, rates.gain, rates.beta2, rates.scale, rates.eps, tolerance)
    step = _square_step if square else _tall_step
    Y, done = step(x, g, m, v, np.array(numbers))
    return (X, True) if done else (torch.from_numpy(Y), False)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})  # NaN and infinity still come through
def _square_step(
    X: np.ndarray, G: np.ndarray, M: np.ndarray, V: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, bool]:
    number = X.dtype.type
    length, decay, gain, beta2 = number(numbers[0]), number(numbers[1]), number(numbers[2]), number(numbers[3])
    scale, eps, tolerance = number(numbers[4]), number(numbers[5]), number(numbers[6])
    d = X.shape[1]
    P, A, Y = np.empty((d, d), X.dtype), np.zeros((d, d), X.dtype), np.empty_like(X)
    for b in range(len(X)):
        np.dot(X[b].T, G[b], P)
        for i in range(d):
            for j in range(i):
                a = P[i, j] - P[j, i]
                w = a
                if len(M):
                    w = decay * M[b, i, j] + gain * a
                    M[b, i, j], M[b, j, i] = w, -w
                if len(V):
                    square = beta2 * V[b, i, j] + (1 - beta2) * a * a
                    V[b, i, j] = V[b, j, i] = square
                    w = w / (np.sqrt(square) / scale + eps)
                A[i, j], A[j, i] = length * w, -length * w
        np.dot(X[b], A, P)
        for i in range(d):
            for j in range(d):
                Y[b, i, j] = X[b, i, j] - P[i, j]
    done = _orthonormalize(Y, tolerance)
    if done:
        X[:] = Y
    return Y, done


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _tall_step(
    X: np.ndarray, G: np.ndarray, M: np.ndarray, V: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, bool]:
    number = X.dtype.type
    length, decay, gain, tolerance = number(numbers[0]), number(numbers[1]), number(numbers[2]), number(numbers[6])
    d, k = X.shape[1:]
    P, Q, Y = np.empty((k, k), X.dtype), np.empty((d, k), X.dtype), np.empty_like(X)
    for b in range(len(X)):
        D = G[b]
        if len(M):
            D = M[b]
            for i in range(d):
                for j in range(k):
                    D[i, j] = decay * D[i, j] + gain * G[b, i, j]
        np.dot(D.T, X[b], P)
        np.dot(X[b], P, Q)
        for i in range(d):
            for j in range(k):
                Y[b, i, j] = X[b, i, j] - length * (D[i, j] - Q[i, j])
    done = _orthonormalize(Y, tolerance)
    if done:
        X[:] = Y
    return Y, done


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _orthonormalize(batch: np.ndarray, tolerance: float) -> bool:
    d, k = batch.shape[1:]
    E, F, ME = np.empty((k, k), batch.dtype), np.empty((k, k), batch.dtype), np.empty((d, k), batch.dtype)
    half, one = batch.dtype.type(0.5), batch.dtype.type(1)
    three_quarters, quarter = batch.dtype.type(0.75), batch.dtype.type(0.25)
    enough = tolerance * tolerance * k  # of ||E||_F^2
    for b in range(len(batch)):
        M, due = batch[b], True
        while due:
            np.dot(M.T, M, E)
            size = batch.dtype.type(0)
            for i in range(k):
                E[i, i] -= one
                for j in range(k):
                    size += E[i, j] * E[i, j]
            if not size < 1:
                return False
            due = size * size > enough
            if due:  # a Newton-Schulz step might not do: with the next term of its series, E^3 is left
                np.dot(E, E, F)
                square = batch.dtype.type(0)
                for i in range(k):
                    for j in range(k):
                        square += F[i, j] * F[i, j]
                        E[i, j] -= three_quarters * F[i, j]
                # left is 5 E^3 / 8 + ..., whose norm is below 0.78 ||E^3|| for ||E|| < 1/2; ||E^3|| <= ||E^2||^(3/2)
                due = size > quarter or three_quarters * square * np.sqrt(square) > enough
            np.dot(M, E, ME)
            for i in range(d):
                for j in range(k):
                    M[i, j] -= half * ME[i, j]
    return True
