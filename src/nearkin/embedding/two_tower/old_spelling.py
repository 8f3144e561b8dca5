"""Version 0.1 gave `TwoTower` 24 flat parameters: they are read for one release, and in saved folders for good."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.base import BaseEstimator, clone

from nearkin._deprecation import renamed
from nearkin._types import Fields, Record
from nearkin.contracts import JointIndex
from nearkin.embedding.two_tower.choice import LOSSES, SOLVERS, Auto, Indexed, settings
from nearkin.embedding.two_tower.solvers.adam import Adam
from nearkin.embedding.two_tower.towers import HIDDEN, Tower

LOSS = ("pair_loss", "omega", "weighting", "labels", "left_costs", "right_costs", "prior")
SOLVER = {
    "max_steps": "max_iter",
    **{name: name for name in ("max_seconds", "learning_rate", "batch_size", "start", "patience")},
}
OLD = (*LOSS, *SOLVER, "hidden", "distortion_weight")
_DEFAULTS: Record = {
    **{"pair_loss": "squared", "omega": "auto", "weighting": "log", "labels": "ones"},
    **{"left_costs": None, "right_costs": None, "prior": None},
    **{"max_steps": None, "max_seconds": None, "learning_rate": None, "batch_size": 4096},
    **{"start": "auto", "patience": 10, "hidden": HIDDEN, "distortion_weight": 1.0},
}


def takes_flat_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """A decorator of the constructor: flat parameters go into the objects that have them, with a warning.

    One that the loss or the solver never used is dropped, as it was. scikit-learn reads the undecorated signature.
    """

    @wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **translated(kwargs, {}))

    return construct


def translated(given: Fields, present: Fields) -> Record:
    """The given parameters with a warning for each flat one, which changes the `present` objects."""
    flat = {name: given[name] for name in OLD if name in given}
    for name in flat:
        renamed(f"{name}=", new_spelling(name), stacklevel=4)
    rest = {name: value for name, value in given.items() if name not in flat}
    return nested({**present, **rest}, flat) if flat else rest


def new_spelling(name: str) -> str:
    """What to type in place of a flat parameter."""
    if name in LOSS:
        return f"loss=nk.embedding.AllPairs({name}=...)"
    if name in SOLVER:
        return f"solver=nk.embedding.ALS({SOLVER[name]}=...), or another solver's object"
    if name == "hidden":
        return "left=nk.embedding.Tower(hidden=...), right=nk.embedding.Tower(hidden=...)"
    return "index=nk.embedding.Indexed(module, distortion_weight=...)"


def nested(parameters: Fields, flat: Fields) -> Record:
    """Parameters as they are now, from today's `parameters` and the old `flat` ones."""
    made, flat = dict(parameters), {name: value for name, value in flat.items() if _says_more(name, value)}
    of_loss = {name: value for name, value in flat.items() if name in LOSS}
    if of_loss:
        made["loss"] = _filled(settings(made.get("loss", "all-pairs"), "loss", LOSSES), of_loss)
    of_solver = {SOLVER[name]: value for name, value in flat.items() if name in SOLVER}
    if of_solver:
        solver = settings(made.get("solver", "auto"), "solver", SOLVERS)
        if isinstance(solver, Auto) and _becomes_adam(made):
            solver = Adam(max_iter=solver.max_iter, max_seconds=solver.max_seconds, patience=solver.patience)
        if isinstance(solver, Adam) and _loss_name(made) == "all-pairs":
            of_solver.pop("batch_size", None)
        made["solver"] = _filled(solver, of_solver)
    if "hidden" in flat:
        for side in ("left", "right"):
            if made.get(side) is None:
                made[side] = Tower(tuple(flat["hidden"]))
    if "distortion_weight" in flat and made.get("index") is not None:
        made["index"] = Indexed(made["index"], flat["distortion_weight"])
    return made


def _says_more(name: str, value: Any) -> bool:
    """Whether a flat parameter says more than its default did."""
    default = _DEFAULTS[name]
    if isinstance(default, tuple):
        return tuple(value) != default
    return not (value is default or (isinstance(value, type(default)) and value == default))


def _filled(chosen: BaseEstimator, given: Record) -> BaseEstimator:
    """A copy of `chosen` with those of the given parameters that it has."""
    known = chosen.get_params(deep=False)
    return clone(chosen).set_params(**{name: value for name, value in given.items() if name in known})


def _becomes_adam(parameters: Fields) -> bool:
    """Whether "auto" means Adam whatever the data are."""
    index = parameters.get("index")
    own = parameters.get("left") is not None or parameters.get("right") is not None
    return _loss_name(parameters) != "all-pairs" or own or not (index is None or isinstance(index, JointIndex))


def _loss_name(parameters: Fields) -> str:
    loss = parameters.get("loss", "all-pairs")
    return loss if isinstance(loss, str) else loss.name
