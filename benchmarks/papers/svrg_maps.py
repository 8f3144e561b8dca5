"""SVRG-SBB, Figures 3 and 4: maps of the European cities, and errors on the music artists."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import nearkin as nk
from benchmarks.jobs import Job, Row
from benchmarks.papers.svrg_synthetic import LOSSES, published_step
from examples.eurodist import align, ask, metric_scaling, read_distances
from nearkin.solvers import SGD, SVRG, Solver

FEW = 12  # gradient passes
PASSES = {"svrg-sbb": 3, "svrg-sbb0": 3, "svrg": 3, "sgd": 1}  # an epoch's


@dataclass(frozen=True)
class Size:
    """Answers about the cities that are learned from, and their draws; passes and splits of the artists' answers."""

    answers: int = 2000
    draws: int = 10
    budget: int = 60
    splits: int = 10


FULL, SMALL = Size(), Size(200, 1, 6, 1)


def eurodist(data: Path, size: Size) -> Iterator[Job]:
    """21 cities from 2,000 of the 3,990 answers, judged by the others and by the road distances."""
    for seed in range(size.draws):
        yield Job({"method": "metric scaling", "seed": seed}, partial(mapped, data, size, "", "", seed))
        for loss, solver in product(LOSSES, ("svrg-sbb", "gd")):
            key = {"method": f"{loss}, {solver}", "seed": seed}
            yield Job(key, partial(mapped, data, size, loss, solver, seed))


def mapped(data: Path, size: Size, loss: str, solver: str, seed: int) -> Row:
    """How well a map of the cities agrees with held-out answers, with the roads and with metric scaling."""
    _, distances = read_distances(data / "eurodist.csv")
    train, test = np.split(np.random.default_rng([seed, 5]).permutation(ask(distances)), [size.answers])
    X = reference = metric_scaling(distances)
    if loss:
        X = nk.OrdinalEmbedding(2, loss=loss, solver=solver, random_state=seed).fit(train).embedding_
        X = align(X.astype(float), reference)
    upper = np.triu_indices(len(X), 1)
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    return {
        "error": float(nk.metrics.triplet_error(X, test)),
        "rank correlation": float(spearmanr(apart[upper], distances[upper]).statistic),
        "km from metric scaling": float(np.linalg.norm(X - reference, axis=1).mean()),
    }


def music(data: Path, size: Size) -> Iterator[Job]:
    """SVRG-SBB, SBB_0, and the rivals with their published steps."""
    for loss in LOSSES:
        for solver in PASSES:
            yield Job({"loss": loss, "solver": solver}, partial(learned, data, size, loss, solver))


@cache
def artists(data: Path) -> nk.Comparisons:
    return nk.read_comparisons(data / "music_triplets.npz", missing="drop")


def learned(data: Path, size: Size, loss: str, solver: str) -> Row:
    """The median error on unseen answers by epochs, every split's after 12 passes, and runs that overflowed."""
    answers, passes = artists(data), PASSES[solver]
    epochs, curves, broken = size.budget // passes, [], 0
    for seed in range(size.splits):
        train, test = nk.data.split_comparisons(answers, 0.2, random_state=seed)
        curve: list[float] = []
        model = nk.OrdinalEmbedding(
            9, loss=loss, solver=solver_for(solver, loss, train), n_init=1, max_iter=epochs, tol=0.0,
            random_state=100 + seed,
        )  # fmt: skip
        try:
            model.fit(train, callback=partial(keep_error, curve, test))
        except FloatingPointError:
            broken += 1
        curves.append([0.5, *curve, *[0.5] * (epochs - len(curve))])  # a guess before and after
    median = [float(value) for value in np.median(curves, axis=0)]
    early = [round(float(curve[min(FEW // passes, epochs)]), 5) for curve in curves]
    return {"passes": passes, "diverged": broken, "of": size.splits, "early": early, "median": median}


def keep_error(curve: list[float], test: nk.Comparisons, step: int, record: Row) -> None:
    del step
    curve.append(nk.metrics.triplet_error(record["embedding"], test))


def solver_for(name: str, loss: str, answers: nk.Comparisons) -> Solver:
    if name.startswith("svrg-sbb"):
        return SVRG(epsilon=0.0, capped=False) if name == "svrg-sbb0" else SVRG()
    return {"svrg": SVRG, "sgd": SGD}[name](step=published_step(name, loss, len(answers), answers.n_objects))
