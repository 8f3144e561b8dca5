"""Which questions to ask: by `next_queries`, by published rules and at random; simulated answerers on 13 data sets.

    python -m benchmarks ordinal questions

Held-out errors are on 5,000 clean answers: after 4, 6, ... answers an object, and how many answers an object the chosen
questions need for the error of the random ones. On five sets a fifth of the answers is wrong, and iris and wine had no
part in the choice of a rule. On the others, which are asked for rankings too, they are right, or as by STE's model; the
last two had no part.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax, xlogy
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from nearkin.data.comparisons.forms import orient
from nearkin.data.comparisons.votes import distinct_rows, triplets_of
from nearkin.embedding.ordinal.answers import join
from nearkin.embedding.ordinal.losses import MU
from nearkin.embedding.ordinal.questions import random_queries
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

WRONG = 0.2  # share of answers that are turned round
ROUND = 2  # questions an object between two fits
BUDGETS = (30, 40)  # random answers an object, whose error is to be reached
FIRST = 10  # answers an object from which on errors count in the mean
SETS = ("music", "plane", "clusters", "iris", "wine")
RANKED = (*(f"{p} dimensions{answers}" for p, answers in product((2, 3, 5), ("", ", noise"))), "cancer", "diabetes")
ASKED = ("random", "next_queries", "random rankings", "chosen rankings")
TRIED = 4000  # questions among which published rules choose

Score = Callable[[nk.OrdinalEmbedding, np.ndarray, np.random.Generator], np.ndarray]  # of questions (q, 3)


@dataclass(frozen=True)
class Truth:
    """What simulated answerers know: distances (n, n), and the dimension to embed in."""

    name: str
    distances: np.ndarray
    p: int
    wrong: float = WRONG  # share of answers turned round
    noise: float = 0.0  # times that of STE's model, and of Plackett and Luce's for rankings

    def answers(self, rows: np.ndarray, rng: np.random.Generator, *, clean: bool = False) -> Comparisons:
        """`rows` (m, 3) answered, or (m, w) ranked."""
        far = self.distances[rows[:, :1], rows[:, 1:]] ** 2
        if self.noise and not clean:
            far -= self.noise * rng.gumbel(size=far.shape)
        ranked = np.hstack([rows[:, :1], np.take_along_axis(rows[:, 1:], far.argsort(axis=1), axis=1)])
        triplets = triplets_of(ranked)
        right = rng.random(len(triplets)) >= (0 if clean else self.wrong)
        names, judgements = np.arange(len(self.distances)), np.arange(len(triplets)) * len(rows) // len(triplets)
        return Comparisons(orient(triplets, right), names, judgements=judgements)

    def random(self, m: int, rng: np.random.Generator, *, width: int = 3, clean: bool = False) -> Comparisons:
        return self.answers(distinct_rows(len(self.distances), m, width, rng), rng, clean=clean)


def truths(data: Path, seed: int) -> Iterator[Truth]:
    """Music artists as their own answers place them; points in the plane; six clusters; 40 rows each of four tables of
    scikit-learn, in units of each column's spread; points in 2, 3 and 5 dimensions."""
    X = artists(data)
    rng = np.random.default_rng([seed, 5])
    yield Truth("music", distances(X[rng.permutation(len(X))[:40]]), 4)
    yield Truth("plane", distances(rng.normal(0, 1, (40, 2))), 2)
    centres = rng.normal(0, 1.5, (6, 3))
    yield Truth("clusters", distances(centres[rng.integers(0, 6, 40)] + rng.normal(0, 0.4, (40, 3))), 3)
    tables = (("iris", load_iris, 2), ("wine", load_wine, 4), ("cancer", load_breast_cancer, 5))
    for name, load, p in (*tables, ("diabetes", load_diabetes, 5)):
        X = np.asarray(load(return_X_y=True)[0])
        X = ((X - X.mean(0)) / X.std(0))[rng.permutation(len(X))[:40]]
        yield Truth(name, distances(X), p) if p < 5 else Truth(name, distances(X), p, 0.0, 1.0)
    for name in RANKED[:-2]:
        p = int(name[0])
        yield Truth(name, distances(rng.normal(0, 1, (40, p))), p, 0.0, float(name.endswith("noise")))


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


