"""A fitted `OrdinalEmbedding` as a folder: config.json, objects.json, embedding.safetensors."""

import csv
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nearkin import _check
from nearkin._storage import read_arrays, read_config, write_arrays
from nearkin._types import Record
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.embedding.ordinal.answers import count_per_object
from nearkin.embedding.ordinal.feature_map import FeatureMap
from nearkin.embedding.ordinal.objective import SOLVERS
from nearkin.records import Comparisons

KIND = "ordinal-embedding"
_MAP = ("landmarks", "coefficients", "mean")


def embedding_config(model: Any) -> Record:
    """The contents of config.json: parameters, and how the run ended."""
    params = {name: value if _is_plain(value) else None for name, value in model.get_params().items()}
    n, p = model.embedding_.shape
    end = {"objective": model.objective_, "n_iter": model.n_iter_, "status": model.status_}
    feature_map = model.feature_map_
    if feature_map is not None:
        end["feature_map"] = {"gamma": feature_map.gamma, "alpha": feature_map.alpha}
    if model.rater_reliability_ is not None:
        end["rater_reliability"] = [list(pair) for pair in model.rater_reliability_.items()]  # names may be numbers
    return {"n_objects": n, "n_components": p, "params": params, "dimension_curve": model.dimension_curve_, **end}


def write_embedding(model: Any, folder: Path) -> None:
    """Write a fitted model's arrays and names into `folder`, which has config.json already."""
    answers = model.comparisons_
    arrays = {"embedding": model.embedding_, "comparisons": answers.indices}
    if answers.weights is not None:
        arrays["weights"] = answers.weights
    if answers.events is not None:
        arrays["events"] = answers.events
    if model.feature_map_ is not None:
        arrays.update({name: getattr(model.feature_map_, name) for name in _MAP})
    write_arrays(folder / "embedding.safetensors", arrays)
    names = json.dumps(model.objects_.tolist(), ensure_ascii=False)
    (folder / "objects.json").write_text(names + "\n", encoding="utf-8")


def write_coordinates(model: Any, path: str | PathLike) -> None:
    """A fitted model's points as a table, .csv or .parquet: object, x1, ..., xp and answers, their number.

    Raises ValueError for another ending, ImportError for .parquet without pyarrow.
    """
    path = Path(path)
    _check.check_choice(path.suffix.lower(), "the table's ending", (".csv", ".parquet"))
    points = {f"x{c + 1}": model.embedding_[:, c] for c in range(model.n_components_)}
    columns = {"object": model.objects_, **points, "answers": count_per_object(model.comparisons_)}
    if path.suffix.lower() == ".parquet":
        pa, parquet = import_pyarrow()
        parquet.write_table(pa.table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def read_embedding(path: str | PathLike) -> tuple[Record, Record]:
    """The parameters and the fitted values of a saved model. Raises ValueError if the folder is damaged."""
    path = Path(path)
    config = read_config(path, KIND)
    arrays = read_arrays(path / "embedding.safetensors")
    try:
        objects = np.asarray(json.loads((path / "objects.json").read_text(encoding="utf-8")))
        fitted = {
            "embedding_": _points(arrays["embedding"], len(objects), config["n_components"]),
            "objects_": objects,
            "comparisons_": Comparisons(
                arrays["comparisons"], objects, arrays.get("weights"), events=arrays.get("events")
            ),
            "rater_reliability_": _reliability(config.get("rater_reliability")),
            "feature_map_": _feature_map(arrays, config),
            "n_components_": config["n_components"],
            "dimension_curve_": config["dimension_curve"],
            "objective_": config["objective"],
            "n_iter_": config["n_iter"],
            "status_": config["status"],
            "history_": [],
        }
        params = dict(config["params"])
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); the folder is damaged") from error
    for name, usual in (("epsilon", 0.1), ("batch_size", 1)):  # written by version 0.1 for "the solver's default"
        if params.get(name) == usual:
            params[name] = None
    params["loss"] = "ste" if params["loss"] == "ckl-printed" else params["loss"]  # one formula, two names before
    params["solver"] = params["solver"] if params["solver"] in SOLVERS else "auto"  # an object, or a former name
    return params, fitted


def _points(X: np.ndarray, n: int, p: int) -> np.ndarray:
    if X.shape != (n, p) or not np.isfinite(X).all():
        raise ValueError(f"embedding has shape {X.shape}; it must be ({n}, {p}) finite numbers")
    return X


def _feature_map(arrays: dict[str, np.ndarray], config: Record) -> FeatureMap | None:
    if "landmarks" not in arrays:
        return None
    gamma, alpha = (_check.check_real(config["feature_map"][name], name) for name in ("gamma", "alpha"))
    found = FeatureMap(**{name: arrays[name] for name in _MAP}, gamma=gamma, alpha=alpha)
    p = config["n_components"]
    if found.landmarks.ndim != 2 or found.coefficients.shape != (len(found.landmarks), p) or found.mean.shape != (p,):
        raise ValueError(f"landmarks has shape {found.landmarks.shape}, coefficients {found.coefficients.shape}")
    return found


def _reliability(pairs: list | None) -> dict[object, float] | None:
    return None if pairs is None else {name: float(weight) for name, weight in pairs}


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
