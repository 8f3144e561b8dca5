"""The training loop of all solvers: history, held-out metric, early stopping, checkpoint and resume."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._check import check_choice, check_integer, check_real, draw_seed
from nearkin._distributed import ALONE, Group
from nearkin._fields import counted
from nearkin._storage import digest, read_arrays, read_config, saving_folder, write_arrays
from nearkin._types import Record, Seed
from nearkin.contracts import Callback, PhasedIndex, TrainableIndex
from nearkin.embedding.two_tower.towers import TowerPair
from nearkin.records import Interactions

Evaluate = Callable[[Tensor, Tensor], float]
Part: TypeAlias = "nn.Module | TrainableIndex | torch.optim.Optimizer | torch.Generator | AbstractSolver"
KIND = "two-tower-checkpoint"
STARTS = ("auto", "als", "random")
_LIMITS: dict[str, tuple[Callable[..., object], dict[str, float]]] = {  # of the settings of all solvers
    **dict.fromkeys(
        ("max_iter", "patience", "cg_steps", "block_size", "grid", "n_sampled"), (check_integer, {"low": 1})
    ),
    "batch_size": (check_integer, {"low": 2}),
    **dict.fromkeys(("max_seconds", "learning_rate", "damping"), (check_real, {"above": 0})),
    "momentum": (check_real, {"low": 0, "high": 0.99}),
}
_OPTIONAL = ("patience", "n_sampled")  # settings that may be None, as those whose default it is


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSolver(BaseEstimator, ABC):
    """Settings of a solver, and after `begin` the state of its run. A step is a sweep, a full-batch step or an epoch.

    max_iter: maximum number of steps; max_seconds: no step begins after this time; patience: steps without a new best
    held-out NDCG@100 before the fit stops.
    """

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int = 10

    name: ClassVar[str]
    start: ClassVar[str] = "random"  # where id tables begin: "als", "random", "auto"; a field of solvers that choose
    tables_only: ClassVar[bool] = False  # trains default towers only
    through_index: ClassVar[bool] = True  # can train through an index
    tensors: ClassVar[Mapping[str, str]] = {}  # attributes that are tensors of `state`, by their names in it

    def check(self, all_pairs: bool) -> None:
        """ValueError or TypeError for bad settings; `all_pairs` is False under a sampled loss. Sets `max_iter`."""
        check_choice(self.start, "start", STARTS)
        for name, value in self.get_params().items():
            if name in _LIMITS and not (value is None and (name in _OPTIONAL or getattr(type(self), name) is None)):
                check, bounds = _LIMITS[name]
                check(value, name, **bounds)

    @abstractmethod
    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        """Set the state for training `pair` on its objective; `loss` is the `TwoTower`'s."""

    @abstractmethod
    def step(self) -> float:
        """Do one step; return the objective as the step computed it, divided by the weight of the observed pairs."""

    @abstractmethod
    def embeddings(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) now, without a graph."""

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P and Q for the held-out metric: through the index, if there is one."""
        return self.embeddings()

    def exact(self) -> tuple[Tensor, Tensor] | None:
        """P and Q without an index, if the solver trains them too."""
        return None

    def notes(self) -> Record:
        """Further entries of a step's record."""
        return {}

    def ready(self) -> bool:
        """Whether a step may be the best one; not before an index quantizes."""
        return True

    def parts(self) -> dict[str, Part]:
        """The modules, optimizers, generators and solvers that the next step depends on, by name."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by name."""
        state = {name: getattr(self, attribute) for name, attribute in self.tensors.items()}
        for name, part in self.parts().items():
            if isinstance(part, torch.Generator):
                own = {"": part.get_state()}
            elif isinstance(part, AbstractSolver):
                own = part.state()
            else:
                own = _packed(part) if isinstance(part, torch.optim.Optimizer) else part.state_dict()
            state |= {f"{name}.{key}": value for key, value in own.items()}
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""
        for name, attribute in self.tensors.items():
            setattr(self, attribute, state[name].clone())
        for name, part in self.parts().items():
            own = {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
            if isinstance(part, torch.Generator):
                part.set_state(own[""])
            elif isinstance(part, AbstractSolver):
                part.load_state(own)
            elif isinstance(part, torch.optim.Optimizer):
                _unpack(part, own)
            else:
                part.load_state_dict(own)


class AbstractTowerSolver(AbstractSolver):
    """A solver whose towers, and index if there is one, are `pair`; its state is theirs and the optimizers'."""

    pair: TowerPair
    optimizers: Sequence[torch.optim.Optimizer] = ()

    def parts(self) -> dict[str, Part]:
        pair, parts = self.pair, dict[str, Part]()
        parts |= {"left": pair.left.tower, "right": pair.right.tower, "generator": pair.generator}
        parts |= {f"optimizer{number}": optimizer for number, optimizer in enumerate(self.optimizers)}
        return parts if pair.index is None else parts | {"index": pair.index}

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.pair.embeddings()

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k), Q through the index without training it."""
        P, Q = self.pair.embeddings()
        index = self.pair.index
        if index is None:
            return P, Q
        mode = index.training
        with torch.no_grad():
            Q = index.eval()(Q)[0]
        index.train(mode)
        return P, Q

    def notes(self) -> Record:
        """The last step's distortion, if there is an index."""
        return {} if self.pair.index is None else {"distortion": self.pair.distortion}

    def ready(self) -> bool:
        """Whether the index quantizes yet; one without phases always does."""
        return not isinstance(self.pair.index, PhasedIndex) or self.pair.index.phase == "train"


