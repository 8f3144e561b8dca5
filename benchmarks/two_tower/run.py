"""Two-tower learning: every solver and loss, NDCG@100 and Recall@20 against seconds, implicit's ALS beside.

    python -m benchmarks two_tower --sets ml100k gowalla --ways als adam
    python -m benchmarks two_tower public     as published: validation pairs are fitted, all rivals
    python -m benchmarks two_tower bytes      through indexes of so many bytes a right
    python -m benchmarks two_tower scaling    one gradient and one Gauss-Newton product against m + n
    python -m benchmarks two_tower updates    new users and a night's pairs without a new fit

Means over the seeds. Seconds are CPU seconds of one thread, the choice of the regularization included where it is
"auto"; no step begins after `--seconds`. implicit runs in the peers' environment. Its settings are chosen on the
validation pairs from 30, those of "als, tuned" from 25, and the seconds of both are those of the one best fit.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS, peer_python
from benchmarks.table import Results
from benchmarks.two_tower.figures import draw_methods
from benchmarks.two_tower.peers import fit_peer, with_implicit
from benchmarks.two_tower.problems import read, test_metrics
from benchmarks.two_tower.sampled import SampledBCE
from nearkin.data import Parts
from nearkin.embedding import Adam, AllPairs, GaussNewton

QUICK_SECONDS = 3.0
KEYS = ("ndcg@100", "recall@20", "seconds")
WAYS: dict[str, dict[str, Any] | None] = {
    "popularity": None,
    "implicit als": None,
    "the default": {},
    "als": {"solver": "als"},
    "als, lambda given": {"solver": "als"},
    "als, tuned": {"solver": "als"},
    "ials++": {"solver": "ials++"},
    "adam, from als": {"solver": "adam"},
    "adam, random start": {"solver": Adam(start="random", learning_rate=0.01)},
    "gauss-newton": {"solver": GaussNewton(start="random")},
    "in-batch softmax": {"loss": "in-batch-softmax", "solver": Adam(batch_size=1024, learning_rate=0.01)},
    "sampled bce": {"loss": SampledBCE(), "solver": Adam(learning_rate=0.01)},
}


def run_way(way: dict[str, Any], parts: Parts, seed: int, seconds: float) -> Row:
    """One fit; all but the plain ALS watch the validation pairs."""
    validation = None if way.get("solver", "als") in ("als", "ials++") else parts.valid
    start = time.process_time()
    model = nk.TwoTower(64, random_state=seed, **way)
    if way:
        model.set_params(solver__max_seconds=seconds)
    model.fit(parts.train, validation=validation)
    used = time.process_time() - start
    return test_metrics(model.left_embeddings_, model.right_embeddings_, parts) | {"seconds": used}


@cache
def tuned(name: str, data: Path, seed: int) -> tuple[float, float]:
    """Weight and strength of the best of 25 around the default ones, by NDCG@100 of the validation pairs."""
    parts = read(name, data, seed)
    default = nk.TwoTower(64, solver="als", random_state=seed).fit(parts.train)
    settings = [
        {"loss__omega": weight * default.omega_, "regularization": strength * default.regularization_}
        for weight in (0.125, 0.25, 0.5, 1, 2)
        for strength in (0.5, 0.7, 1, 1.4, 2)
    ]
    model = nk.TwoTower(64, solver="als", random_state=seed)
    best = max(settings, key=lambda given: model.set_params(**given).fit(parts.train).score(parts.valid))
    return best["loss__omega"], best["regularization"]


@cache
def strength_of(name: str, data: Path, seed: int) -> float:
    """What all pairs choose by default."""
    return nk.TwoTower(64, loss="all-pairs", random_state=seed).fit(read(name, data, seed).train).regularization_


def one(name: str, label: str, given: Namespace, peer: Path | None, seed: int, settings: list[float] | None) -> Row:
    parts, way = read(name, given.data, seed), dict(WAYS[label] or {})
    if label == "popularity":
        popular = np.asarray(parts.train.matrix().sum(axis=0), dtype=np.float32)
        return test_metrics(np.ones((parts.train.shape[0], 1), np.float32), popular.T, parts) | {"seconds": 0.0}
    if peer is not None and label == "implicit als":
        found = fit_peer(peer, "als", parts, seed, settings)
        return test_metrics(*found["tables"], parts) | {key: found[key] for key in ("seconds", "settings")}
    if "given" in label:
        way["regularization"] = strength_of(name, given.data, seed)
    if "tuned" in label:
        omega, strength = tuned(name, given.data, 0 if name == "gowalla" else seed)
        way |= {"loss": AllPairs(omega=omega), "regularization": strength}
    return run_way(way, parts, seed, min(given.seconds, QUICK_SECONDS) if given.quick else given.seconds)


def measured(name: str, label: str, given: Namespace, peer: Path | None) -> Row:
    """Means and deviations over the seeds; what is chosen on gowalla's given split is chosen once."""
    runs: list[Row] = []
    for seed in range(1 if given.quick else given.seeds):
        known = runs[0].get("settings") if runs and name == "gowalla" else None
        runs.append(one(name, label, given, peer, seed, known))
    row: Row = {key: float(np.mean([run[key] for run in runs])) for key in KEYS}
    row |= {"ndcg@100 std": float(np.std([run["ndcg@100"] for run in runs])), "seeds": len(runs)}
    row["runs"] = [run["ndcg@100"] for run in runs]
    return row | ({"settings": [run["settings"] for run in runs]} if "settings" in runs[0] else {})


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    pairs = nk.data.planted_interactions(50, 40, random_state=0).interactions
    nk.TwoTower(4, loss="all-pairs", random_state=0).fit(pairs)  # compiles
    peer = with_implicit(peer_python(given.peers))
    for name in given.sets:
        for label in WAYS:
            if label.startswith(tuple(given.ways)) and (peer or label != "implicit als"):
                yield "two_tower_solvers", Job({"set": name, "way": label}, partial(measured, name, label, given, peer))


def main() -> None:
    command(__doc__, jobs, {}, sets=("ml100k", "gowalla"), ways=tuple(WAYS), seeds=3, seconds=20.0)
    for name in ("ml100k", "gowalla"):
        rows = [row for row in Results(RESULTS).read("two_tower_solvers") or [] if row["set"] == name]
        if rows:
            draw_methods(name, rows)
