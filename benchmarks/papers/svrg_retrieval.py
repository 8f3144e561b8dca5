"""SVRG-SBB, Table II and Figure 5: images ranked by embeddings, after every number of gradient passes, over seeds.

The convex baseline takes one fixed step, as section 5.1 says: eta = 2 of the STE implementation, which is 2 on our sum
per object. The batch takes one too, .5 (the longest that all losses bear) or SVRG's published one, as the paper gives
none. SGD and SVRG take their published constant steps, SBB the printed epsilon (2.5e-2 of the mean loss), starts are
from U(0, 1). How many passes the paper allows it does not say, so they are the axis. Every seed has images, answers
and a start of its own.
"""

from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.ordinal.retrieval import images, judge
from benchmarks.ordinal.table1 import PUBLISHED, USUAL
from benchmarks.papers.svrg_figure_2 import BATCH_STEP
from nearkin.contracts import Run
from nearkin.embedding.ordinal.feature_map import fit_feature_map
from nearkin.embedding.ordinal.gram import GramObjective, gram_points, project_gram
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.solvers import SGD, SVRG, GradientDescent

LOSSES = ("gnmds", "ckl", "ste", "t-ste")
NOISES = (0.05, 0.1)
CHECKED = (3, 6, 12, 30)  # gradient passes
SEEDS, CONVEX_SEEDS, CONVEX_PASSES = 10, 2, 12
ANSWERS, P = 70_000, 10
CONVEX_STEP = 2.0
ALPHA = 0.1  # of the regularised least squares; its width is the median distance


def solvers(loss: str, n: int) -> dict[str, tuple[Any, int]]:
    """Name -> (solver, gradient passes an epoch); published steps are per term."""
    steps = {name: PUBLISHED[name].get(loss, USUAL[name]) * ANSWERS / n for name in USUAL}
    return {
        "batch": (GradientDescent(step=BATCH_STEP), 1),
        "batch, SVRG's step": (GradientDescent(step=steps["svrg"] / ANSWERS), 1),
        "sgd": (SGD(step=steps["sgd"], decay=0.0), 1),
        "svrg": (SVRG(step=steps["svrg"]), 3),
        "svrg-sbb0": (SVRG(epsilon=0.0, capped=False), 3),
        "svrg-sbb": (SVRG(epsilon=2.5, capped=False), 3),
        "svrg-sbb, ours": (SVRG(), 3),
    }


def convex(problem: GramObjective, G: np.ndarray, look: Any) -> None:
    """Projected gradient with one fixed step, no line search and no halving."""
    G = project_gram(G)
    for k in range(1, CONVEX_PASSES + 1):
        G = project_gram(G - CONVEX_STEP * problem.value_and_gradient(G)[1])
        if k in CHECKED:
            look(k, {"x": gram_points(G, P)})


def svrg_retrieval(data: Path) -> list[dict[str, Any]]:
    """SVRG-SBB, Table II and Figure 5: a row a loss, solver, noise, seed and number of passes."""
    rows: list[dict[str, Any]] = []
    for seed, noise in product(range(SEEDS), NOISES):
        shown = images(data / "mnist.npz", seed)
        answers = nk.data.comparisons_from_labels(shown[1], ANSWERS, noise=noise, random_state=seed)
        for loss in LOSSES:
            problem = OrdinalObjective(answers.indices, len(shown[1]), get_loss(loss, P))
            first = np.random.default_rng([seed, 9]).uniform(0, 1, (len(shown[1]), P))
            for name, (solver, passes) in solvers(loss, len(shown[1])).items():
                row = {"loss": loss, "solver": name, "noise": noise, "seed": seed}
                look = partial(keep, rows, row, passes, shown)
                with suppress(FloatingPointError):  # what is missing counts as a ranking by chance
                    solver.minimize(problem, pad_rows(first), Run(CHECKED[-1] // passes, callback=look))
            if seed < CONVEX_SEEDS:
                gram = GramObjective(answers.indices, len(first), get_loss(loss, P))
                row = {"loss": loss, "solver": "cvx", "noise": noise, "seed": seed}
                convex(gram, first @ first.T, partial(keep, rows, row, 1, shown))
        last = {
            r["loss"] + " " + r["solver"]: round(r["map"], 3) for r in rows if r["seed"] == seed and r["passes"] == 12
        }
        print(seed, noise, last, flush=True)
    return rows


def keep(rows: list[Any], row: dict[str, Any], passes: int, shown: Any, epoch: int, record: dict[str, Any]) -> None:
    """Judge the embedding if its number of gradient passes is one of those checked."""
    features, y, fresh, asked = shown
    if epoch * passes not in CHECKED:
        return
    X = unpad_rows(record["x"], P) if record["x"].shape[1] != P else record["x"]
    if not np.isfinite(X).all():
        return
    squared = ((features[:300, None].astype(np.float64) - features[None, :300]) ** 2).sum(axis=2)
    gamma = 1 / float(np.median(squared[np.triu_indices(300, 1)]))
    seen = fit_feature_map(features, X, gamma=gamma, alpha=ALPHA, random_state=0)
    found = judge("", 0.0, X, y, seen(fresh), asked, 0.0)
    kept = {key: round(found[key], 4) for key in ("map", "precision@60", "recall@40", "recall@60", "recall@100")}
    rows.append(row | {"passes": epoch * passes} | kept)
