"""Which questions to ask: by `next_queries`, by published rules and at random; simulated answerers on six data sets.

    python -m benchmarks ordinal questions

A fifth of the answers is wrong; held-out errors are on 5,000 clean answers: after 4, 6, ... answers an object, and how
many answers an object the chosen questions need for the error of the random ones. Iris and wine had no part in the
choice of a rule.
"""

import csv
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax, xlogy
from sklearn.datasets import load_iris, load_wine

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from nearkin.data.comparisons.forms import orient
from nearkin.data.comparisons.votes import distinct_rows
from nearkin.embedding.ordinal.losses import MU
from nearkin.embedding.ordinal.questions import random_queries
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

WRONG = 0.2  # share of answers that are turned round
ROUND = 2  # questions an object between two fits
BUDGETS = (30, 40)  # random answers an object, whose error is to be reached
FIRST = 10  # answers an object from which on errors count in the mean
SETS = ("eurodist", "music", "plane", "clusters", "iris", "wine")
TRIED = 4000  # questions among which published rules choose

Score = Callable[[nk.OrdinalEmbedding, np.ndarray, np.random.Generator], np.ndarray]  # of questions (q, 3)


@dataclass(frozen=True)
class Truth:
    """What simulated answerers know: distances (n, n), and the dimension to embed in."""

    name: str
    distances: np.ndarray
    p: int

    def answers(self, rows: np.ndarray, rng: np.random.Generator, wrong: float = WRONG) -> Comparisons:
        """`rows` (m, 3) answered, a share `wrong` of them at random the other way."""
        true = self.distances[rows[:, 0], rows[:, 1]] < self.distances[rows[:, 0], rows[:, 2]]
        names = np.arange(len(self.distances))
        return Comparisons(orient(rows, true ^ (rng.random(len(rows)) < wrong)), names)

    def random(self, m: int, rng: np.random.Generator, wrong: float = WRONG) -> Comparisons:
        return self.answers(distinct_rows(len(self.distances), m, 3, rng), rng, wrong)


def truths(data: Path, seed: int) -> Iterator[Truth]:
    """Road distances of 21 cities; music artists as their own answers place them; points in the plane; six clusters; 40
    rows each of scikit-learn's iris and wine, in units of each column's spread."""
    with (data / "eurodist.csv").open(encoding="utf-8") as file:
        yield Truth("eurodist", np.array([row[1:] for row in list(csv.reader(file))[1:]], float), 2)
    X = artists(data)
    rng = np.random.default_rng([seed, 5])
    yield Truth("music", _distances(X[rng.permutation(len(X))[:40]]), 4)
    yield Truth("plane", _distances(rng.normal(0, 1, (40, 2))), 2)
    centres = rng.normal(0, 1.5, (6, 3))
    yield Truth("clusters", _distances(centres[rng.integers(0, 6, 40)] + rng.normal(0, 0.4, (40, 3))), 3)
    for name, load, p in (("iris", load_iris, 2), ("wine", load_wine, 4)):
        X = np.asarray(load(return_X_y=True)[0])
        yield Truth(name, _distances(((X - X.mean(0)) / X.std(0))[rng.permutation(len(X))[:40]]), p)


@cache
def artists(data: Path) -> np.ndarray:
    answers = nk.read_comparisons(data / "music_triplets.npz", missing="drop")
    return nk.OrdinalEmbedding(4, loss="t-ste", random_state=0).fit(answers).embedding_


def asked(data: Path, name: str, loss: str, rule: str, seeds: int) -> Row:
    """Mean error after 4, 6, ... answers an object, and its mean from `FIRST` on of each seed."""
    found = [active(next(t for t in truths(data, s) if t.name == name), loss, rule, s) for s in range(seeds)]
    error = {count: float(np.mean([errors[count] for errors in found])) for count in found[0]}
    means = [float(np.mean([error for count, error in errors.items() if int(count) >= FIRST])) for errors in found]
    return {"seeds": seeds, "error": error, "means": means}