def ranked(data: Path, name: str, seeds: int) -> Row:
    """For each seed the error of 40 random triplets an object, and the share of these answers that others need."""
    shares = []
    for seed in range(seeds):
        truth = next(truth for truth in truths(data, seed) if truth.name == name)
        random, *others = (active(truth, "ste", rule, seed) for rule in ASKED)
        shares.append([random[str(BUDGETS[-1])], *(needed(random, other, BUDGETS[-1]) for other in others)])
    return {"seeds": seeds, "shares": shares}


def active(truth: Truth, loss: str, rule: str, seed: int, last: int = BUDGETS[-1]) -> dict[str, float]:
    """Error by answers an object up to `last`, of rankings up to a third of it, of one seed."""
    n, rng, errors, ranks = len(truth.distances), np.random.default_rng([seed, 2]), {}, rule.endswith("rankings")
    first, step, last, width = (1, 0.5, last // 3, 5) if ranks else (4, ROUND, last, 3)
    answers = truth.random(first * n, rng, width=width)
    test = truth.random(5000, np.random.default_rng([seed, 1]), clean=True)
    for per_object in np.arange(first, last + step, step):
        model = nk.OrdinalEmbedding(truth.p, loss=loss, random_state=seed).fit(answers)
        errors[f"{per_object:g}"] = triplet_error(model.embedding_, test)
        answers = join(answers, truth.answers(RULES[rule](model, round(step * n), rng), rng))
    return errors


def ours(model: nk.OrdinalEmbedding, k: int, rng: np.random.Generator, **settings: str) -> np.ndarray:
    return model.next_queries(k, random_state=rng, **settings)


def published(score: Score, model: nk.OrdinalEmbedding, k: int, rng: np.random.Generator) -> np.ndarray:
    """The k of `TRIED` new questions with the greatest score, heads in turn as in SALMON's ARR."""
    rows = random_queries(len(model.embedding_), model.comparisons_, TRIED, rng)
    rows = rows[np.argsort(-score(model, rows, rng), kind="stable")]
    by_head = np.argsort(rows[:, 0], kind="stable")
    firsts = np.flatnonzero(np.diff(rows[by_head, 0], prepend=-1))
    turns = np.empty(len(rows), np.int64)
    turns[by_head] = np.arange(len(rows)) - np.repeat(firsts, np.diff(firsts, append=len(rows)))
    return rows[np.argsort(turns, kind="stable")[:k]]


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
    "random rankings": partial(ours, rule="random", form="ranking"),
    "chosen rankings": partial(ours, form="ranking"),
}


def distances(X: np.ndarray) -> np.ndarray:
    return np.sqrt(((X[:, None].astype(float) - X) ** 2).sum(-1))


def needed(random: dict[str, float], chosen: dict[str, float], budget: int) -> float | None:
    """The first number of answers an object with less error than `budget` random ones, as a share of `budget`."""
    return next((float(n) / budget for n, error in chosen.items() if error < random[str(budget)]), None)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    seeds = 1 if given.quick else given.seeds
    for name, loss, rule in product(SETS, ("ste", "t-ste"), list(RULES)[:-2]):
        work = partial(asked, given.data, name, loss, rule, seeds)
        yield "ordinal_questions", Job({"data": name, "loss": loss, "rule": rule}, work)
    for name in RANKED:
        yield "ordinal_rankings", Job({"data": name}, partial(ranked, given.data, name, seeds))


def main() -> None:
    command(__doc__, jobs, {"wrong": WRONG}, seeds=10)
