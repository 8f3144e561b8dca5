"""The work of `nearkin embed` on a table of pairs: read, hold out, fit, measure, write."""

import time
from os import PathLike
from typing import Any

import nearkin as nk
from nearkin._distributed import current
from nearkin.contracts import Callback
from nearkin.records import Interactions


def embed_interactions(
    path: str | PathLike,
    *,
    out: str | PathLike,
    left: str | None = None,
    right: str | None = None,
    weight: str | None = None,
    timestamp: str | None = None,
    split: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    min_weight: float | None = None,
    duplicates: str = "sum",
    left_features: str | PathLike | None = None,
    right_features: str | PathLike | None = None,
    dim: int = 64,
    solver: str = "auto",
    loss: str = "all-pairs",
    omega: float | str = "auto",
    regularization: float | str = "auto",
    max_steps: int | None = None,
    holdout: float = 0.1,
    seed: int | None = 0,
    callback: Callback | None = None,
) -> dict[str, Any]:
    """Embed both sides of a table of pairs and save the model as the folder `out`; return the record to print.

    A table with a split is fitted on its training pairs and measured on its test pairs. Without one, the share
    `holdout` of the pairs is held out to measure, and the saved model is then fitted on all pairs with the settings
    that were found; `holdout=0` measures nothing.
    """
    start = time.perf_counter()
    pairs = nk.read_interactions(
        path, left=left, right=right, weight=weight, timestamp=timestamp, split=split, header=header,
        delimiter=delimiter, min_weight=min_weight,
        duplicates=duplicates, left_features=left_features, right_features=right_features,
    )  # fmt: skip
    model = nk.TwoTower(
        dim,
        solver=solver,
        loss=loss,
        regularization=regularization,
        random_state=seed,
    )
    if omega != "auto":
        model.set_params(loss__omega=omega)
    if max_steps is not None:
        model.set_params(solver__max_iter=max_steps)
    metrics: dict[str, float] = {}
    if pairs.split is not None and (pairs.split == 0).any():
        parts = nk.data.split_given(pairs)
        validation = parts.valid if len(parts.valid) else None
        model.fit(parts.train, validation=validation, callback=callback)
        metrics = _measure(model, parts.test)
    else:
        if holdout:
            parts = nk.data.split_random(pairs, valid=0, test=holdout, random_state=seed)
            model.fit(parts.train, callback=callback)
            metrics = _measure(model, parts.test)
            model.set_params(regularization=model.regularization_)
        model.fit(pairs, callback=callback)
    if current().rank == 0:
        model.save(out)
    m, n = pairs.shape
    return {
        "understood": str(pairs.source),
        "out": str(out), "left": m, "right": n, "pairs": len(pairs), "dim": dim, "loss": loss, "solver": model.solver_,
        "omega": model.omega_, "regularization": model.regularization_, "steps": len(model.history_),
        "seconds": time.perf_counter() - start, **metrics,
    }  # fmt: skip


def _measure(model: "nk.TwoTower", held_out: Interactions) -> dict[str, float]:
    """Recall@20 and NDCG@100 of held-out pairs, as far as there are any."""
    if not len(held_out):
        return {}
    found = model.evaluate(held_out, k=(20, 100))
    return {name: found[name] for name in ("recall@20", "ndcg@20", "ndcg@100", "mrr@100")}
