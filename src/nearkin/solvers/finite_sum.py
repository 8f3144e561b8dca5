"""What the stochastic solvers minimize: f(x) = (1/m) sum_q F_q(x), given by its passes, and what they return."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

Callback = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Snapshot:
    """A point at which the full gradient is known; `memo` is whatever the sum wants back in its `svrg_pass`."""

    x: np.ndarray
    gradient: np.ndarray
    memo: Any = None


class FiniteSum(Protocol):
    """A sum of `n_terms` = m terms. Passes change x in place and walk the terms cyclically, from where they stopped."""

    @property
    def n_terms(self) -> int: ...

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        ...

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x."""
        ...

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x with its full gradient."""
        ...

    def largest_step(self, batch_size: int) -> float:
        """The longest step at which a batch of terms does not overshoot by itself; infinity if that is not known."""
        ...

    def svrg_pass(self, x: np.ndarray, snapshot: Snapshot, *, step: float, batch_size: int, n_terms: int) -> None:
        """Per batch I: x -= step [sum_{q in I} (grad F_q(x) - grad F_q(snapshot)) + |I| grad f(snapshot)]."""
        ...

    def sgd_pass(self, x: np.ndarray, *, step: float) -> None:
        """Per term: x -= step grad F_q(x)."""
        ...

    def adagrad_pass(self, x: np.ndarray, accumulator: np.ndarray, *, step: float) -> None:
        """Per term and row r: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r])."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped and why.

    `status` is "converged" (the objective no longer falls), "max_epochs", or "diverged" (it became infinite or NaN, or
    rose a thousandfold); `history` has one record per epoch, `steps` the step size of each.
    """

    x: np.ndarray
    value: float
    n_epochs: int
    status: str
    history: list[dict[str, Any]] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
