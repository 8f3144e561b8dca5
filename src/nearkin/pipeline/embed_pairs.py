"""`nearkin embed` on a table of pairs: vectors of both sides, judged on held-out pairs and saved as a folder."""

import csv
import time
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._distributed import current
from nearkin._storage import check_inputs, check_space, check_target, replacing_folder
from nearkin._types import Fields, Record, Seed
from nearkin.contracts import Callback
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.pipeline.holdout import (
    SPLITS,
    has_split,
    held_out,
    judge_baselines,
    neighbour_examples,
    split_pairs,
    without_totals,
)
from nearkin.pipeline.inputs import SideNames, side_names, side_names_of
from nearkin.pipeline.run import RUN, write_record
from nearkin.records import Interactions

RESULT = "two towers"  # the name of the model among the baselines
TABLES = (None, "csv", "parquet")
_DEPTHS = (20, 100)
_MEASURES = ("recall@20", "ndcg@20", "ndcg@100", "mrr@100")


def embed_pairs(
    path: str | PathLike,
    *,
    out: str | PathLike,
    split: str | None = None,
    dim: int | None = None,
    solver: str = "auto",
    loss: str | None = None,
    omega: float | str = "auto",
    regularization: float | str = "auto",
    max_steps: int | None = None,
    holdout: float = 0.1,
    start: str | PathLike | None = None,
    tables: str | None = None,
    seed: int | None = 0,
    callback: Callback | None = None,
    **columns: Any,
) -> Record:
    """Embed both sides of a table of pairs and save the model as the folder `out`; returns the record to print.

    A first fit without the share `holdout` of the pairs is judged by them, next to popularity and item-kNN; the saved
    model is then fitted on all pairs with the settings found. `holdout=0` judges nothing. `split` chooses the pairs:
    "random", "time" (the latest), "leave-last-out", or a column (0 train, 1 validation, 2 test). A split of the table
    itself is always used, and the saved model is then fitted on its training pairs.

    `start` is a folder of an earlier run: its model is trained further with these pairs as new ones, and none are held
    out. `tables` ("csv" or "parquet") writes the vectors of both sides as tables too. `columns` are the other options
    of `nearkin.read_interactions`.
    """
    began = time.perf_counter()
    check_target(out)
    check_choice(tables, "--tables", TABLES)
    check_inputs(out, [path] if start is None else [path, start])
    pairs = _read(path, start, split=None if split in SPLITS else split, **columns)
    check_space(out, 4 * sum(pairs.shape) * (dim or 64))
    names = side_names_of(pairs) if start is None else side_names(start)
    quality: dict[str, dict[str, float]] = {}
    judged: Record | None = None
    trials: list[Record] = []
    if start is not None:
        model = _trained_further(start, pairs, dim, max_steps, callback)
    else:
        model = nk.TwoTower(
            dim or 64, solver=solver, loss=loss or "auto", regularization=regularization, random_state=seed
        )
        if omega != "auto":
            model.set_params(loss__omega=omega)
        if max_steps is not None:
            model.set_params(solver__max_iter=max_steps)
        quality, judged, trials = _fit(model, pairs, split, holdout, seed, callback)
    m, n = model.seen_.shape
    chosen = [trial["why"] for trial in trials if "why" in trial]
    record = {
        "out": str(out), "data": str(path), "left": m, "right": n, "pairs": len(pairs),
        "learned_from": len(model.seen_),
        "dim": model.left_embeddings_.shape[1], "solver": model.solver_,
        "loss": model.loss_.name, "trials": trials,
        "omega": model.omega_, "regularization": model.regularization_,
        "steps": len(model.history_), "start": None if start is None else str(start),
        "split": "column" if _in_table(pairs, split) else split or "random",
        "seconds": time.perf_counter() - began, "words": names._asdict(), "quality": quality, "held_out": judged,
        "notes": [*chosen, *_notes(pairs, model, start)], **quality.get(RESULT, {}),
        **({} if pairs.source is None else {"understood": str(pairs.source)}),
    }  # fmt: skip
    if current().rank == 0:
        _save(model, out, record, names, tables)
    return record


