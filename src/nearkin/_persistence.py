"""Fitted scikit-learn estimators to a folder and back: numeric arrays to safetensors, everything else to JSON."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_integer
from nearkin._storage import SavedArrays, damage_named, read_saved, saving_folder, write_arrays

Estimator = TypeVar("Estimator")
Source = str | os.PathLike[str] | SavedArrays  # a saved folder, or what was read of it
MAX_WIDTH = 10**8  # columns of what is loaded: more is damage


def save_estimator(estimator: BaseEstimator, path: str | os.PathLike[str], kind: str, **about: object) -> None:
    """Write a folder with the class's name, the parameters and every fitted value (`..._`) of an estimator.

    `kind` names its family, `about` adds facts to config.json. NotFittedError before `fit`. A generator given as a
    parameter has no stored form and comes back as None.
    """
    check_is_fitted(estimator)
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    arrays = {name: value for name, value in fitted.items() if _is_numeric(value)}
    scalars = {name: _plain(value) for name, value in fitted.items() if name not in arrays}
    params = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    config = {"class": type(estimator).__name__, "params": params, "fitted": scalars, **about}
    with saving_folder(path, kind, config) as folder:
        write_arrays(folder / "arrays.safetensors", arrays)


def load_estimator(
    cls: type[Estimator],
    source: Source,
    kind: str,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Estimator:
    """Make the quantizer of class `cls` that `save_estimator` wrote; ValueError if the folder holds another.

    `source` is the folder, or what was read of it. `renamed` are parameters that older folders hold under another name:
    old to new.
    """
    found = read_saved(source, kind)
    with damage_named(found.path):
        return _made(cls, found, renamed)


def _made(cls: type[Estimator], found: SavedArrays, renamed: Mapping[str, str]) -> Estimator:
    config = found.config
    if config["class"] != cls.__name__:
        raise ValueError(f"{found.path} holds a {config['class']}, not a {cls.__name__}; load it with its own class")
    estimator = cls(**{renamed.get(name, name): value for name, value in config["params"].items()})
    for name, value in config["fitted"].items():
        setattr(estimator, name, np.asarray(value, dtype=object) if name == "feature_names_in_" else value)
    for name, value in found.arrays.items():
        setattr(estimator, name, value)
    _try_out(estimator)
    return estimator


def _try_out(estimator: Any) -> None:
    """Transform one row: a saved value that is missing, or of another type or shape, shows here, not at first use."""
    width = check_integer(estimator.n_features_in_, "n_features_in_", low=1, high=MAX_WIDTH)
    with np.errstate(all="ignore"):
        estimator.transform(np.zeros((1, width), np.float32))


def _is_numeric(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def _plain(value: object) -> object:
    """A value as JSON can hold it, None where it cannot."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else None
