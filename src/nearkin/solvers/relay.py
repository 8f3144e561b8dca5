"""Two solvers one after the other: a quick one to get near, a sure one to arrive."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearkin import _check
from nearkin.solvers.finite_sum import Callback, FiniteSum, Solution


@dataclass(frozen=True)
class Relay:
    """`first` for `n_first` epochs, then `second` from where it stopped; epochs are counted on."""

    first: Any
    second: Any
    n_first: int = 8

    def __post_init__(self) -> None:
        _check.check_integer(self.n_first, "n_first", low=1)

    def minimize(
        self,
        problem: FiniteSum,
        x: np.ndarray,
        *,
        max_epochs: int = 100,
        tol: float = 1e-4,
        callback: Callback | None = None,
        validate: Callable[[np.ndarray], float] | None = None,
    ) -> Solution:
        """Minimize `problem` from x, which is not changed; with `validate` each part returns its best point."""
        n_first = min(self.n_first, max_epochs)

        def report(step: int, record: dict[str, Any]) -> None:
            if callback is not None:
                callback(step, {**record, "total": max_epochs})

        def report_on(step: int, record: dict[str, Any]) -> None:
            if step > 0:  # the second start is the first end, which was reported
                report(n_first + step, record)

        watched = callback is not None
        head = self.first.minimize(
            problem, x, max_epochs=n_first, tol=0.0, callback=report if watched else None, validate=validate
        )
        if head.status == "diverged" or max_epochs == n_first:
            return head
        tail = self.second.minimize(
            problem,
            head.x,
            max_epochs=max_epochs - n_first,
            tol=tol,
            callback=report_on if watched else None,
            validate=validate,
        )
        later = [{**entry, "epoch": n_first + entry["epoch"]} for entry in tail.history[1:]]
        return replace(
            tail, n_epochs=n_first + tail.n_epochs, history=head.history + later, steps=head.steps + tail.steps
        )
