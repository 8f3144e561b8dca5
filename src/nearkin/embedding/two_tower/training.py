"""The one loop that every solver runs in: history, held-out metric, early stopping, checkpoint and resume."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearkin._distributed import current
from nearkin._storage import read_arrays, read_config, saving_folder, write_arrays

Callback = Callable[[int, dict[str, Any]], Any]
_OWN = ("selection", "steps")  # what the optimizers on the manifold keep beside torch's state


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

    def notes(self) -> dict[str, Any]:
        """What a record says beside the value."""
        return {}

    def ready(self) -> bool:
        """Whether a step may be the best one; not while an index still lets rows pass as they are."""
        return True

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by name."""

    @abstractmethod
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""


def train(
    solver: AbstractSolver,
    max_steps: int,
    *,
    evaluate: Callable[[Tensor, Tensor], float] | None = None,
    patience: int | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike | None = None,
    max_seconds: float | None = None,
) -> list[dict[str, Any]]:
    """Run `solver` and leave it at its best evaluated step; return one record a step.

    A record has `step`, `total`, `seconds` (evaluation not counted), `value` and, with `evaluate`, `metric`, of which
    larger is better; after `patience` steps without a new best the loop ends. `checkpoint` is a folder that is written
    after every step; if it is there already, training goes on from it as if it had never stopped. Raises TrainingError
    if the objective is no longer finite.
    """
    best, history, group = None, [], current()
    if checkpoint is not None and group.exchange(Path(checkpoint).exists())[0]:
        history, best = _resume(solver, checkpoint)
    for step in range(len(history), max_steps):
        if patience is not None and best is not None and step - 1 - best[1] >= patience:
            break
        seconds = history[-1]["seconds"] if history else 0.0
        if max_seconds is not None and seconds >= max_seconds:
            break
        start = time.perf_counter()
        value = solver.step()
        seconds += group.exchange(time.perf_counter() - start)[0]  # by one clock, as it decides when to stop
        record: dict[str, Any] = {"step": step, "total": max_steps, "seconds": seconds}
        record["value"] = value
        record |= solver.notes()
        if value != value or abs(value) == float("inf"):
            raise TrainingError(
                f"the objective became {value} at step {step}; lower learning_rate or raise regularization"
            )
        if evaluate is not None:
            record["metric"] = evaluate(*solver.ranked())
            if solver.ready() and (best is None or record["metric"] > best[0]):
                best = (record["metric"], step, {name: t.clone() for name, t in solver.state().items()})
        history.append(record)
        if checkpoint is not None and group.rank == 0:
            _save(solver, checkpoint, history, best)
        if callback is not None:
            callback(step, record)
    if best is not None:
        solver.load_state(best[2])
    return history


def _save(solver: AbstractSolver, folder: str | PathLike, history: list, best: Any) -> None:
    config = {"history": history, "best": None if best is None else best[:2]}
    with saving_folder(folder, "two-tower-checkpoint", config) as fresh:
        write_arrays(fresh / "now.safetensors", {name: t.numpy() for name, t in solver.state().items()})
        if best is not None:
            write_arrays(fresh / "best.safetensors", {name: t.numpy() for name, t in best[2].items()})


def _resume(solver: AbstractSolver, folder: str | PathLike) -> tuple[list, Any]:
    config = read_config(folder, "two-tower-checkpoint")
    solver.load_state(_tensors(Path(folder) / "now.safetensors"))
    best = config["best"]
    return config["history"], best and (*best, _tensors(Path(folder) / "best.safetensors"))


def _tensors(file: Path) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in read_arrays(file).items()}


def pack_optimizer(optimizer: torch.optim.Optimizer, head: str) -> dict[str, Tensor]:
    """An optimizer's state by name, whole numbers as tensors under `name#`; options are not state."""
    saved = optimizer.state_dict()
    packed = {
        f"{head}{number}.{name}{'#' * isinstance(value, int)}": torch.as_tensor(value)
        for number, entries in saved["state"].items()
        for name, value in entries.items()
        if isinstance(value, Tensor | int)
    }
    own = {name: torch.as_tensor(saved[name]) for name in _OWN if name in saved}
    return packed | {f"{head}{name}#": value for name, value in own.items()}


def unpack_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Tensor], head: str) -> None:
    """Put back what `pack_optimizer` took."""
    entries: dict[int, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for key, value in state.items():
        if not key.startswith(head):
            continue
        name = key[len(head) :].removesuffix("#")
        kept = int(value) if key.endswith("#") and value.numel() == 1 else value.clone()
        if name in _OWN:
            own[name] = kept
        else:
            number, name = name.split(".", 1)
            entries.setdefault(int(number), {})[name] = kept
    optimizer.load_state_dict({**optimizer.state_dict(), "state": entries, **own})


def pack_optimizers(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """The state of all of them: Adam's first, then the rotation's."""
    return {
        name: value
        for number, optimizer in enumerate(optimizers)
        for name, value in pack_optimizer(optimizer, f"optimizer{number or ''}.").items()
    }


def unpack_optimizers(optimizers: list[torch.optim.Optimizer], state: dict[str, Tensor]) -> None:
    """Put back what `pack_optimizers` took."""
    for number, optimizer in enumerate(optimizers):
        unpack_optimizer(optimizer, state, f"optimizer{number or ''}.")
