"""Softmax over all rights of each left row: value and gradient, over all of them or estimated on a sample."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin._check import check_real
from nearkin._pairs import MatrixLike
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.loss import check_embedding, vector
from nearkin.embedding.all_pairs.products import observed_pairs
from nearkin.records import Interactions

BLOCK = 1024  # rows whose scores with the other side are held at a time


class LeftSlope(NamedTuple):
    """The results of one pass over the left rows."""

    slope: Tensor  # (m, k) temperature * dL/dP
    log_masses: Tensor  # (m,) log sum_j b_j exp(p_i.q_j / temperature)
    value: float  # L


class SoftmaxLoss:
    """Cross-entropy of each observed pair's right among all rights, at a temperature t:

    L(P, Q) = sum_i w_i log sum_j b_j exp(s_ij) - sum_ij w_ij s_ij,  s_ij = p_i.q_j / t + c_j,  w_i = sum_j w_ij

    The positive part is linear in P and in Q, so it costs two sparse products; each row's mass log sum_j is summed
    once a row, not once a pair. Over all rights a pass costs O(m n k). With a sample of rights, or lefts, in `among` it
    costs O((m + n) k) for a fixed sample size, and value and gradient are estimates.

    Parameters
    ----------
    observed : Interactions or sparse (m, n) matrix; its stored entries are the observed pairs
    temperature : t, greater than 0; 0.1 to 0.3 suit rows of length 1
    weights : w_ij (nnz,) in row order; default 1
    b : (n,) weight of a right in the sums; default 1, and 0 leaves it out
    bias : (n,) c_j, added to a right's scores; default 0

    >>> import numpy as np, scipy.sparse as sp, torch
    >>> loss = SoftmaxLoss(sp.csr_matrix(np.eye(2)), temperature=1.0)
    >>> round(loss.value(torch.zeros(2, 3), torch.zeros(2, 3)), 4)  # 2 log 2
    1.3863
    """

    def __init__(
        self,
        observed: Interactions | MatrixLike,
        *,
        temperature: float,
        weights: ArrayLike | None = None,
        b: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> None:
        self.pairs, _ = observed_pairs(observed)
        self.temperature = check_real(temperature, "temperature", above=0)
        (_, n), nnz = self.pairs.shape, len(self.pairs.indices)
        self.weights = vector(1.0 if weights is None else weights, "weights", nnz)
        self.b = vector(1.0 if b is None else b, "b", n)
        self.bias = vector(0.0 if bias is None else bias, "bias", n, low=None)
        ones = torch.ones(max(self.pairs.shape), 1, dtype=torch.float64)
        self.left_weights = self.pairs.times_right(self.weights, ones[:n])[:, 0]
        self.right_weights = self.pairs.times_left(self.weights, ones[: self.pairs.shape[0]])[:, 0]
        self.lefts: Tensor = torch.nonzero(self.left_weights > 0)[:, 0]
        self.rights: Tensor = torch.nonzero(self.b > 0)[:, 0]
        if not len(self.rights):
            raise ValueError("b is 0 for every right; at least one must be greater than 0")

    def value(self, P: Tensor, Q: Tensor) -> float:
        """L(P, Q) over all rights."""
        return self.left(P, Q).value

    def gradient(self, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
        """dL/dP (m, k) and dL/dQ (n, k), over all pairs."""
        left = self.left(P, Q)
        return left.slope / self.temperature, self.right(P, Q, left.log_masses) / self.temperature

    def left(self, P: Tensor, Q: Tensor, among: Tensor | None = None) -> LeftSlope:
        """The slope and the masses of the left rows; `among` are numbers of `rights`, default all of them."""
        self._check(P, Q)
        among = self.rights if among is None else among
        scale = math.log(len(self.rights) / len(among))
        offsets = (self.b[among].log() + self.bias[among] + scale).to(P)
        push, log_masses = expected(P, Q[among], self.temperature, offsets)
        weights = self.left_weights.to(P)
        pull = self.pairs.times_right(self.weights.to(Q), Q)
        value = (weights * log_masses).sum(dtype=torch.float64) - self.right_weights @ self.bias
        value -= (pull * P).sum(dtype=torch.float64) / self.temperature
        return LeftSlope(push.mul_(weights[:, None]).sub_(pull), log_masses, float(value))

    def right(self, P: Tensor, Q: Tensor, log_masses: Tensor, among: Tensor | None = None) -> Tensor:
        """(n, k) temperature * dL/dQ; `among` are numbers of `lefts`, default all of them."""
        self._check(P, Q)
        among = self.lefts if among is None else among
        scale = math.log(len(self.lefts) / len(among))
        shares = self.left_weights[among].log().to(P.device) + scale - log_masses[among]
        push = summed(Q, P[among], self.temperature, shares.to(P))
        b = (self.b * self.bias.exp()).to(P)[:, None]
        push = torch.where(b > 0, push.mul_(b), 0)  # a right outside all sums may overflow
        return push.sub_(self.pairs.times_left(self.weights.to(P), P))

    def _check(self, P: Tensor, Q: Tensor) -> None:
        check_embedding(P, "P", self.pairs.shape[0], None)
        check_embedding(Q, "Q", self.pairs.shape[1], P)


def expected(X: Tensor, Y: Tensor, temperature: float, log_weights: Tensor) -> tuple[Tensor, Tensor]:
    """For each row x: the mean of the rows y under exp(x.y / t + log_weights), and the log of that sum."""
    means, masses = torch.empty_like(X), X.new_empty(len(X))
    for at in range(0, len(X), BLOCK):
        rows = slice(at, at + BLOCK)
        S = torch.addmm(log_weights, X[rows], Y.T, alpha=1 / temperature)
        top = S.amax(1, keepdim=True)
        mass = S.sub_(top).exp_().sum(1, keepdim=True)
        torch.div(S @ Y, mass, out=means[rows])
        masses[rows] = (mass.log() + top)[:, 0]
    return means, masses


def summed(X: Tensor, Y: Tensor, temperature: float, log_weights: Tensor) -> Tensor:
    """For each row x: the sum of the rows y times exp(x.y / t + log_weights)."""
    sums = torch.empty_like(X)
    for at in range(0, len(X), BLOCK):
        rows = slice(at, at + BLOCK)
        torch.mm(torch.addmm(log_weights, X[rows], Y.T, alpha=1 / temperature).exp_(), Y, out=sums[rows])
    return sums
