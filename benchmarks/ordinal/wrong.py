"""The losses where a tenth of the answers is wrong, and where none is: error on answers that were not trained on.

    python -m benchmarks ordinal wrong

Planted answers are judged by clean ones, those of people (music) by a fifth of their questions. iris and wine had no
part in the choice of the losses that "auto" tries.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from benchmarks.ordinal.problems import synthetic
from benchmarks.ordinal.questions import Truth, distances, truths
from nearkin.records import Comparisons

SETS = ("planted, 3 dimensions", "planted, 5 dimensions", "iris", "wine", "no wrong ones", "STE's own model", "music")
LOSSES: dict[str, dict[str, Any]] = {
    "auto": {},
    "ste": {"loss": "ste"},
    "ste, a tenth random": {"loss": "ste", "loss_parameter": 0.1},
    "t-ste": {"loss": "t-ste"},
    "soe": {"loss": "soe"},
}


def answered(name: str, data: Path, seed: int) -> tuple[int, Comparisons, Comparisons]:
    """The dimension, answers to train on and to judge by."""
    if name == "music":
        answers = nk.read_comparisons(data / "music_triplets.npz", missing="drop")
        return 4, *nk.data.split_comparisons(answers, 0.2, by="questions", random_state=seed)
    if name in ("iris", "wine"):
        truth = next(truth for truth in truths(data, seed) if truth.name == name)
        train, test = (np.random.default_rng([seed, number]) for number in (1, 2))
        return truth.p, replace(truth, wrong=0.1).random(2_000, train), truth.random(5_000, test, clean=True)
    p = 5 if name.startswith("planted, 5") else 3
    train, test = synthetic(100, 14_000 if p == 5 else 10_000, seed, p=p, noise=0.1 * name.startswith("planted"))
    if name.startswith("STE"):
        points = np.random.default_rng([seed, 1]).normal(0, 1, (100, p))
        clean = nk.data.comparisons_from_vectors(points, 20_000, random_state=seed)
        asked = Truth(name, distances(points), p, wrong=0.0, noise=1.0)
        return p, asked.answers(train.indices, np.random.default_rng([seed, 4])), clean
    return p, train, test


def measured(name: str, loss: str, data: Path, seeds: int) -> Row:
    """The error of each seed, and the losses that "auto" chose."""
    errors, chosen = [], []
    for seed in range(seeds):
        p, train, test = answered(name, data, seed)
        model = nk.OrdinalEmbedding(p, random_state=seed, **LOSSES[loss]).fit(train)
        errors.append(1 - model.score(test))
        chosen.append(f"{model.loss_} {model.loss_parameter_ or ''}".strip())
    return {"errors": errors, "chosen": chosen}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    seeds = 1 if given.quick else given.seeds
    for name, loss in product(SETS, LOSSES):
        yield "ordinal_wrong", Job({"data": name, "loss": loss}, partial(measured, name, loss, given.data, seeds))


def main() -> None:
    command(__doc__, jobs, {}, seeds=10)
