"""The all-pairs loss as written: a dense m x n sum that autograd differentiates."""

import torch
from torch import Tensor


def dense_loss(P: Tensor, Q: Tensor, Y: Tensor, observed: Tensor, weights: Tensor, cost: Tensor, imputed: Tensor, loss):
    """Sum over the observed of w l(Y, Z) plus over the others of cost (Yt - Z)^2 / 2 (ESL, eqs. 5-7)."""
    Z = P @ Q.T
    return torch.where(observed, weights * loss.value(Y, Z), 0.5 * cost * (imputed - Z) ** 2).sum()


def dense_gauss_newton(P, Q, W, H, Y, observed, weights, cost, loss):
    """Sum over all pairs of l'' Z_ij times the scores' derivative, term by term."""
    curvature = torch.where(observed, weights * loss.second(Y, P @ Q.T), cost)
    Z = curvature * (W @ Q.T + P @ H.T)
    return Z @ Q, Z.T @ P, (curvature * (W @ Q.T + P @ H.T) ** 2).sum()
