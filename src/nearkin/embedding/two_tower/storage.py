"""A fitted `TwoTower` as a folder: config.json, embeddings.safetensors, ids, and the encoders of features."""

from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from nearkin._storage import one_version, pack_ids, read_arrays, read_config, saving_folder, write_arrays
from nearkin._types import Record
from nearkin.embedding.saved_towers import KIND, read_towers
from nearkin.embedding.two_tower.choice import loss_of
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.settings import LOSSES, SOLVERS, Indexed, as_object
from nearkin.embedding.two_tower.towers import FeatureBranch, Tower

Model = TypeVar("Model")
LOSS_ARRAYS = "loss.safetensors"
PLAIN = (int, float, str, bool, type(None))  # types of parameters that JSON holds
SETTINGS = (*(type(make()) for make in (*LOSSES.values(), *SOLVERS.values())), Tower, Indexed)
_KINDS = {kind.__name__: kind for kind in SETTINGS}


def save(model: Any, path: str | PathLike) -> None:
    """Write the folder; parameters that JSON cannot hold (modules, arrays, seeds) are left out of config.json."""
    encoders = {
        side: encoder for side in ("left", "right") if (encoder := getattr(model, f"{side}_encoder_")) is not None
    }
    config = {
        "parameters": _written_parameters(model),
        "fitted": {"solver": model.solver_, "regularization": model.regularization_, "omega": model.omega_},
        "encoders": {
            side: "branch" if isinstance(encoder, FeatureBranch) else "own" for side, encoder in encoders.items()
        },
        "history": model.history_,
        "trials": model.trials_,
    }
    with saving_folder(path, KIND, config) as folder:
        arrays = {"left": model.left_embeddings_, "right": model.right_embeddings_}
        write_arrays(folder / "embeddings.safetensors", arrays)
        seen = model.seen_
        ids = pack_ids("left", model.left_ids_) | pack_ids("right", model.right_ids_)
        pairs = {"indptr": seen.indptr, "indices": seen.indices, "weights": seen.weights}
        write_arrays(folder / "pairs.safetensors", ids | pairs)
        arrays = _loss_arrays(model)
        if arrays:
            write_arrays(folder / LOSS_ARRAYS, arrays)
        modules = {f"{side}_encoder": encoder for side, encoder in encoders.items()}
        if model.index_ is not None:
            modules["index"] = model.index_
        for name, module in modules.items():
            state = {key: value.cpu().numpy() for key, value in module.state_dict().items()}
            write_arrays(folder / f"{name}.safetensors", state)


def load(
    cls: type[Model],
    path: str | PathLike,
    left: nn.Module | None,
    right: nn.Module | None,
    index: nn.Module | None = None,
) -> Model:
    """A fitted `cls`; ValueError if an encoder of the user's own is needed and was not given.

    Without `index` a saved index is not read and `index_` is None; everything else works.
    """
    return one_version(path, lambda folder: _read(cls, folder, left, right, index))


def _read(cls: Any, folder: Path, left: nn.Module | None, right: nn.Module | None, index: nn.Module | None) -> Any:
    config = read_config(folder, KIND)
    model = cls(**_read_parameters(config["parameters"], {"left": left, "right": right, "index": index}))
    model.left_embeddings_, model.right_embeddings_, model.seen_ = read_towers(folder)
    model.left_ids_, model.right_ids_ = model.seen_.left_ids, model.seen_.right_ids
    fitted = config["fitted"]
    model.solver_, model.regularization_, model.omega_ = fitted["solver"], fitted["regularization"], fitted["omega"]
    model.history_, model.index_ = config["history"], None
    model.trials_ = config.get("trials", [])
    model.loss_ = loss_of(model.trials_) if model.trials_ else as_object(model.loss, "loss", LOSSES)
    model.exact_embeddings_ = model.left_embeddings_, model.right_embeddings_
    model.costs_ = _read_loss(model, folder / LOSS_ARRAYS)
    if index is not None:
        model.index_ = _filled(deepcopy(index), folder / "index.safetensors")
    for side, own in (("left", left), ("right", right)):
        kind = config["encoders"].get(side)
        setattr(model, f"{side}_encoder_", None if kind is None else _encoder(folder, side, kind, own))
    return model


