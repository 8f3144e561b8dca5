"""From observed pairs to an `AllPairsLoss`: weights, costs and penalties, with defaults for any table of pairs."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import svds
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_choice, check_real
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.loss import AllPairsLoss, Prior
from nearkin.records import Interactions


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the loss over all pairs."""

    # Total weight of all m n pairs over that of the observed ones. Gowalla's validation pairs (2026-11, with powers,
    # Recall@20): .166 with 16, .162 with 8, .160 with 32.
    unobserved_mass: float = 16.0
    start: float = 0.1  # length of a row of the random tables


DEFAULTS = Defaults()


@dataclass(frozen=True)
class Objective:
    """The objective of a table of pairs but for its strength of regularization.

    `omega` is the weight of an unobserved pair; `labels`, `weights` (nnz,); `a` (m,), `b` (n,) the cost factors;
    `ridge` the rows' shares of the penalty, proportional to the weight of all pairs of the row, observed or not, so
    that one lambda suits frequent and rare rows (Rendle et al. 2022, "Revisiting iALS", eq. 5 with exponent 1).
    """

    interactions: Interactions
    pair_loss: str
    omega: float
    labels: np.ndarray | float
    weights: np.ndarray
    a: np.ndarray
    b: np.ndarray
    prior: Prior
    ridge: tuple[np.ndarray, np.ndarray]

    def loss(self, regularization: float) -> AllPairsLoss:
        return AllPairsLoss(
            self.interactions, loss=self.pair_loss, omega=self.omega, labels=self.labels, weights=self.weights,
            a=self.a, b=self.b, prior=self.prior, regularization=regularization, ridge=self.ridge,
        )  # fmt: skip

    def noise_level(self, random_state: np.random.Generator) -> float:
        """The second singular value of randomly shuffled pairs with the same counts.

        From small embeddings the squared loss grows a factor exactly if its singular value in
        N = R^(-1/2) (W Y) S^(-1/2), with the ridges R and S, exceeds lambda. Shuffling the right sides among the pairs
        keeps both sides' counts and removes all structure but popularity, so structure begins above the second singular
        value of the shuffled N.
        """
        pairs, (m, n) = self.interactions, self.interactions.shape
        r, s = (np.sqrt(np.maximum(v, 1e-12)) for v in self.ridge)
        columns = random_state.permutation(pairs.indices)
        N = sp.csr_matrix((self.weights / (r[pairs.rows] * s[columns]), columns, pairs.indptr), shape=(m, n))
        if min(m, n) < 3:  # too few for ARPACK
            return float(np.linalg.svd(N.toarray(), compute_uv=False)[-1])
        start = random_state.standard_normal(min(m, n))
        return float(svds(N, 2, v0=start, return_singular_vectors=False).min())


