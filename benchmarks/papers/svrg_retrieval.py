"""SVRG-SBB, Table II and Figure 5: images ranked by embeddings, after every number of gradient passes, over seeds.

The convex baseline takes one fixed step, as section 5.1 says: eta = 2 of the STE implementation, which is 2 on our sum
per object. The batch takes one too, .5 (the longest that all losses bear) or SVRG's published one, as the paper gives
none. SGD and SVRG take their published constant steps, SBB the printed epsilon (2.5e-2 of the mean loss), starts are
from U(0, 1). How many passes the paper allows it does not say, so they are the axis. Every seed has images, answers
and a start of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ordinal.problems import comparisons_from_labels
from benchmarks.ordinal.retrieval import images, judge, regressed
from benchmarks.ordinal.table1 import PUBLISHED, USUAL
from benchmarks.papers.jobs import Job, Row
from benchmarks.papers.svrg_ablations import SBB_0, GramObjective, gram_points, project_gram
from benchmarks.papers.svrg_figure_2 import BATCH_STEP
from nearkin.contracts import Run
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.solvers import SGD, SVRG, GradientDescent

NOISES = (0.05, 0.1)
P = 10
CONVEX_STEP = 2.0
ALPHA = 0.1  # of the regularised least squares; its width is the median distance


@dataclass(frozen=True)
class Size:
    """Gradient passes that are judged, of the convex form up to `convex_passes`; seeds, of the convex form fewer."""

    checked: tuple[int, ...] = (3, 6, 12, 30)
    convex_passes: int = 12
    seeds: int = 10
    convex_seeds: int = 2
    answers: int = 70_000
    losses: tuple[str, ...] = ("gnmds", "ckl", "ste", "t-ste")


FULL, SMALL = Size(), Size((3, 6, 12, 30), 12, 1, 1, 2000)


def solvers(loss: str, n: int, answers: int) -> dict[str, tuple[Any, int]]:
    """Name -> (solver, gradient passes an epoch); published steps are per term."""
    steps = {name: PUBLISHED[name].get(loss, USUAL[name]) * answers / n for name in USUAL}
    return {
        "batch": (GradientDescent(step=BATCH_STEP), 1),
        "batch, SVRG's step": (GradientDescent(step=steps["svrg"] / answers), 1),
        "sgd": (SGD(step=steps["sgd"], decay=0.0), 1),
        "svrg": (SVRG(step=steps["svrg"]), 3),
        "svrg-sbb0": (SBB_0, 3),
        "svrg-sbb": (SVRG(epsilon=2.5, capped=False), 3),
        "svrg-sbb, ours": (SVRG(), 3),
    }


def convex(problem: GramObjective, G: np.ndarray, passes: int, look: Callable[[int, Row], None]) -> None:
    """Projected gradient with one fixed step, no line search and no halving."""
    G = project_gram(G)
    for k in range(1, passes + 1):
        G = project_gram(G - CONVEX_STEP * problem.value_and_gradient(G)[1])
        look(k, {"x": gram_points(G, P)})


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """SVRG-SBB, Table II and Figure 5: rows by number of passes for every loss, solver, noise and seed."""
    for seed, noise, loss in product(range(size.seeds), NOISES, size.losses):
        for name in (*solvers(loss, 1, 1), *(["cvx"] if seed < size.convex_seeds else [])):
            key = {"loss": loss, "solver": name, "noise": noise, "seed": seed}
            yield Job(key, partial(measured, data, size, key))


@lru_cache(maxsize=2)
def drawn(data: Path, answers: int, noise: float, seed: int) -> tuple[Any, np.ndarray]:
    """Images to learn from and to ask with, and noisy answers about the former."""
    shown = images(data / "mnist.npz", seed)
    return shown, comparisons_from_labels(shown[1], answers, noise=noise, random_state=seed).indices


def measured(data: Path, size: Size, key: Row) -> list[Row]:
    """A row for every number of passes that is judged; what is missing counts as a ranking by chance."""
    shown, answers = drawn(data, size.answers, key["noise"], key["seed"])
    n, loss, rows = len(shown[1]), get_loss(key["loss"], P), list[Row]()
    first = np.random.default_rng([key["seed"], 9]).uniform(0, 1, (n, P))
    if key["solver"] == "cvx":
        look = partial(keep, rows, size.checked, 1, shown)
        convex(GramObjective(answers, n, loss), first @ first.T, size.convex_passes, look)
        return rows
    solver, passes = solvers(key["loss"], n, size.answers)[key["solver"]]
    look = partial(keep, rows, size.checked, passes, shown)
    with suppress(FloatingPointError):
        solver.minimize(
            OrdinalObjective(answers, n, loss), pad_rows(first), Run(size.checked[-1] // passes, callback=look)
        )
    return rows


def keep(rows: list[Row], checked: tuple[int, ...], passes: int, shown: Any, epoch: int, record: Row) -> None:
    """Judge the embedding if its number of gradient passes is one of those checked."""
    features, y, fresh, asked = shown
    if epoch * passes not in checked:
        return
    X = unpad_rows(record["x"], P) if record["x"].shape[1] != P else record["x"]
    if not np.isfinite(X).all():
        return
    squared = ((features[:300, None].astype(np.float64) - features[None, :300]) ** 2).sum(axis=2)
    gamma = 1 / float(np.median(squared[np.triu_indices(300, 1)]))
    found = judge("", 0.0, X, y, regressed(features, X, fresh, gamma, ALPHA), asked, 0.0)
    kept = {key: round(found[key], 4) for key in ("map", "precision@60", "recall@40", "recall@60", "recall@100")}
    rows.append({"passes": epoch * passes} | kept)
