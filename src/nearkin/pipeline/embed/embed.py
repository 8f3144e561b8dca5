"""Which of the two signals a table holds, and the job for it."""

import os
from typing import Any

import nearkin as nk
from nearkin._storage import check_inputs, check_target
from nearkin.contracts import Callback
from nearkin.embedding.ordinal.losses import LOSSES as ORDINAL_LOSSES
from nearkin.pipeline.embed.comparisons import embed_comparisons
from nearkin.pipeline.embed.interactions import embed_interactions

KINDS = ("pairs", "comparisons", "auto")


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
    **columns: str | None,
) -> dict[str, Any]:
    """Embed the pairs or the comparisons in `path` and write the folder `out`; returns the record to print.

    The record's "signals" says which of the two they were taken for: `kind`, or else what the loss is for, or what
    the columns say. `columns` are `left`, `right`, `left_features` and `right_features`, for pairs;
    `next_queries` is the number of questions to propose, for comparisons. ValueError for a
    `kind` that is none, and for options of pairs with comparisons.
    """
    check_target(out)
    check_inputs(out, [path])
    given = {name: value for name, value in columns.items() if value is not None}
    common = {"out": out, "solver": solver, "seed": seed, "callback": callback}
    if _are_pairs(path, kind, given, loss):
        if next_queries:
            raise ValueError("--next-queries is for comparisons; pairs are not asked for")
        made = embed_interactions(path, dim=dim or 64, loss=loss or "all-pairs", **given, **common)  # type: ignore[arg-type]
        return {"signals": "pairs", **made}
    if features := {"left_features", "right_features"} & set(given):
        option = "--" + min(features).replace("_", "-")
        raise ValueError(f"{option} is for pairs; comparisons have no features")
    made = embed_comparisons(path, dim=dim or 2, loss=loss or "ste", next_queries=next_queries, **common)  # type: ignore[arg-type]
    return {"signals": "comparisons", **made}


def _are_pairs(path: str | os.PathLike, kind: str, given: dict[str, str], loss: str | None) -> bool:
    if kind not in KINDS:
        raise ValueError(f"--kind is {kind!r}; it must be pairs, comparisons or auto")
    if kind != "auto":
        return kind == "pairs"
    if loss is not None:
        return loss not in ORDINAL_LOSSES
    return "left" in given or "right" in given or nk.data.holds_pairs(path)
