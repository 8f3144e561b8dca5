"""The one loop that every solver runs in: history, held-out metric, early stopping, checkpoint and resume."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin._check import check_integer, check_real
from nearkin._distributed import ALONE, Group
from nearkin._types import Record
from nearkin.contracts import Callback, ignore
from nearkin.embedding.two_tower.checkpoint import Best, Checkpoint

Evaluate = Callable[[Tensor, Tensor], float]


class TrainingError(ValueError):
    """Training left the finite numbers."""


class AbstractSolver(ABC):
    """What the loop knows of a solver. A step is its natural unit: a sweep, a full-batch step, an epoch."""

    @abstractmethod
    def step(self) -> float:
        """Do one step; return the objective as the step saw it."""

    @abstractmethod
    def embeddings(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) now, without a graph."""

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P and Q as they are searched: through the index, if there is one."""
        return self.embeddings()

    def exact(self) -> tuple[Tensor, Tensor] | None:
        """P and Q as they would be without an index, where the solver learns them too."""
        return None

    def notes(self) -> Record:
        """What a record says beside the objective."""
        return {}

    def ready(self) -> bool:
        """Whether a step may be the best one; not while an index still lets rows pass as they are."""
        return True

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by name."""

    def settled(self) -> Collection[str]:
        """Names in `state` of what no later step changes, not even in place: it need not be copied."""
        return ()

    @abstractmethod
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""


@dataclass(frozen=True)
class Limits:
    """When training ends: after `max_iter` steps; no step begins after `max_seconds` of them, or once `patience` steps
    brought no new best held-out metric."""

    max_iter: int
    max_seconds: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        check_integer(self.max_iter, "max_iter", low=1)
        if self.max_seconds is not None:
            check_real(self.max_seconds, "max_seconds", above=0)
        if self.patience is not None:
            check_integer(self.patience, "patience", low=1)

    def reached(self, history: list[Record], best: Best | None) -> bool:
        """Whether no further step begins."""
        done = len(history)
        tired = self.patience is not None and best is not None and done - best.step >= self.patience
        late = self.max_seconds is not None and done > 0 and history[-1]["seconds"] >= self.max_seconds
        return tired or late or done >= self.max_iter


def train(
    solver: AbstractSolver,
    limits: Limits,
    *,
    evaluate: Evaluate | None = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
    group: Group = ALONE,
) -> list[Record]:
    """Run `solver` and leave it at its best evaluated step; return one record a step.

    A record has `step` (from 1), `total`, `seconds` (evaluation not counted), `objective` and, with `evaluate`,
    `metric`, of which larger is better. `checkpoint` is written after every step; if it is there already, training goes
    on from it as if it had never stopped. Raises TrainingError if the objective is no longer finite.
    """
    history: list[Record] = []
    best: Best | None = None
    if checkpoint is not None and group.exchange(checkpoint.exists())[0]:
        history, best, state = checkpoint.read()
        solver.load_state(state)
    while not limits.reached(history, best):
        record = _timed_step(solver, history, limits.max_iter, group)
        if evaluate is not None:
            record["metric"] = evaluate(*solver.ranked())
            if solver.ready() and (best is None or record["metric"] > best.metric):
                best = Best(record["metric"], record["step"], _copied(solver.state(), solver.settled(), best))
        history.append(record)
        if checkpoint is not None and group.rank == 0:
            checkpoint.write(history, best, solver.state())
        (callback or ignore)(record["step"], record)
    if best is not None:
        solver.load_state(best.state)
    return history


def _copied(state: dict[str, Tensor], settled: Collection[str], before: Best | None) -> dict[str, Tensor]:
    """A copy of `state` but for what is settled; what has not changed is the copy made `before`, which is used up."""
    old, copies = {} if before is None else before.state, {}
    for name, value in state.items():
        kept = value if name in settled else old.pop(name, None)
        if kept is None or not torch.equal(kept, value):
            kept = None  # its memory is free before the next copy is made
            kept = value.clone()
        copies[name] = kept
    return copies


def _timed_step(solver: AbstractSolver, history: list[Record], total: int, group: Group) -> Record:
    """One step and its record."""
    number, start = len(history) + 1, time.perf_counter()
    objective = solver.step()
    took = group.exchange(time.perf_counter() - start)[0]  # by one clock, as it decides when to stop
    seconds = (history[-1]["seconds"] if history else 0.0) + took
    if objective != objective or abs(objective) == float("inf"):
        raise TrainingError(
            f"the objective became {objective} at step {number}; lower learning_rate or raise regularization"
        )
    return {"step": number, "total": total, "seconds": seconds, "objective": objective} | solver.notes()