def _read(path: str | PathLike, start: str | PathLike | None, **columns: Any) -> Interactions:
    """The table in the columns given; with `start` and none given in those of the earlier table, if it has both."""
    known = SideNames() if start is None else side_names(start)
    if known != SideNames() and columns.get("left") is None and columns.get("right") is None:
        with suppress(ValueError):  # a table with other columns is read as a first one would be
            return nk.read_interactions(path, **columns | known._asdict())
    return nk.read_interactions(path, **columns)


def _in_table(pairs: Interactions, split: str | None) -> bool:
    """Whether the table itself says which pairs are held out."""
    return split not in SPLITS and has_split(pairs)


def _fit(
    model: "nk.TwoTower", pairs: Interactions, split: str | None, holdout: float, seed: Seed, callback: Callback | None
) -> tuple[dict[str, dict[str, float]], Record | None, list[Record]]:
    """Fit the model; returns the measures of a fit without the held-out pairs, which pairs those are, and its trials.

    The trials are the short fits that chose the loss; the second fit, on all pairs, keeps it.
    """
    in_table = _in_table(pairs, split)
    if not in_table and not holdout:
        model.fit(pairs, callback=callback)
        return {}, None, model.trials_
    parts = nk.data.split_given(pairs) if in_table else split_pairs(pairs, split or "random", holdout, seed)
    model.fit(parts.train, validation=parts.valid if len(parts.valid) else None, callback=callback)
    quality = {}
    if len(parts.test):
        quality[RESULT] = model.evaluate(parts.test, k=_DEPTHS)
        quality |= judge_baselines(parts.train, parts.test, _DEPTHS, ("recall", "ndcg", "mrr"))
    trials = model.trials_
    if not in_table:
        model.set_params(loss=model.loss_, regularization=model.regularization_)
        model.fit(pairs, callback=callback)
    shown = {name: {measure: values[measure] for measure in _MEASURES} for name, values in quality.items()}
    return shown, held_out(parts.test), trials


def _trained_further(
    start: str | PathLike, pairs: Interactions, dim: int | None, max_steps: int | None, callback: Callback | None
) -> "nk.TwoTower":
    """The model of an earlier run, updated with new pairs."""
    model = nk.TwoTower.load(start)
    known = model.left_embeddings_.shape[1]
    if dim is not None and dim != known:
        raise ValueError(f"--dim is {dim}, but {start} has vectors of {known}; leave --dim out with --start")
    return model.partial_fit(pairs, max_iter=max_steps, callback=callback)


def _notes(pairs: Interactions, model: "nk.TwoTower", start: str | PathLike | None) -> list[str]:
    """Why the model was fitted on another number of pairs than the table has."""
    learned, given = len(model.seen_), len(pairs)
    if start is not None:
        return [f"{given:,} pairs of the table join those of {start}: {learned:,} different pairs in all"]
    if learned != given:
        return [f"{learned:,} of {given:,} pairs are learned from; the others are validation and test by the split"]
    return []


def _save(model: "nk.TwoTower", out: str | PathLike, record: Fields, names: SideNames, tables: str | None) -> None:
    """Write the model, run.json and, if asked for, the tables of vectors."""
    run = dict(record) | {
        "examples": neighbour_examples(model.right_embeddings_, model.right_ids_, model.seen_),
        "history": without_totals(model.history_),
    }
    with replacing_folder(out) as fresh:
        model.save(fresh)
        write_record(fresh / RUN, run)
        if tables is not None:
            _write_vectors(fresh / f"left.{tables}", names.left, model.left_ids_, model.left_embeddings_)
            _write_vectors(fresh / f"right.{tables}", names.right, model.right_ids_, model.right_embeddings_)


def _write_vectors(path: Path, name: str, ids: np.ndarray, X: np.ndarray) -> None:
    """A table of ids, in the column `name`, and vectors (n, k), in the columns x1, ..., xk: .csv or .parquet."""
    columns = [name if name != "x1" else "id", *(f"x{c + 1}" for c in range(X.shape[1]))]
    if path.suffix == ".parquet":
        pa, parquet = import_pyarrow()
        parquet.write_table(pa.table(dict(zip(columns, [ids, *X.T], strict=True))), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([name, *row] for name, row in zip(ids.tolist(), X.tolist(), strict=True))
