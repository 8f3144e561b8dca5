"""The folder from which an interrupted fit goes on, and what it was made from: other data or settings are refused."""

import json
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nearkin._distributed import Group
from nearkin._random import draw_seed
from nearkin._storage import read_arrays, read_config, saving_folder, write_arrays
from nearkin._types import Fields, Record, Seed
from nearkin.records import Interactions

KIND = "two-tower-checkpoint"
_LENGTH = 8  # bytes of a digest


class Best(NamedTuple):
    """The best step so far."""

    metric: float
    step: int
    state: dict[str, Tensor]


class Checkpoint:
    """A folder that holds the history, the solver's state, the best state, and what the fit is made from by name."""

    def __init__(self, folder: str | PathLike) -> None:
        self.folder, self.made_from, self.drawn_seed = Path(folder), {}, None

    def exists(self) -> bool:
        return self.folder.exists()

    def seed(self, random_state: Seed, group: Group) -> Seed:
        """`random_state`, or where it is None the seed that the fit began with, so that it goes on as it was."""
        if random_state is not None:
            return random_state
        drawn = read_config(self.folder, KIND).get("drawn_seed") if self.exists() else None
        fresh = draw_seed(np.random.default_rng()) if drawn is None else drawn
        self.drawn_seed = group.exchange(fresh)[0]
        return self.drawn_seed

    def check(self, made_from: Fields) -> None:
        """Remember what this fit is made from; ValueError if the folder's fit was made from something else.

        A folder written before nearkin kept that is not checked.
        """
        self.made_from = dict(made_from)
        before = read_config(self.folder, KIND).get("made_from") if self.exists() else None
        if before is None:
            return
        differing = [
            f"{name} was {before.get(name, 'not there')}, is {self.made_from.get(name, 'not there')}"
            for name in sorted({*before, *self.made_from})
            if before.get(name) != self.made_from.get(name)
        ]
        if differing:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} belongs to another fit; what differs: {'; '.join(differing)}. "
                "Give the same data and settings, or another folder"
            )

    def write(self, history: list[Record], best: Best | None, state: dict[str, Tensor]) -> None:
        config = {
            "history": history,
            "best": None if best is None else [best.metric, best.step],
            "made_from": self.made_from,
            "drawn_seed": self.drawn_seed,
        }
        with saving_folder(self.folder, KIND, config) as fresh:
            write_arrays(fresh / "now.safetensors", {name: t.numpy() for name, t in state.items()})
            if best is not None:
                write_arrays(fresh / "best.safetensors", {name: t.numpy() for name, t in best.state.items()})

    def read(self) -> tuple[list[Record], Best | None, dict[str, Tensor]]:
        """The history, the best step and the state to go on from."""
        config = read_config(self.folder, KIND)
        history = [current_record(record) for record in config["history"]]
        best = None
        if config["best"] is not None:
            metric, step = config["best"]
            step += "made_from" not in config  # version 0.1 counted from 0
            best = Best(metric, step, _tensors(self.folder / "best.safetensors"))
        return history, best, _tensors(self.folder / "now.safetensors")


def current_record(record: Fields) -> Record:
    """A record of a history as it is written now; version 0.1 had "value" for "objective" and counted from 0."""
    if "value" not in record:
        return dict(record)
    new = {("objective" if name == "value" else name): value for name, value in record.items()}
    return new | {"step": record["step"] + 1}


def described(value: object) -> object:
    """`value` as a checkpoint names it: numbers and text as they are, everything else by a digest."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Interactions):
        arrays = (value.indptr, value.indices, value.weights, value.left_ids, value.right_ids)
        return f"{len(value)} pairs, digest {digest(*arrays, value.left_features, value.right_features)}"
    if isinstance(value, np.random.Generator):
        return f"generator, digest {digest(json.dumps(value.bit_generator.state, default=_listed))}"
    if isinstance(value, nn.Module):
        state = {name: part for name, part in value.state_dict().items() if isinstance(part, Tensor)}
        return f"{type(value).__name__}, digest {digest(*state, *(part.cpu().numpy() for part in state.values()))}"
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if isinstance(value, np.ndarray | Tensor) or sp.issparse(value):
        return f"array, digest {digest(value)}"
    return type(value).__name__


def digest(*parts: object) -> str:
    """A short digest of arrays, sparse matrices and text."""
    made = blake2b(digest_size=_LENGTH)
    for part in parts:
        if sp.issparse(part):
            made.update(digest(part.indptr, part.indices, part.data).encode())
        elif isinstance(part, str) or part is None:
            made.update(f"{part};".encode())
        else:
            array = np.ascontiguousarray(part)
            made.update(f"{array.dtype}{array.shape}".encode())
            made.update(array.tobytes() if array.dtype.kind != "O" else repr(array.tolist()).encode())
    return made.hexdigest()


def _listed(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _tensors(file: Path) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in read_arrays(file).items()}
