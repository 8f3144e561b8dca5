"""Newton-Schulz for small matrices in one call: at a side of 64 a product takes 10 us, and so does calling torch."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

LARGEST = 64 * 64  # entries; beyond, torch's products are faster than the BLAS that numba calls


def is_small(M: Tensor) -> bool:
    """Whether `orthonormalize_small` takes M (..., d, k)."""
    if M.device.type != "cpu" or M.dtype not in (torch.float32, torch.float64):
        return False
    return M.shape[-2] * M.shape[-1] <= LARGEST and M.is_contiguous()


def orthonormalize_small(
    M: Tensor,  # (..., d, k), contiguous; changed
    tolerance: float,  # of ||M^T M - I||_F / sqrt(k)
) -> bool:
    """Iterate M <- M - M (M^T M - I) / 2 in place; False if a matrix is too far from the manifold to converge.

    The same steps as `newton_schulz_orthonormalize`, with the deviation measured itself where that probes it.
    """
    if not is_small(M):
        raise ValueError(
            f"M is {M.dtype} {tuple(M.shape)} on {M.device}; it must be contiguous float32 or float64 of at most "
            f"{LARGEST} entries a matrix on the CPU"
        )
    array = M.detach().numpy().reshape(-1, *M.shape[-2:])
    return bool(_iterate(array, array.dtype.type(tolerance)))


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})  # NaN and infinity still come through
def _iterate(batch: np.ndarray, tolerance: float) -> bool:
    d, k = batch.shape[1:]
    E, ME = np.empty((k, k), batch.dtype), np.empty((d, k), batch.dtype)
    half, one = batch.dtype.type(0.5), batch.dtype.type(1)
    enough = tolerance * tolerance * k  # of ||E||_F^2
    for b in range(len(batch)):
        M, due = batch[b], True
        while due:
            np.dot(M.T, M, E)
            square = batch.dtype.type(0)
            for i in range(k):
                E[i, i] -= one
                for j in range(k):
                    square += E[i, j] * E[i, j]
            if not square < 1:
                return False
            np.dot(M, E, ME)
            for i in range(d):
                for j in range(k):
                    M[i, j] -= half * ME[i, j]
            due = square * square > enough  # the step takes ||E||_F to 3/4 of its square at most
    return True
