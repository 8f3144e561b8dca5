"""The loop that ITQ, OnE and OgE share: codes for fixed columns, then columns for fixed codes (SCQ, section 2.2)."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from nearkin.contracts import Callback


class ColumnStep(Protocol):
    """How a method turns the sign moment W = X^T B / n (m, L) into new columns V (m, L)."""

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the method's new columns for fixed codes; they may fit the codes worse than V does."""
        ...

    def descend(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return columns that fit the codes at least as well as V."""
        ...

    def loss(self, W: np.ndarray, V: np.ndarray) -> float:
        """Return the value of the method's objective for the codes behind W."""
        ...


def learn_columns(
    moment: Callable[[np.ndarray], np.ndarray],
    step: ColumnStep,
    V: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns V (m, L) and the loss after each iteration, which never increases.

    Stops when |change| of the loss is at most `tol` of it. The paper prints the test without the absolute value
    (Algorithm 1, line 17; Algorithm 2, line 5), which a rise of any size would pass. And rises happen: a column is the
    best one given the columns *before* it, not those after. Then `descend` takes the step instead, which cannot rise;
    a rise within the tolerance ends the loop at the columns before it.
    """
    history: list[float] = []
    for iteration in range(1, max_iter + 1):
        W = moment(V)
        candidate = step.solve(W, V)
        value = step.loss(W, candidate)
        rise = value - history[-1] if history else 0.0
        if rise > tol * abs(value):
            candidate = step.descend(W, V)
            value = step.loss(W, candidate)
            rise = value - history[-1]
        if rise > 0:  # within the tolerance, or the rounding of float32 products
            break
        V = candidate
        history.append(value)
        if callback is not None:
            callback(iteration, {"objective": value, "total": max_iter})
        if len(history) > 1 and history[-2] - value <= tol * abs(value):
            break
    return V, np.array(history)
