"""The work of `nearkin embed` on a table of pairs: read, hold out, fit, measure beside baselines, write."""

import time
from contextlib import suppress
from os import PathLike
from typing import Any

import nearkin as nk
from nearkin._storage import check_space
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.pipeline.embed.towers_folder import save_towers
from nearkin.pipeline.embedding_folder import Words, words_in, words_of
from nearkin.pipeline.judging import SPLITS, held_out, judge_baselines, split_pairs
from nearkin.records import Interactions

_DEPTHS = (20, 100)
_MEASURES = ("recall@20", "ndcg@20", "ndcg@100", "mrr@100")
RESULT = "two towers"  # the name of the result among the baselines


def embed_interactions(
    path: str | PathLike,
    *,
    out: str | PathLike,
    split: str | None = None,
    dim: int | None = None,
    solver: str = "auto",
    loss: str = "all-pairs",
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
    """Embed both sides of a table of pairs and save the model as the folder `out`; return the record to print.

    The share `holdout` of the pairs measures a first fit, beside popularity and item-kNN, and the saved model is then
    fitted on all pairs with the settings that were found; `holdout=0` measures nothing. `split` is how they are chosen:
    "random", "time" (the latest), "leave-last-out", or the name of a column (0 train, 1 validation, 2 test), by which
    the saved model is fitted on the training pairs alone, as it is where the table has a column of that name. `start`
    is a folder of an earlier run, from which training goes on with these pairs as new ones, in columns of the same
    names where the table has them and none are given; nothing is held out then.
    `tables` ("csv" or "parquet") writes the vectors of both sides as tables too. `columns` are the other options of
    `nearkin.read_interactions`.
    """
    begun = time.perf_counter()
    pairs = _read(path, start, split=None if split in SPLITS else split, **columns)
    check_space(out, 4 * sum(pairs.shape) * (dim or 64))
    words = words_in(pairs) if start is None else words_of(start)
    quality: dict[str, dict[str, float]] = {}
    judged: Record | None = None
    if start is not None:
        model = _update(start, pairs, dim, max_steps, callback)
    else:
        model = nk.TwoTower(dim or 64, solver=solver, loss=loss, regularization=regularization, random_state=seed)
        if omega != "auto":
            model.set_params(loss__omega=omega)
        if max_steps is not None:
            model.set_params(solver__max_iter=max_steps)
        quality, judged = _fit(model, pairs, split, holdout, seed, callback)
    m, n = model.seen_.shape
    record = {
        "out": str(out), "data": str(path), "left": m, "right": n, "pairs": len(pairs),
        "learned_from": len(model.seen_),
        "dim": model.left_embeddings_.shape[1], "solver": model.solver_,
        "loss": model.loss if isinstance(model.loss, str) else type(model.loss).__name__,
        "omega": model.omega_, "regularization": model.regularization_,
        "steps": len(model.history_), "start": None if start is None else str(start),
        "split": _split_name(pairs, split),
        "seconds": time.perf_counter() - begun, "words": words._asdict(), "quality": quality, "held_out": judged,
        "notes": _notes(pairs, model, start), **quality.get(RESULT, {}),
        **({} if pairs.source is None else {"understood": str(pairs.source)}),
    }  # fmt: skip
    save_towers(model, out, record, words, tables)
    return record


def _read(path: str | PathLike, start: str | PathLike | None, **columns: Any) -> Interactions:
    """The table, in the columns named; without names in those that the folder `start` knows, if it has both of them."""
    known = Words() if start is None else words_of(start)
    if known != Words() and columns.get("left") is None and columns.get("right") is None:
        with suppress(ValueError):  # another table: it is understood as a first one would be, or says what to type
            return nk.read_interactions(path, **columns | known._asdict())
    return nk.read_interactions(path, **columns)


def _fit(
    model: "nk.TwoTower", pairs: Interactions, split: str | None, holdout: float, seed: Seed, callback: Callback | None
) -> tuple[dict[str, dict[str, float]], Record | None]:
    """Fit the model; returns how its fit without the held-out pairs ranks them, with the baselines, and which pairs."""
    given = _by_column(pairs, split)
    if not given and not holdout:
        model.fit(pairs, callback=callback)
        return {}, None
    parts = nk.data.split_given(pairs) if given else split_pairs(pairs, split or "random", holdout, seed)
    model.fit(parts.train, validation=parts.valid if len(parts.valid) else None, callback=callback)
    quality = {}
    if len(parts.test):
        found = model.evaluate(parts.test, k=_DEPTHS)
        quality = {RESULT: {name: found[name] for name in _MEASURES}}
        for name, values in judge_baselines(parts.train, parts.test, _DEPTHS, ("recall", "ndcg", "mrr")).items():
            quality[name] = {measure: values[measure] for measure in _MEASURES}
    if not given:
        model.set_params(regularization=model.regularization_)
        model.fit(pairs, callback=callback)
    return quality, held_out(parts.test)


def _update(
    start: str | PathLike, pairs: Interactions, dim: int | None, max_steps: int | None, callback: Callback | None
) -> "nk.TwoTower":
    """The model of an earlier run, trained on from there with new pairs."""
    model = nk.TwoTower.load(start)
    known = model.left_embeddings_.shape[1]
    if dim is not None and dim != known:
        raise ValueError(f"--dim is {dim}, but {start} has vectors of {known}; leave --dim out with --start")
    return model.partial_fit(pairs, max_iter=max_steps, callback=callback)


def _by_column(pairs: Interactions, split: str | None) -> bool:
    return split not in SPLITS and pairs.split is not None and bool((pairs.split == 0).any())


def _split_name(pairs: Interactions, split: str | None) -> str:
    return "column" if _by_column(pairs, split) else split or "random"


def _notes(pairs: Interactions, model: "nk.TwoTower", start: str | PathLike | None) -> list[str]:
    """Why the model knows another number of pairs than the table has."""
    learned, given = len(model.seen_), len(pairs)
    if start is not None:
        return [f"{given:,} pairs of the table join those of {start}: {learned:,} different pairs in all"]
    if learned != given:
        return [f"{learned:,} of {given:,} pairs are learned from; the others are validation and test by the split"]
    return []
