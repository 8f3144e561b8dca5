"""A choice among several pairs as one event: "the odd one of three", or "the nearest of k".

A record says it by several comparisons with one number in `Comparisons.events`, which share the near pair {a, b}. With
the similarity s of the loss' model (exp(-d^2) for STE, 1 / (mu + d^2) for the crowd kernel, (alpha + d^2)^(-(alpha + 1)
/ 2) for t-STE) the answer has the probability (Luce 1959)

    p = s_ab / (s_ab + sum_r s_r),   -log p = log(1 + sum_r (exp(f_r) - 1)),

where s_r is the similarity of the far pair of comparison r and f_r = log(1 + s_r / s_ab) is its loss taken alone. So
the slopes of comparison r are those of `losses.loss_slopes` times its share exp(f_r + log p), and one comparison alone
has the share 1. Two comparisons taken as independent would count the same answer twice where both are close.
"""

from dataclasses import dataclass

import numpy as np

from nearkin.embedding.ordinal import kernels
from nearkin.embedding.ordinal.compiling import kernel
from nearkin.embedding.ordinal.losses import OrdinalLoss, loss_value
from nearkin.embedding.ordinal.objective import OrdinalObjective, check_terms


@kernel
def choice_pass(x, q, starts, code, parameter, values, shares):
    """values[e] = -log p of event e, rows starts[e] to starts[e + 1] of q; shares[t] = exp(f_t + log p), float64."""
    for e in range(len(starts) - 1):
        largest = 0.0
        for t in range(starts[e], starts[e + 1]):
            i, j, l, k = kernels.objects(q, t)  # noqa: E741
            a, b = kernels.squared_distances(x, i, j, l, k)
            shares[t] = loss_value(code, a, b, parameter)
            largest = max(largest, shares[t])
        small = largest < 30.0  # else e^f may overflow, and 1 is lost beside it
        odds = 0.0
        for t in range(starts[e], starts[e + 1]):
            odds += np.expm1(shares[t]) if small else np.exp(shares[t] - largest) - np.exp(-largest)
        values[e] = np.log1p(odds) if small else largest + np.log(odds + np.exp(-largest))
        for t in range(starts[e], starts[e + 1]):
            shares[t] = np.exp(shares[t] - values[e])


@dataclass
class ChoiceObjective:
    """f(x) = (n / W) sum_e w_e (-log p_e) over events e, W = sum_e w_e: `OrdinalObjective` where each is one choice.

    indices (m, 3) or (m, 4) and events (m,), the number of each row's event; weights (m,) are the events', the mean
    over their rows. x (n, c, 4) float64. Raises ValueError for terms or points that do not fit, and for a loss without
    a model.
    """

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    events: np.ndarray
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.loss.has_model:
            raise ValueError(f"loss={self.loss.name!r} has no probability of a choice; use 'ste', 't-ste' or 'ckl'")
        self.indices, weights = check_terms(self.indices, self.n_objects, self.weights)
        order = np.argsort(self.events, kind="stable")
        numbers = self.events[order]
        self.indices = self.indices[order]
        self._starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]]).astype(np.int64)
        size = np.diff(self._starts)
        sums = np.add.reduceat(weights[order], self._starts[:-1]) if len(weights) else size
        self._weights = sums / size * len(size) / (sums / size).sum()
        self._by_row = np.repeat(self._weights, size)
        self._plain = OrdinalObjective(self.indices, self.n_objects, self.loss, dtype=np.float64)

    @property
    def n_terms(self) -> int:
        return len(self._weights)

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        return float(self.event_values(x)[0] @ self._weights) * self.n_objects / self.n_terms

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x."""
        weights = self.event_values(x)[1] * self._by_row
        gradient = np.zeros_like(x)
        loss = self.loss
        kernels.sum_gradients(
            x, self.indices, weights, loss.code, loss.parameter, loss.halves, gradient, np.empty((0, 2))
        )
        return gradient * (self.n_objects / self.n_terms)

    def event_values(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """-log p of the events (e,) in the order of their numbers, and the shares (m,) of the rows in that order."""
        self._plain.check_points(x)
        values, shares = np.empty(self.n_terms), np.empty(len(self.indices))
        choice_pass(x, self.indices, self._starts, self.loss.code, self.loss.parameter, values, shares)
        return values, shares