class Best(NamedTuple):
    """The best step so far."""

    metric: float
    step: int
    state: dict[str, Tensor]


def train(
    solver: AbstractSolver,
    *,
    evaluate: Evaluate | None = None,
    callback: Callback | None = None,
    checkpoint: "Checkpoint | None" = None,
    group: Group = ALONE,
    max_iter: int | None = None,
) -> list[Record]:
    """Run `solver` and leave it at its best evaluated step; return one record a step.

    A record has `step` (from 1), `total`, `seconds` (without evaluation), `objective` and, with `evaluate`, `metric`,
    of which larger is better. `checkpoint` is written after every step; if it exists, training continues from it with
    the same result as without the interruption. `max_iter` replaces the solver's.
    """
    total = max_iter or solver.max_iter or 1
    history: list[Record] = []
    best: Best | None = None
    if checkpoint is not None and group.exchange(checkpoint.folder.exists())[0]:
        history, best, state = checkpoint.read()
        solver.load_state(state)
    while len(history) < total:
        if solver.patience is not None and best is not None and len(history) - best.step >= solver.patience:
            break
        if solver.max_seconds is not None and history and history[-1]["seconds"] >= solver.max_seconds:
            break
        number, start = len(history) + 1, time.perf_counter()
        objective = solver.step()
        took = group.exchange(time.perf_counter() - start)[0]  # one clock for all processes, as it decides when to stop
        seconds = (history[-1]["seconds"] if history else 0.0) + took
        if objective != objective or abs(objective) == float("inf"):
            raise ValueError(
                f"the objective became {objective} at step {number}; lower learning_rate or raise regularization"
            )
        record = {"step": number, "total": total, "seconds": seconds, "objective": objective} | solver.notes()
        if evaluate is not None:
            record["metric"] = evaluate(*solver.ranked())
            if solver.ready() and (best is None or record["metric"] > best.metric):
                best = None  # frees the old copy before the next one is made
                best = Best(record["metric"], number, {name: value.clone() for name, value in solver.state().items()})
        history.append(record)
        if checkpoint is not None and group.rank == 0:
            checkpoint.write(history, best, solver.state())
        if callback is not None:
            callback(record["step"], record)
    if best is not None:
        solver.load_state(best.state)
    return history


# ---- checkpoints ----------------------------------------------------------------------------------------------------


