"""Music artists (SVRG-SBB section 5.3): held-out error of every loss over ten random 80/20 splits, and Figure 4."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.ordinal.table1 import median_curve
from nearkin.embedding.ordinal.losses import LOSSES


def measure(quick: bool, data: Path) -> dict[str, Any]:
    answers = nk.read_comparisons(data / "music_triplets.npz", on_invalid="drop")
    splits = range(2 if quick else 10)
    rows, curves = [], {}
    for loss in LOSSES:
        for p in (9, 2):
            errors, times = [], []
            for seed in splits:
                train, test = nk.data.split_comparisons(answers, 0.2, random_state=seed)
                began = time.process_time()
                model = nk.OrdinalEmbedding(p, loss=loss, random_state=100 + seed).fit(train)
                times.append(1e3 * (time.process_time() - began))
                errors.append(1 - model.score(test))
            rows.append({"loss": loss, "p": p, "error": np.mean(errors), "std": np.std(errors), "ms": np.median(times)})
            print("{loss:6} p = {p}: held-out error {error:.3f} +- {std:.3f}, {ms:.0f} ms a fit".format(**rows[-1]))
        curves[loss] = {
            solver: error_curve(answers, loss, solver, passes, splits)
            for solver, passes in (("svrg-sbb", 3), ("svrg", 3), ("sgd", 1), ("gd", 1), ("auto", 1))
        }
    return {
        "comparisons": len(answers),
        "dropped": answers.n_dropped,
        "splits": len(splits),
        "rows": rows,
        "curves": curves,
    }


def error_curve(answers: Any, loss: str, solver: str, passes: int, splits: range) -> dict[str, Any]:
    curves = []
    for seed in splits:
        train, test = nk.data.split_comparisons(answers, 0.2, random_state=seed)
        curve: list[float] = []
        watch = partial(keep_error, curve, test)
        nk.OrdinalEmbedding(
            9, loss=loss, solver=solver, n_init=1, max_iter=60 // passes, tol=0.0, random_state=100 + seed
        ).fit(train, callback=watch)
        curves.append(curve)
    return median_curve(curves, passes)


def keep_error(curve: list[float], test: Any, step: int, record: dict[str, Any]) -> None:
    del step
    curve.append(nk.metrics.triplet_error(record["embedding"], test))
