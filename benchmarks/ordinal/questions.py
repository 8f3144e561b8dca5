"""Which questions to ask: questions by `next_queries` and random ones, simulated answerers on four data sets.

    python -m benchmarks ordinal questions

A fifth of the answers is wrong; held-out errors are on 5,000 clean answers: after 4, 6, ... answers an object, and how
many answers an object the chosen questions need for the error of the random ones.
"""

import csv
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from nearkin.data.comparisons.reading import orient
from nearkin.data.comparisons.votes import distinct_rows
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

WRONG = 0.2  # share of answers that are turned round
ROUND = 2  # questions an object between two fits
BUDGETS = (30, 40)  # random answers an object, whose error is to be reached
RULES = ("random", "information-gain")


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
    """Road distances of 21 cities; music artists as their own answers place them; points in the plane; six clusters."""
    with (data / "eurodist.csv").open(encoding="utf-8") as file:
        yield Truth("eurodist", np.array([row[1:] for row in list(csv.reader(file))[1:]], float), 2)
    artists = nk.read_comparisons(data / "music_triplets.npz", on_invalid="drop")
    X = nk.OrdinalEmbedding(4, loss="t-ste", random_state=0).fit(artists).embedding_
    rng = np.random.default_rng([seed, 5])
    yield Truth("music", _distances(X[rng.permutation(len(X))[:40]]), 4)
    yield Truth("plane", _distances(rng.normal(0, 1, (40, 2))), 2)
    centres = rng.normal(0, 1.5, (6, 3))
    yield Truth("clusters", _distances(centres[rng.integers(0, 6, 40)] + rng.normal(0, 0.4, (40, 3))), 3)


def asked(data: Path, name: str, loss: str, rule: str, seeds: int) -> Row:
    """Mean error after 4, 6, ... answers an object."""
    errors: dict[str, list[float]] = {}
    for seed in range(seeds):
        truth = next(truth for truth in truths(data, seed) if truth.name == name)
        for count, error in active(truth, loss, rule, seed).items():
            errors.setdefault(count, []).append(error)
    return {"seeds": seeds, "error": {count: float(np.mean(found)) for count, found in errors.items()}}


def active(truth: Truth, loss: str, rule: str, seed: int) -> dict[str, float]:
    """Error by answers an object, of one seed."""
    n, rng, errors = len(truth.distances), np.random.default_rng([seed, 2]), {}
    answers, test = truth.random(4 * n, rng), truth.random(5000, np.random.default_rng([seed, 1]), 0.0)
    for per_object in range(4, BUDGETS[-1] + 1, ROUND):
        model = nk.OrdinalEmbedding(truth.p, loss=loss, random_state=seed).fit(answers)
        errors[str(per_object)] = triplet_error(model.embedding_, test)
        more = truth.answers(model.next_queries(ROUND * n, rule=rule), rng)
        answers = replace(answers, indices=np.concatenate([answers.indices, more.indices]))
    return errors


def rated(truth: Truth, per_object: int, seed: int) -> Comparisons:
    """Answers of eight raters: 0 and 1 answer at random, the others err in a tenth."""
    rng = np.random.default_rng([seed, 4])
    answers = truth.random(per_object * len(truth.distances), rng, 0.0)
    who = rng.integers(0, 8, len(answers))
    wrong = rng.random(len(answers)) < np.where(who < 2, 0.5, 0.1)
    return replace(answers, indices=orient(answers.indices, ~wrong), annotators=who)


def _distances(X: np.ndarray) -> np.ndarray:
    return np.sqrt(((X[:, None].astype(float) - X) ** 2).sum(-1))


def needed(random: dict[str, float], chosen: dict[str, float], budget: int) -> float | None:
    """The first number of answers an object with less error than `budget` random ones, as a share of `budget`."""
    return next((int(n) / budget for n, error in chosen.items() if error < random[str(budget)]), None)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    seeds = 1 if given.quick else given.seeds
    for name, loss, rule in product(("eurodist", "music", "plane", "clusters"), ("ste", "t-ste"), RULES):
        work = partial(asked, given.data, name, loss, rule, seeds)
        yield "ordinal_questions", Job({"data": name, "loss": loss, "rule": rule}, work)


def main() -> None:
    command(__doc__, jobs, {"wrong": WRONG}, seeds=10)