def _loss_arrays(model: Any) -> dict[str, np.ndarray]:
    """Arrays of the loss: costs that are not all 1, and a prior of several factors."""
    costs = {f"{side}_costs": x for side, x in zip(("left", "right"), model.costs_, strict=True) if (x != 1).any()}
    prior = model.loss_.prior if isinstance(model.loss_, AllPairs) else None
    if isinstance(prior, tuple | list):
        left, right = (np.asarray(part) for part in prior)
        costs |= {"prior_left": left, "prior_right": right}
    return costs


def _read_loss(model: Any, file: Path) -> tuple[np.ndarray, np.ndarray]:
    """The costs (m,) and (n,) of the fit; a prior is put back into the parameters."""
    arrays = read_arrays(file) if file.is_file() else {}
    if "prior_left" in arrays and isinstance(model.loss, AllPairs):
        model.loss.prior = arrays["prior_left"], arrays["prior_right"]
    ones = np.ones(len(model.left_ids_)), np.ones(len(model.right_ids_))
    return arrays.get("left_costs", ones[0]), arrays.get("right_costs", ones[1])


def _written_parameters(model: Any) -> Record:
    """Parameters as JSON: a settings object as a dict with its class."""
    written = {}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, SETTINGS):
            own = {part: v for part, v in value.get_params(deep=False).items() if isinstance(v, (*PLAIN, tuple, list))}
            written[name] = {"class": type(value).__name__} | own
        elif isinstance(value, PLAIN):
            written[name] = value
    return written


def _read_parameters(written: Record, given: Record) -> Record:
    """The parameters that `_written_parameters` wrote, with the modules that the user gives again."""
    parameters = dict(written)
    if isinstance(solver := written.get("solver"), str) and solver not in SOLVERS:  # one of an earlier version
        parameters["solver"] = "auto"
    for name, value in parameters.items():
        if isinstance(value, dict):
            own: Record = {part: tuple(v) if isinstance(v, list) else v for part, v in value.items() if part != "class"}
            if value["class"] == "Indexed":
                parameters[name] = None if given["index"] is None else Indexed(given["index"], **own)
            else:
                kind = _KINDS.get(value["class"])  # a solver of your own, or of an earlier version, is "auto" again
                parameters[name] = "auto" if kind is None else kind(**own)
    missing = {name for name, module in given.items() if module is not None and parameters.get(name) is None}
    return parameters | {name: given[name] for name in missing}


def _encoder(folder: Path, side: str, kind: str, own: nn.Module | None) -> nn.Module:
    state = {
        name: torch.from_numpy(value) for name, value in read_arrays(folder / f"{side}_encoder.safetensors").items()
    }
    if kind == "own" and own is None:
        raise ValueError(f"{folder} was fitted with your own {side} tower; load it with {side}=a module of that class")
    if kind == "branch":
        hidden = tuple(
            len(state[f"layers.{i}.weight"]) for i in range(sum(key.endswith("weight") for key in state) - 1)
        )
        own = FeatureBranch(len(state["shift"]), len(state["last.bias"]), hidden, torch.Generator())
    module = own
    if module is None:
        raise ValueError(f"{folder} names an unknown kind of encoder, {kind!r}; it is damaged")
    module.load_state_dict(state)
    return module.eval()


def _filled(module: nn.Module, file: Path) -> nn.Module:
    if not file.is_file():
        raise ValueError(f"{file.parent} was fitted without an index; load it without index=")
    module.load_state_dict({name: torch.from_numpy(value) for name, value in read_arrays(file).items()})
    return module.eval()