@dataclass(eq=False, repr=False, kw_only=True)
class AllPairs(BaseEstimator):
    """`TwoTower(loss=AllPairs(...))`: the exact loss over all m x n pairs; see `nearkin.embedding.AllPairsLoss`.

    Parameters
    ----------
    omega : weight of an unobserved pair, at least 0; "auto" gives all of them 16 times the weight of the observed ones
    pair_loss : l of the observed pairs, "squared" | "logistic" | "squared-hinge"
    weighting : the record's weights as importance w_ij of a pair, "log" (log(1 + weight)) | "linear" | "none"; the
        importances have the mean 1
    weight_power : the importance of an observed pair is also multiplied by (d_i d_j)^-power, d the numbers of pairs of
        its two sides, so that active users and popular items do not outweigh the others. 0.25 with a cost_power of 0.2
        and 64 components gains .007 in Recall@20 on gowalla and .015 on ml100k (2026-11); with 256 it loses .004 on
        gowalla
    cost_power : the cost b_j of an unobserved pair is also multiplied by d_j^power: a missing pair with a popular right
        is stronger evidence than one with a rare right
    labels : "ones", or "weights" to fit the weights themselves as Y_ij
    left_costs, right_costs : a (m,) and b (n,), such as inverse propensities; default 1, and 0 for entities with
        features but without a pair, whose missing pairs are no evidence
    prior : (Pt (m, k'), Qt (n, k')) or a number that imputes the unobserved labels; default 0

    Attributes
    ----------
    omega, pair_loss, weighting, labels: as given; `TwoTower.loss_` holds them as they were chosen.

    References
    ----------
    Yuan et al. (2021), eqs. 5-8 (ESL), arXiv:2010.13511.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(*np.random.default_rng(0).integers(0, 40, (2, 400)))
    >>> model = nk.TwoTower(4, loss=nk.embedding.AllPairs(omega=0.1), regularization=0.1).fit(pairs)
    >>> model.loss_.omega
    0.1
    """

    omega: float | str = "auto"
    pair_loss: str = "squared"
    weighting: str = "log"
    weight_power: float = 0.0
    cost_power: float = 0.0
    labels: str = "ones"
    left_costs: ArrayLike | None = None
    right_costs: ArrayLike | None = None
    prior: Prior = None

    name: ClassVar[str] = "all-pairs"

    def importance(
        self, weights: np.ndarray, degrees: tuple[np.ndarray, np.ndarray], fitted: Interactions
    ) -> np.ndarray:
        """w_ij (nnz,) of pairs with these weights and numbers of pairs d_i, d_j, in units of the mean `fitted` pair."""
        weighting = "none" if self.labels == "weights" else self.weighting
        mean = _importance(fitted.weights, weighting).mean()
        if mean == 0:
            raise ValueError("every weight is 0; pass weighting='none' or weights that are greater than 0")
        found = _importance(weights, weighting) / mean
        if not check_real(self.weight_power, "weight_power"):
            return found
        left, right = np.diff(fitted.indptr), np.diff(fitted.columns.indptr)
        own = _importance(fitted.weights, weighting) / mean * _damped(
            left[fitted.rows], right[fitted.indices], self.weight_power
        )  # fmt: skip
        return found * _damped(*degrees, self.weight_power) / own.mean()

    def objective(self, interactions: Interactions) -> "Objective":
        """The objective of these pairs with the defaults filled in; ValueError for a parameter that does not fit."""
        check_choice(self.weighting, "weighting", ("log", "linear", "none"))
        check_choice(self.labels, "labels", ("ones", "weights"))
        m, n = interactions.shape
        left_counts, right_counts = np.diff(interactions.indptr), np.diff(interactions.columns.indptr)
        degrees = left_counts[interactions.rows], right_counts[interactions.indices]
        weights = self.importance(interactions.weights, degrees, interactions)
        a = _costs(self.left_costs, "left_costs", left_counts, interactions.left_features is not None)
        b = _costs(self.right_costs, "right_costs", right_counts, interactions.right_features is not None)
        if check_real(self.cost_power, "cost_power"):
            b = b * popularity_costs(right_counts, right_counts, self.cost_power)
        omega, mass = self.omega, a.sum() * b.sum()
        if omega == "auto":
            omega = DEFAULTS.unobserved_mass * weights.sum() / mass if mass else 0.0
        omega = check_real(omega, "omega", low=0)
        observed_left = np.bincount(interactions.rows, weights, minlength=m)
        observed_right = np.bincount(interactions.indices, weights, minlength=n)
        ridge = (observed_left + omega * a * b.sum(), observed_right + omega * b * a.sum())
        ridge = tuple(np.where(r > 0, r, max(r.mean(), 1e-12)) for r in ridge)  # keeps rows without any weight at 0
        Y = interactions.weights.astype(np.float64) if self.labels == "weights" else 1.0
        return Objective(interactions, self.pair_loss, omega, Y, weights, a, b, self.prior, ridge)  # pyright: ignore[reportArgumentType]


def popularity_costs(degrees: np.ndarray, fitted: np.ndarray, power: float) -> np.ndarray:
    """d_j^power of items with these numbers of pairs, over the mean of the `fitted` ones."""
    return np.maximum(degrees, 1.0) ** power / (np.maximum(fitted, 1.0) ** power).mean()


def growth(pairs: Interactions) -> Tensor:
    """(n,) the logarithm of each right's pairs in the latest tenth over those expected there from its pairs at all
    times; 0 without times."""
    n = pairs.shape[1]
    if pairs.timestamps is None:
        return torch.zeros(n)
    late = pairs.timestamps >= np.quantile(pairs.timestamps, 0.9)
    counts, of_late = (np.bincount(pairs.indices, weights, n) for weights in (None, late / late.mean()))
    return torch.from_numpy(np.log1p(of_late) - np.log1p(counts))


def initial_tables(interactions: Interactions, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Small random tables (m, k) and (n, k), of standard deviation 0.1 / sqrt(k); rows without a pair are 0."""
    tables = []
    for counts in (np.diff(interactions.indptr), np.diff(interactions.columns.indptr)):
        table = torch.randn(len(counts), k, generator=generator) * (DEFAULTS.start / k**0.5)
        table[torch.from_numpy(counts == 0)] = 0
        tables.append(table)
    return tables[0], tables[1]


def _damped(left: np.ndarray, right: np.ndarray, power: float) -> np.ndarray:
    """(d_i d_j)^-power of pairs."""
    return (np.maximum(left, 1.0) * np.maximum(right, 1.0)) ** -power


def _importance(weights: np.ndarray, weighting: str) -> np.ndarray:
    """The record's weights as importance, of any mean."""
    if weighting == "none":
        return np.ones(len(weights))
    return np.log1p(weights.astype(np.float64)) if weighting == "log" else weights.astype(np.float64)


def _costs(costs: ArrayLike | None, name: str, counts: np.ndarray, has_features: bool) -> np.ndarray:
    if costs is not None:
        costs = np.asarray(costs, dtype=np.float64)
        if costs.shape != counts.shape or not (np.isfinite(costs) & (costs >= 0)).all():
            raise ValueError(f"{name} has shape {costs.shape}; it must be ({len(counts)},) finite numbers, at least 0")
        return costs
    return ((counts > 0) | (not has_features)).astype(np.float64)
