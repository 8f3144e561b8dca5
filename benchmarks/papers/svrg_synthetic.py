"""SVRG-SBB, Table I and Figure 2 as printed: synthetic answers, error on unseen ones against gradient passes.

Uniform draws, starts from U(0, 1), epsilon 2.5e-2 of the mean loss, which is 2.5 on our sum per object (n / m times the
sum, 100 objects), the published constant steps of SGD and SVRG. The batch step is 2 on our sum per object, which is
eta = 2 of the STE implementation that section 5.1 names. Figure 2 has two lines of ours beside them: epsilon .1 in our
units, and the same from N(0, .1).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.ordinal.problems import TARGET, synthetic
from nearkin.contracts import Run
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.metrics import triplet_error
from nearkin.solvers import SGD, SVRG, GradientDescent

N, M, P = 100, 10_000, 10  # objects, answers, dimensions
LOSSES = ("gnmds", "ckl", "ste", "t-ste")  # CKL itself: eq. 47, printed for it, is STE's eq. 48
# The authors' published steps, per term of f_q
PUBLISHED = {"svrg": {"t-ste": 0.02}, "sgd": {"t-ste": 5e-4}}
USUAL = {"svrg": 5e-4, "sgd": 1e-4}
BATCH_STEP = 0.5
BATCHES = (5, 10, 20)  # beside single terms
BOX, NORMAL = "U(0, 1)", "N(0, .1)"
STARTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    NORMAL: lambda rng: rng.normal(0, 0.1, (N, P)),
    BOX: lambda rng: rng.uniform(0, 1, (N, P)),
}


@dataclass(frozen=True)
class Size:
    """Table I: sets of answers, and passes after which a run counts as "not reached" (of SVRG-SBB, of its rivals).

    Figure 2: starts on one set, and passes, of which t-STE needs 120 at the printed epsilon.
    """

    seeds: int = 6
    budget: int = 600
    starts: int = 50
    passes: int = 150


FULL, SMALL = Size(), Size(1, 6, 2, 6)


def published_step(solver: str, loss: str, answers: int = M, objects: int = N) -> float:
    """The authors' step in our units: on f = n / m sum f_q an epoch of m terms moves by step m / n."""
    return PUBLISHED[solver].get(loss, USUAL[solver]) * answers / objects


def curve(loss: str, solver: Any, epochs: int, start: str, seed: int, answers: int) -> tuple[list[float], list[float]]:
    """Held-out error before the first and after every epoch, 0.5 after an overflow; the step of every epoch.

    `seed` draws the start and the terms, `answers` the set.
    """
    train, test = synthetic(N, M, seed=answers)
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


def arrival(errors: list[float], passes: int) -> int | None:
    """Gradient passes to an error of 0.15; None: never."""
    return next((passes * epoch for epoch, error in enumerate(errors) if error <= TARGET), None)


def table_1(data: Path, size: Size) -> Iterator[Job]:
    """Passes to 0.15 on so many sets of answers."""
    del data
    for loss in LOSSES:
        for name, solver, passes, budget in (
            ("SVRG-SBB", SVRG(epsilon=2.5), 3, size.passes),
            ("SGD", SGD(step=published_step("sgd", loss), decay=0.0), 1, size.budget),
            ("SVRG", SVRG(step=published_step("svrg", loss)), 3, size.budget),
        ):
            yield Job({"loss": loss, "method": name}, partial(reached, loss, solver, passes, budget // passes, size))


def reached(loss: str, solver: Any, passes: int, epochs: int, size: Size) -> Row:
    """Gradient passes of every set to the target, and the final errors."""
    curves = [curve(loss, solver, epochs, BOX, seed, answers=seed)[0] for seed in range(size.seeds)]
    passed = [arrival(errors, passes) for errors in curves]
    return {"passes": passed, "final": [round(float(errors[-1]), 4) for errors in curves]}


def methods(loss: str) -> dict[str, tuple[Any, int, str]]:
    """The lines of Figure 2: name -> (solver, gradient passes an epoch, start)."""
    return {
        "batch": (GradientDescent(step=BATCH_STEP), 1, BOX),
        "SGD": (SGD(step=published_step("sgd", loss), decay=0.0), 1, BOX),
        "SVRG": (SVRG(step=published_step("svrg", loss)), 3, BOX),
        "SVRG-SBB_0": (SVRG(epsilon=0.0, capped=False), 3, BOX),
        "SVRG-SBB": (SVRG(epsilon=2.5, capped=False), 3, BOX),
        **{f"SVRG-SBB, batches of {b}": (SVRG(epsilon=2.5, capped=False, batch_size=b), 3, BOX) for b in BATCHES},
        "SVRG-SBB, our epsilon": (SVRG(epsilon=0.1), 3, BOX),
        "SVRG-SBB, our epsilon and start": (SVRG(epsilon=0.1), 3, NORMAL),
    }


def figure_2(data: Path, size: Size) -> Iterator[Job]:
    """Quartiles over fifty starts."""
    del data
    for loss in LOSSES:
        for name, setting in methods(loss).items():
            yield Job({"loss": loss, "method": name}, partial(quartiles, loss, *setting, size))


def quartiles(loss: str, solver: Any, passes: int, start: str, size: Size) -> Row:
    """Quartiles of the error after every epoch, passes of every start to the target, runs that rose.

    Of the steps: how many times the largest of a run's second half is its smallest, for every start (Figure 1).
    """
    runs = [curve(loss, solver, size.passes // passes, start, seed, answers=0) for seed in range(size.starts)]
    curves = np.array([errors for errors, _ in runs])
    late = [steps[len(steps) // 2 :] for _, steps in runs]
    swings = [float(f"{max(steps) / min(steps):.4g}") if steps and min(steps) > 0 else None for steps in late]
    low, middle, high = np.percentile(curves, [25, 50, 75], axis=0).round(4).tolist()
    risen = int((curves[:, -1] > curves.min(axis=1) + 0.05).sum())
    row: Row = {"passes": passes, "of": size.starts, "rose again": risen}
    row["reached"] = [arrival(errors, passes) for errors, _ in runs]
    return row | {"low": low, "median": middle, "high": high, "largest over smallest step": swings}
