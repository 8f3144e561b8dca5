"""Which of the two signals a table holds, and the job for it."""

import os
from typing import Any

import nearkin as nk
from nearkin._storage import check_inputs, check_target
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.embedding.ordinal.losses import LOSSES as ORDINAL_LOSSES
from nearkin.pipeline.embed.comparisons import embed_comparisons
from nearkin.pipeline.embed.interactions import embed_interactions

KINDS = ("pairs", "comparisons", "auto")
PAIRS = ("left", "right", "weight", "timestamp", "left_features", "right_features", "split", "start", "holdout")
COMPARISONS = ("anchor", "near", "far", "response", "form", "raters")


def embed_signals(
    path: str | os.PathLike,
    out: str | os.PathLike,
    *,
    kind: str = "auto",
    dim: int | str | None = None,
    loss: str | None = None,
    solver: str = "auto",
    seed: int | None = 0,
    next_queries: int = 0,
    callback: Callback | None = None,
    **columns: Any,
) -> Record:
    """Embed the pairs or the comparisons in `path` and write the folder `out`; returns the record to print.

    The record's "signals" says which of the two they were taken for: `kind`, or else what the loss or an option is
    for, or what the columns say; its "understood" says how the table was read. `columns` are the readers' options:
    `left`, `right`, `weight`, `timestamp`, `left_features`, `right_features`, `split`, `start`, `holdout` for pairs,
    `anchor`, `near`, `far`, `response`, `form` and `raters` for comparisons, `header`, `delimiter` and `tables` for
    both. `next_queries` is the number of questions to propose, for comparisons. ValueError for a `kind` that is none,
    for options of the other kind, and for a table that can be read in two ways.
    """
    check_target(out)
    check_inputs(out, [path, *filter(None, [columns.get("start")])])
    given = {name: value for name, value in columns.items() if value is not None}
    common = {"out": out, "solver": solver, "seed": seed, "callback": callback}
    if _are_pairs(path, kind, given, loss):
        if next_queries:
            raise ValueError("--next-queries is for comparisons; pairs are not asked for")
        if dim == "auto":
            raise ValueError("--dim auto is for comparisons; give a number for pairs, for example --dim 64")
        _refuse(COMPARISONS, given, "comparisons")
        made = embed_interactions(path, dim=dim, loss=loss or "all-pairs", **given, **common)  # type: ignore[arg-type]
        return {"signals": "pairs", **made}
    _refuse(PAIRS, given, "pairs")
    made = embed_comparisons(path, dim=dim or 2, loss=loss or "ste", next_queries=next_queries, **given, **common)  # type: ignore[arg-type]
    return {"signals": "comparisons", **made}


def _refuse(options: tuple[str, ...], given: Record, kind: str) -> None:
    """ValueError if an option of the other kind of signals is given."""
    wrong = sorted(set(options) & set(given))
    if wrong:
        other = "comparisons" if kind == "pairs" else "pairs"
        raise ValueError(f"--{wrong[0].replace('_', '-')} is for {kind}; the table is read as {other} (--kind {other})")


def _are_pairs(path: str | os.PathLike, kind: str, given: Record, loss: str | None) -> bool:
    if kind not in KINDS:
        raise ValueError(f"--kind is {kind!r}; it must be pairs, comparisons or auto")
    if kind != "auto":
        return kind == "pairs"
    if loss is not None:
        return loss not in ORDINAL_LOSSES
    if set(given) & set(COMPARISONS):
        return False
    if {"left", "right", "start"} & set(given):
        return True
    return nk.data.kind_of(path, header=given.get("header"), delimiter=given.get("delimiter")) == "pairs"
