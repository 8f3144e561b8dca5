"""Two solvers one after the other: a quick one to get near, a sure one to arrive."""

from dataclasses import dataclass, replace

import numpy as np

from nearkin import _check
from nearkin.contracts import Callback, Run
from nearkin.solvers.finite_sum import FiniteSum, Solution, Solver


@dataclass(frozen=True)
class Relay:
    """`first` for `n_first` epochs, then `second` from where it stopped; epochs are counted on."""

    first: Solver
    second: Solver
    n_first: int = 8

    def __post_init__(self) -> None:
        _check.check_integer(self.n_first, "n_first", low=1)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """See `Solver`; with `run.validate` each part returns its best point."""
        n_first = min(self.n_first, run.max_iter)
        head = self.first.minimize(problem, x, replace(run, max_iter=n_first, tol=0.0, callback=_counted(run, 0)))
        if head.status == "diverged" or run.max_iter == n_first:
            return head
        rest = replace(run, max_iter=run.max_iter - n_first, callback=_counted(run, n_first))
        tail = self.second.minimize(problem, head.x, rest)
        later = [{**record, "step": n_first + record["step"]} for record in tail.history]
        return replace(
            tail, n_epochs=n_first + tail.n_epochs, history=head.history + later, steps=head.steps + tail.steps
        )


def _counted(run: Run, done: int) -> Callback | None:
    """The run's callback with its steps counted on from `done` and the whole run's total."""
    callback = run.callback
    if callback is None:
        return None
    return lambda step, record: callback(done + step, {**record, "total": run.max_iter})