@dataclass
class Checkpoint:
    """A folder that holds the history, the solver's state, the best state, and by name, what the fit is made from."""

    folder: Path
    made_from: Record
    drawn_seed: int | None = None
    chosen: list[Record] = field(default_factory=list)  # records of the choice of a loss, if there was one

    @classmethod
    def of(cls, folder: Path, made_from: Record) -> Self:
        """The checkpoint in that folder, or a new one; ValueError if the folder's fit was made from something else."""
        if not folder.exists():
            return cls(folder, made_from)
        config = read_config(folder, KIND)
        before = config["made_from"]
        differing = [
            f"{name} was {before.get(name, 'not there')}, is {made_from.get(name, 'not there')}"
            for name in sorted({*before, *made_from})
            if before.get(name) != made_from.get(name)
        ]
        if differing:
            raise ValueError(
                f"checkpoint={str(folder)!r} belongs to another fit; what differs: {'; '.join(differing)}. "
                "Give the same data and settings, or another folder"
            )
        return cls(folder, made_from, config["drawn_seed"], config["chosen"])

    def seed(self, random_state: Seed, group: Group) -> Seed:
        """`random_state`, or if that is None the seed that the fit began with."""
        if random_state is not None:
            return random_state
        fresh = draw_seed(np.random.default_rng()) if self.drawn_seed is None else self.drawn_seed
        self.drawn_seed = group.exchange(fresh)[0]
        return self.drawn_seed

    def write(self, history: list[Record], best: Best | None, state: dict[str, Tensor]) -> None:
        config = {
            "history": history,
            "best": None if best is None else [best.metric, best.step],
            "made_from": self.made_from,
            "drawn_seed": self.drawn_seed,
            "chosen": self.chosen,
        }
        with saving_folder(self.folder, KIND, config, overwrite=True) as fresh:
            write_arrays(fresh / "now.safetensors", {name: t.cpu().numpy() for name, t in state.items()})
            if best is not None:
                write_arrays(fresh / "best.safetensors", {name: t.cpu().numpy() for name, t in best.state.items()})

    def read(self) -> tuple[list[Record], Best | None, dict[str, Tensor]]:
        """The history, the best step and the state to continue from."""
        config = read_config(self.folder, KIND)
        best = None
        if config["best"] is not None:
            metric, step = config["best"]
            best = Best(metric, step, _tensors(self.folder / "best.safetensors"))
        return config["history"], best, _tensors(self.folder / "now.safetensors")


def described(value: object) -> object:
    """`value` in a checkpoint: numbers and text unchanged, everything else as a digest."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Interactions):
        arrays = (value.indptr, value.indices, value.weights, value.left_ids, value.right_ids)
        return f"{counted(len(value), 'pair')}, digest {digest(*arrays, value.left_features, value.right_features)}"
    if isinstance(value, np.random.Generator):
        return f"generator, digest {digest(json.dumps(value.bit_generator.state, default=np.ndarray.tolist))}"
    if isinstance(value, nn.Module):
        state = {name: part for name, part in value.state_dict().items() if isinstance(part, Tensor)}
        return f"{type(value).__name__}, digest {digest(*state, *(part.cpu().numpy() for part in state.values()))}"
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if isinstance(value, np.ndarray | Tensor) or sp.issparse(value):
        return f"array, digest {digest(value)}"
    return type(value).__name__


def _tensors(file: Path) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in read_arrays(file).items()}


# ---- the state of torch optimizers ---------------------------------------------------------------------------------


def _packed(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimizer's state by name, whole numbers as tensors under `name#`; options are not state."""
    saved = optimizer.state_dict()
    entries = {f"{number}.{name}": v for number, entry in saved["state"].items() for name, v in entry.items()}
    return {
        f"{name}{'#' * isinstance(value, int)}": torch.as_tensor(value)
        for name, value in entries.items()
        if isinstance(value, Tensor | int)
    }


def _unpack(optimizer: torch.optim.Optimizer, packed: dict[str, Tensor]) -> None:
    entries: dict[int, Record] = {}
    for key, value in packed.items():
        name = key.removesuffix("#")
        kept = int(value) if name != key and value.numel() == 1 else value.clone()
        number, name = name.split(".", 1)
        entries.setdefault(int(number), {})[name] = kept
    optimizer.load_state_dict({**optimizer.state_dict(), "state": entries})
