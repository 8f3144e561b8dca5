"""What the solvers minimize: an objective, or a sum f(x) = (1/m) sum_q F_q(x) of many terms, and what they return.

A stochastic solver walks over the terms by a `Rule`. The rules are records, so a sum has one method for all of them,
which may run gradient and update in one compiled loop.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from nearkin._types import Record
from nearkin.contracts import Run


class Objective(Protocol):
    """A function of x with its gradient."""

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        ...

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """A point at which the full gradient is known; `memo` is whatever the sum wants back when it walks."""

    x: np.ndarray
    gradient: np.ndarray
    memo: Any = None


@dataclass(frozen=True)
class Plain:
    """Per term: x -= step grad F_q(x). One walk is a pass over all terms."""

    step: float


@dataclass(frozen=True)
class RowScaled:
    """Per term and row r: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r]). One walk is a pass."""

    step: float
    accumulator: np.ndarray


@dataclass(frozen=True)
class VarianceReduced:
    """Per batch I: x -= step [sum_{q in I} (grad F_q(x) - grad F_q(snapshot)) + |I| grad f(snapshot)], n_terms in all.

    Walks go over the terms cyclically, each from where the last one stopped.
    """

    step: float
    snapshot: Snapshot
    batch_size: int
    n_terms: int


Rule: TypeAlias = Plain | RowScaled | VarianceReduced


class FiniteSum(Objective, Protocol):
    """A sum of `n_terms` = m terms."""

    @property
    def n_terms(self) -> int: ...

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x with its full gradient."""
        ...

    def largest_step(self, batch_size: int) -> float:
        """The longest step at which a batch of terms does not overshoot by itself; infinity if that is not known."""
        ...

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        """Change x in place, term after term, as the rule says."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped and why.

    `status` is "converged" (the objective no longer falls), "max_epochs", or "diverged" (it became infinite or NaN, or
    rose a thousandfold). `history` holds the records that a callback is told, each with its "step"; without a callback
    those of every fifth epoch. `steps` is the step size of each epoch.
    """

    x: np.ndarray
    value: float
    n_epochs: int
    status: str
    history: list[Record] = field(default_factory=list[Record])
    steps: list[float] = field(default_factory=list[float])


class Solver(Protocol):
    """What all solvers have in common."""

    def minimize(self, problem: Any, x: np.ndarray, run: Run, /) -> Solution:
        """Minimize `problem` from x, which is not changed.

        A step of the run is an epoch. The callback's record has "objective", "total", "x", and where there are such
        "step_size" and "validation".
        """
        ...