def active(truth: Truth, loss: str, rule: str, seed: int, last: int = BUDGETS[-1]) -> dict[str, float]:
    """Error by answers an object up to `last`, of one seed."""
    n, rng, errors = len(truth.distances), np.random.default_rng([seed, 2]), {}
    answers, test = truth.random(4 * n, rng), truth.random(5000, np.random.default_rng([seed, 1]), 0.0)
    for per_object in range(4, last + 1, ROUND):
        model = nk.OrdinalEmbedding(truth.p, loss=loss, random_state=seed).fit(answers)
        errors[str(per_object)] = triplet_error(model.embedding_, test)
        asked = RULES[rule](model, ROUND * n, rng)
        answers = replace(answers, indices=np.concatenate([answers.indices, truth.answers(asked, rng).indices]))
    return errors


def ours(model: nk.OrdinalEmbedding, k: int, rng: np.random.Generator, rule: str = "information-gain") -> np.ndarray:
    return model.next_queries(k, rule=rule, random_state=rng)


def published(score: Score, model: nk.OrdinalEmbedding, k: int, rng: np.random.Generator) -> np.ndarray:
    """The k of `TRIED` new questions with the greatest score, heads in turn as in SALMON's ARR."""
    rows = random_queries(len(model.embedding_), model.comparisons_, TRIED, rng)
    rows = rows[np.argsort(-score(model, rows, rng), kind="stable")]
    by_head = np.argsort(rows[:, 0], kind="stable")
    firsts = np.flatnonzero(np.diff(rows[by_head, 0], prepend=-1))
    turns = np.empty(len(rows), np.int64)
    turns[by_head] = np.arange(len(rows)) - np.repeat(firsts, np.diff(firsts, append=len(rows)))
    return rows[np.argsort(turns, kind="stable")[:k]]


def uncertainty(model: nk.OrdinalEmbedding, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Answers that STE's model knows least."""
    del rng
    D = cdist(model.embedding_, model.embedding_, "sqeuclidean")
    return -np.abs(D[rows[:, 0], rows[:, 1]] - D[rows[:, 0], rows[:, 2]])


def crowd_kernel(model: nk.OrdinalEmbedding, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mutual information of answer and the head's place, which is at any object's (Tamuz et al. 2011, section 4)."""
    del rng
    D, answers = cdist(model.embedding_, model.embedding_, "sqeuclidean"), model.comparisons_.indices
    weights = np.zeros(D.shape)  # (head, place)
    np.add.at(weights, answers[:, 0], np.log(_crowd(D[answers[:, 1]], D[answers[:, 2]])))
    tau = softmax(weights, axis=1)[rows[:, 0]]
    chances = _crowd(D[rows[:, 1]], D[rows[:, 2]])
    return binary_entropy((tau * chances).sum(1)) - (tau * binary_entropy(chances)).sum(1)


def infotuple(model: nk.OrdinalEmbedding, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mutual information of answer and distances, which are Gaussian with the spread of all (Canal et al. 2020)."""
    D = cdist(model.embedding_, model.embedding_)
    near, far = (D[rows[:, 0], rows[:, a], None] + rng.normal(0, D.std(), (len(rows), 30)) for a in (1, 2))
    chances = _crowd(near**2, far**2)
    return binary_entropy(chances.mean(1)) - binary_entropy(chances).mean(1)


def _crowd(near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """The crowd kernel's P(near < far) of squared distances."""
    return (MU + far) / (2 * MU + near + far)


def binary_entropy(p: np.ndarray) -> np.ndarray:
    return -(xlogy(p, p) + xlogy(1 - p, 1 - p))


RULES: dict[str, Callable[[nk.OrdinalEmbedding, int, np.random.Generator], np.ndarray]] = {
    "random": partial(ours, rule="random"),
    "next_queries": ours,
    "crowd kernel": partial(published, crowd_kernel),
    "InfoTuple": partial(published, infotuple),
    "uncertainty": partial(published, uncertainty),
}


def _distances(X: np.ndarray) -> np.ndarray:
    return np.sqrt(((X[:, None].astype(float) - X) ** 2).sum(-1))


def needed(random: dict[str, float], chosen: dict[str, float], budget: int) -> float | None:
    """The first number of answers an object with less error than `budget` random ones, as a share of `budget`."""
    return next((int(n) / budget for n, error in chosen.items() if error < random[str(budget)]), None)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    seeds = 1 if given.quick else given.seeds
    for name, loss, rule in product(SETS, ("ste", "t-ste"), RULES):
        work = partial(asked, given.data, name, loss, rule, seeds)
        yield "ordinal_questions", Job({"data": name, "loss": loss, "rule": rule}, work)


def main() -> None:
    command(__doc__, jobs, {"wrong": WRONG}, seeds=10)
