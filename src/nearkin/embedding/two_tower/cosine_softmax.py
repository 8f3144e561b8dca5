"""`loss=CosineSoftmax(...)`: softmax over all rights on cosines, from a table of pairs."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from nearkin._check import check_real
from nearkin.embedding.all_pairs.softmax import SoftmaxLoss
from nearkin.embedding.baselines import sparse_ease
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.records import Interactions

LOWEST = 0.03  # exp(2 / temperature) must stay within float32
IMPUTED = 50  # rights a left


@dataclass(eq=False, repr=False, kw_only=True)
class CosineSoftmax(BaseEstimator):
    """`TwoTower(loss=CosineSoftmax(...))`: cross-entropy of each pair's right among all rights, on rows of length 1.

    Sharp where the squared loss is not: a score far below the best costs nothing, so few dimensions rank many rights.
    It is trained by `SphereSweeps`, on id tables; see `nearkin.embedding.all_pairs.softmax`.

    With a `bias_power` a score is p_i.q_j / temperature + bias_power * log d_j, d_j the number of pairs of the right:
    cosines then need not say how popular it is. The bias is one of the n_components: the last number of a row is 1 on
    the left and temperature times the bias on the right, and the n_components - 1 before it have length 1.

    Parameters
    ----------
    temperature : what cosines are divided by, at least 0.03; 0.12 suits long sparse tables, 0.3 small ones with
        long histories; choose it on validation pairs
    cost_power : a right counts d_j^power in the sums, d_j its number of pairs, so that popular rights are recommended
        less; 0 counts all alike
    bias_power : how far popular rights lead where cosines are equal; 0 for rows of length 1 and no bias
    walk : share of a left's target that lies where two more steps on the graph of pairs lead, from 0 to 1; see
        `nearkin.embedding.SoftmaxLoss`
    imputed : share of a left's target, from 0 to 1, that lies on the 50 rights that `nk.embedding.sparse_ease` ranks
        first for it, the r-th in proportion to 1 / r; 0.3 with a temperature of 0.1 suits long sparse tables. Costs one
        regression a right
    ridge : of those regressions
    weighting : the record's weights as importance of a pair, "log" | "linear" | "none"
    """

    temperature: float = 0.15
    cost_power: float = 0.0
    bias_power: float = 0.5
    walk: float = 0.0
    imputed: float = 0.0
    ridge: float = 30.0
    weighting: str = "log"

    name: ClassVar[str] = "cosine-softmax"

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and costs, as the all-pairs loss has them."""
        check_real(self.temperature, "temperature", low=LOWEST)
        check_real(self.bias_power, "bias_power", low=-2, high=2)
        return AllPairs(weighting=self.weighting, cost_power=self.cost_power).objective(interactions)

    def from_objective(self, objective: Objective) -> SoftmaxLoss:
        """The loss of these pairs; rights without a pair are left out of the sums."""
        pairs = objective.interactions
        degrees = np.diff(pairs.columns.indptr)
        labels = sp.csr_matrix((objective.weights, pairs.indices, pairs.indptr), pairs.shape)
        if check_real(self.imputed, "imputed", low=0, high=1):
            labels = with_imputed(labels, sparse_ease(pairs, IMPUTED, ridge=self.ridge)[1], self.imputed)
        return SoftmaxLoss(
            labels, temperature=self.temperature, weights=labels.data, b=np.where(degrees > 0, objective.b, 0.0),
            bias=self.bias(degrees, degrees), walk=self.walk,
        )  # fmt: skip

    def bias(self, degrees: np.ndarray, fitted: np.ndarray) -> np.ndarray:
        """c_j of rights with these numbers of pairs, `fitted` those of the fit, over which the mean is 0."""
        known = np.log(np.maximum(fitted, 1))
        return self.bias_power * (np.log(np.maximum(degrees, 1)) - known.mean())

    def cost(self, degrees: np.ndarray, fitted: np.ndarray) -> np.ndarray:
        """b_j of rights with these numbers of pairs, `fitted` those of the fit, over which the mean is 1."""
        known = np.maximum(fitted, 1.0) ** self.cost_power
        return np.maximum(degrees, 1.0) ** self.cost_power / known.mean()


def with_imputed(labels: sp.csr_matrix, lists: np.ndarray, share: float) -> sp.csr_matrix:
    """(m, n) labels whose rows keep their sums, a share of each on its list (d,) of columns, best first, -1 for none.

    The r-th of a list gets its part in proportion to 1 / r; a row without a list stays as it is.
    """
    weights = np.where(lists >= 0, 1 / np.arange(1.0, lists.shape[1] + 1), 0.0)
    listed = np.asarray(weights.sum(axis=1) > 0, dtype=float)
    parts = share * np.asarray(labels.sum(1)) * weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)
    rows, places = np.nonzero(parts)
    imputed = sp.csr_matrix((parts[rows, places], (rows, lists[rows, places])), labels.shape)
    found = sp.csr_matrix(sp.diags(1 - share * listed) @ labels + imputed)
    found.sort_indices()
    return found
