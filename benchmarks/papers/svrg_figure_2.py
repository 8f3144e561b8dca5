"""SVRG-SBB, Figure 2 as printed: fifty starts on one synthetic set, quartiles against gradient passes.

Uniform draws, starts from U(0, 1), epsilon 2.5e-2 of the mean loss, the published constant steps of SGD and SVRG. The
batch step is 2 on our sum per object, which is eta = 2 of the STE implementation that section 5.1 names. Two lines of
ours stand beside: epsilon .1 in our units, and the same from N(0, .1).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.ordinal.problems import TARGET, synthetic
from benchmarks.papers.svrg_draws import LOSSES, STARTS, M, N, P, published_step
from nearkin.contracts import Run
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.metrics import triplet_error
from nearkin.solvers import SGD, SVRG, GradientDescent

BATCH_STEP = 0.5
BATCHES = (5, 10, 20)  # beside single terms


@dataclass(frozen=True)
class Size:
    """Starts; gradient passes, of which t-STE needs 120 at the printed epsilon."""

    starts: int = 50
    passes: int = 150


FULL, SMALL = Size(), Size(2, 6)


def methods(loss: str) -> dict[str, tuple[Any, int, str]]:
    """Name -> (solver, gradient passes an epoch, start)."""
    return {
        "batch": (GradientDescent(step=BATCH_STEP), 1, "U(0, 1)"),
        "SGD": (SGD(step=published_step("sgd", loss), decay=0.0), 1, "U(0, 1)"),
        "SVRG": (SVRG(step=published_step("svrg", loss)), 3, "U(0, 1)"),
        "SVRG-SBB_0": (SVRG(epsilon=0.0, capped=False), 3, "U(0, 1)"),
        "SVRG-SBB": (SVRG(epsilon=2.5, capped=False), 3, "U(0, 1)"),
        **{f"SVRG-SBB, batches of {b}": (SVRG(epsilon=2.5, capped=False, batch_size=b), 3, "U(0, 1)") for b in BATCHES},
        "SVRG-SBB, our epsilon": (SVRG(epsilon=0.1), 3, "U(0, 1)"),
        "SVRG-SBB, our epsilon and start": (SVRG(epsilon=0.1), 3, "N(0, .1)"),
    }


def curve(loss: str, solver: Any, epochs: int, start: str, seed: int) -> tuple[list[float], list[float]]:
    """Held-out error before the first and after every epoch, 0.5 after an overflow; the step of every epoch."""
    train, test = synthetic(N, M, seed=0)
    problem = OrdinalObjective(train.indices, N, get_loss(loss, P))
    if not isinstance(solver, GradientDescent):
        solver = replace(solver, draws="uniform", random_state=seed)
    first = pad_rows(STARTS[start](np.random.default_rng([seed, 9])))
    errors, steps = [triplet_error(unpad_rows(first, P), test)], list[float]()

    def keep(epoch: int, record: dict[str, Any]) -> None:
        del epoch
        steps.append(float(record.get("step_size", np.nan)))
        errors.append(triplet_error(unpad_rows(record["x"], P), test))

    with suppress(FloatingPointError, ValueError):  # an exploded embedding has no distances to compare
        solver.minimize(problem, first, Run(epochs, callback=keep))
    return errors + [0.5] * (epochs + 1 - len(errors)), steps


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """SVRG-SBB, Figure 2 and the convergence behind Table I: quartiles over fifty starts."""
    del data
    for loss in LOSSES:
        for name, setting in methods(loss).items():
            yield Job({"loss": loss, "method": name}, partial(measured, loss, *setting, size))


def measured(loss: str, solver: Any, passes: int, start: str, size: Size) -> Row:
    """Quartiles of the error after every epoch, passes of every start to the target (None: never), runs that rose.

    Of the steps: how many times the largest of a run's second half is its smallest, for every start (Figure 1).
    """
    epochs = size.passes // passes
    runs = [curve(loss, solver, epochs, start, seed) for seed in range(size.starts)]
    curves = np.array([errors for errors, _ in runs])
    late = [steps[len(steps) // 2 :] for _, steps in runs]
    swings = [float(f"{max(steps) / min(steps):.4g}") if steps and min(steps) > 0 else None for steps in late]
    low, middle, high = np.percentile(curves, [25, 50, 75], axis=0).round(4).tolist()
    arrived = [int(np.argmax(c <= TARGET)) * passes if (c <= TARGET).any() else None for c in curves]
    risen = int((curves[:, -1] > curves.min(axis=1) + 0.05).sum())
    row: Row = {"passes": passes, "of": size.starts, "reached": arrived, "rose again": risen}
    return row | {"low": low, "median": middle, "high": high, "largest over smallest step": swings}
