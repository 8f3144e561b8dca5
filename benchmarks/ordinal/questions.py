"""Which questions, which likelihood, whose answers: simulated answerers on four data sets.

Held-out errors are on 5,000 clean answers. "active": questions by `next_queries` and random ones, a fifth of the
answers wrong, and how many answers an object the chosen ones need for the error of the random ones. "choices": the odd
one of three as one event and as two comparisons. "raters": eight raters, two of whom toss coins, weights equal and
estimated. "intervals": how often `error_interval` at 90 % holds the error on later answers.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin.data.comparisons.reading import orient
from nearkin.data.comparisons.votes import distinct_rows
from nearkin.embedding.ordinal.answers import error_interval
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

WRONG = 0.2  # share of answers that are turned round
ROUND = 2  # questions an object between two fits
BUDGETS = (30, 40)  # random answers an object, whose error is to be reached


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


def measure(quick: bool, data: Path) -> dict[str, Any]:
    parts: dict[str, Callable[[Truth, int], list[dict[str, Any]]]] = {
        "active": active, "choices": choices, "raters": raters, "intervals": intervals,
    }  # fmt: skip
    record: dict[str, Any] = {}
    for name, part in parts.items():
        seeds = 1 if quick else 10 if name == "active" else 20
        found: dict[tuple, list[dict[str, Any]]] = {}
        for seed in range(seeds):
            for truth in truths(data, seed):
                for row in part(truth, seed):
                    key = tuple(value for value in row.values() if isinstance(value, str))
                    found.setdefault((truth.name, *key), []).append(row)
        record[name] = [{"data": key[0], "seeds": seeds, **_mean(rows)} for key, rows in found.items()]
        for row in record[name]:
            print(row)
    for row in record["active"]:
        row["needed"] = {str(budget): _needed(record["active"], row, budget) for budget in BUDGETS}
    return record


def active(truth: Truth, seed: int) -> list[dict[str, Any]]:
    """Error after 4, 6, ... answers an object, a row for each rule and loss."""
    n, rows = len(truth.distances), []
    test = truth.random(5000, np.random.default_rng([seed, 1]), 0.0)
    for loss in ("ste", "t-ste"):
        for rule in ("random", "information-gain"):
            rng = np.random.default_rng([seed, 2])
            answers, errors = truth.random(4 * n, rng), {}
            for per_object in range(4, BUDGETS[-1] + 1, ROUND):
                model = nk.OrdinalEmbedding(truth.p, loss=loss, random_state=seed).fit(answers)
                errors[str(per_object)] = triplet_error(model.embedding_, test)
                more = truth.answers(model.next_queries(ROUND * n, rule=rule), rng)
                answers = replace(answers, indices=np.concatenate([answers.indices, more.indices]))
            rows.append({"loss": loss, "rule": rule, "error": errors})
    return rows


def choices(truth: Truth, seed: int) -> list[dict[str, Any]]:
    """Error after 15 odd-one-out answers an object: by the model's own chances, and with a fifth at random."""
    n, rows = len(truth.distances), []
    test = truth.random(5000, np.random.default_rng([seed, 1]), 0.0)
    for answerer in ("luce", "flips"):
        answers = _odd_one_out(truth, 15 * n, answerer, np.random.default_rng([seed, 3]))
        for loss in ("ste", "t-ste"):
            ways = {"two, default": ("auto", "separate"), "two, L-BFGS": ("l-bfgs", "separate"),
                    "one event": ("l-bfgs", "joint")}  # fmt: skip
            errors = {}
            for name, (solver, how) in ways.items():
                model = nk.OrdinalEmbedding(truth.p, loss=loss, solver=solver, random_state=seed)
                errors[name] = triplet_error(model.fit(answers, choices=how).embedding_, test)
            rows.append({"answerer": answerer, "loss": loss, "error": errors})
    return rows


def rated(truth: Truth, per_object: int, seed: int) -> Comparisons:
    """Answers of eight raters: 0 and 1 answer at random, the others err in a tenth."""
    rng = np.random.default_rng([seed, 4])
    answers = truth.random(per_object * len(truth.distances), rng, 0.0)
    who = rng.integers(0, 8, len(answers))
    wrong = rng.random(len(answers)) < np.where(who < 2, 0.5, 0.1)
    return replace(answers, indices=orient(answers.indices, ~wrong), annotators=who)


def raters(truth: Truth, seed: int) -> list[dict[str, Any]]:
    """Error with equal and with estimated weights, and without the two who toss coins; the others err in a tenth."""
    rows = []
    test = truth.random(5000, np.random.default_rng([seed, 1]), 0.0)
    for loss in ("ste", "t-ste"):
        for per_object in (10, 30):
            answers = rated(truth, per_object, seed)
            model = nk.OrdinalEmbedding(truth.p, loss=loss, random_state=seed)
            errors = {
                "equal": triplet_error(model.fit(answers).embedding_, test),
                "known": triplet_error(model.fit(answers.take(answers.annotators >= 2)).embedding_, test),
                "estimated": triplet_error(model.fit(answers, raters="estimated").embedding_, test),
            }
            weights = model.rater_reliability_ or {}
            errors["found"] = float(set(sorted(weights, key=lambda name: weights[name])[:2]) == {0, 1})
            rows.append({"loss": loss, "answers": str(per_object), "error": errors})
    return rows


def intervals(truth: Truth, seed: int) -> list[dict[str, Any]]:
    """Whether the 90 % interval from 6 held-out answers an object holds the error on 20,000 later answers."""
    rng, n = np.random.default_rng([seed, 6]), len(truth.distances)
    model = nk.OrdinalEmbedding(truth.p, random_state=seed).fit(truth.random(24 * n, rng))
    low, high = error_interval(model.embedding_, truth.random(6 * n, rng), random_state=seed)
    later = triplet_error(model.embedding_, truth.random(20_000, rng))
    return [{"error": {"held": float(low <= later <= high), "width": high - low}}]


def _odd_one_out(truth: Truth, m: int, answerer: str, rng: np.random.Generator) -> Comparisons:
    rows = distinct_rows(len(truth.distances), m, 3, rng)
    sides = [truth.distances[rows[:, a], rows[:, b]] ** 2 for a, b in ((1, 2), (0, 2), (0, 1))]
    apart = np.stack(sides, axis=1)
    if answerer == "luce":  # exp(-d^2) with the median squared distance at 3: a fifth to a third err
        odd = (rng.gumbel(size=apart.shape) - 3 * apart / np.median(apart)).argmax(axis=1)
    else:
        odd = np.where(rng.random(m) < WRONG, rng.integers(0, 3, m), apart.argmin(axis=1))
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[odd]
    names = np.arange(len(truth.distances))
    return nk.data.comparisons_from_array(np.take_along_axis(rows, order, axis=1), objects=names, form="odd-one-out")


def _distances(X: np.ndarray) -> np.ndarray:
    return np.sqrt(((X[:, None].astype(float) - X) ** 2).sum(-1))


def _mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = rows[0]["error"]
    mean = {name: float(np.mean([row["error"][name] for row in rows])) for name in names}
    return {**{name: value for name, value in rows[0].items() if name != "error"}, "error": mean}


def _needed(rows: list[dict[str, Any]], row: dict[str, Any], budget: int) -> float | None:
    """The first number of answers an object with the mean error of `budget` random ones, as a share of `budget`."""
    goal = next(
        other["error"][str(budget)]
        for other in rows
        if (other["data"], other["loss"], other["rule"]) == (row["data"], row["loss"], "random")
    )
    return next((int(count) / budget for count, error in row["error"].items() if error <= goal), None)
