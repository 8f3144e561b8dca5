"""Towers over features: linear and nonlinear, by ALS, Adam and Gauss-Newton, for known and for unknown lefts.

wordnet_minilm: which entries (rights, 11,246) are kinds of an entry (lefts, 4,274), from vectors of their texts. Every
right has one pair, so the rights of all test pairs are known by their text alone. "known": a tenth of the pairs of
lefts that have others; "unknown": all pairs of a tenth of the lefts, which are known by their text alone too.

Learned towers begin as the principal components of the vectors (`feature_towers`). A tenth of the training pairs
watches them: it chooses the step, and for the first seed the setting of a grid of three.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import nearkin as nk
from nearkin.embedding import Adam, GaussNewton, feature_towers
from nearkin.records import Interactions

K, WIDE, WIDTH, DEPTH = 64, 384, 256, 20
RATES, STRENGTHS = (3e-4, 1e-3, 3e-3), (1e-4, 1e-3, 1e-2)

Tables = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Way:
    """Settings of `TwoTower` to choose from, and of its towers."""

    grid: tuple[dict[str, Any], ...]
    k: int
    hidden: tuple[int, ...]
    scale: float

    def fit(self, setting: dict[str, Any], train: Interactions, seed: int) -> tuple[float, Tables]:
        """The best metric of the validation pairs, and both tables."""
        parts = nk.data.split_random(train, valid=0.1, test=0, random_state=seed)
        left, right = feature_towers(
            *_texts(train), self.k, hidden=self.hidden, scale=self.scale, random_state=seed
        )  # fmt: skip
        model = nk.TwoTower(self.k, left=left, right=right, random_state=seed, **setting)
        model.fit(parts.train, validation=parts.valid)
        metric = max(record.get("metric", 0.0) for record in model.history_)
        return metric, (model.left_embeddings_, model.right_embeddings_)


def features(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> None:
    """NDCG@20 and Recall@20 of both kinds of lefts, and CPU seconds of a fit, means over the seeds."""
    for label, make in ways(quick=options.quick):
        if options.ways and not label.startswith(tuple(options.ways)):
            continue
        runs = []
        for seed in range(options.seeds):
            train, known, unknown = read(options, seed)
            tables, seconds = make(train, seed)
            row = {"seconds": seconds}
            for name, pairs in (("known", known), ("unknown", unknown)):
                found = nk.metrics.ranking_metrics(*tables, pairs, seen=train, k=DEPTH)
                row |= {f"{name} {measure}": found[measure] for measure in ("ndcg@20", "recall@20")}
            runs.append(row)
            print(label, seed, row, flush=True)
        keep({label: {name: float(np.mean([run[name] for run in runs])) for name in runs[0]} | {"seeds": len(runs)}})


def read(options: argparse.Namespace, seed: int) -> tuple[Interactions, Interactions, Interactions]:
    """The training pairs with features of both sides, and the two kinds of test pairs."""
    with np.load(options.data / "wordnet_minilm.npz") as z:
        X, (narrower, wider) = z["X"].astype(np.float32), z["hypernym"].T
    pairs = nk.Interactions.from_pairs(wider, narrower)
    pairs = pairs.with_features(left=X[pairs.left_ids], right=X[pairs.right_ids])
    rng = np.random.default_rng(seed)
    unknown = np.isin(pairs.rows, rng.choice(pairs.shape[0], pairs.shape[0] // 10, replace=False))
    others = np.diff(pairs.indptr)[pairs.rows] > 1
    known = ~unknown & others & (rng.random(len(pairs)) < 0.1)
    return pairs.select(~unknown & ~known), pairs.select(known), pairs.select(unknown)


def ways(*, quick: bool = False) -> Iterator[tuple[str, Callable[[Interactions, int], tuple[Tables, float]]]]:
    """Names, and what makes both tables from the training pairs and a seed, with CPU seconds.

    A `quick` pass takes the middle one of each grid and two steps.
    """
    yield "cosines of the texts' vectors, nothing learned", lambda train, _: (_untrained(train, WIDE), 0.0)
    yield f"cosines of {K} components, nothing learned", lambda train, _: (_untrained(train, K), 0.0)
    yield "ids and one hidden layer from nothing, ALS", _from_nothing
    losses = {
        "in-batch softmax, Adam": (4.0, tuple(_softmax(rate) for rate in RATES)),
        "all pairs, Adam": (1.0, tuple({"solver": Adam(max_iter=100, learning_rate=rate)} for rate in RATES)),
        "all pairs, Gauss-Newton": (
            1.0, tuple({"solver": GaussNewton(max_iter=8), "regularization": strength} for strength in STRENGTHS)
        ),
    }  # fmt: skip
    for k, names in ((K, losses), (WIDE, ("in-batch softmax, Adam",))):
        for name in names:
            scale, grid = losses[name]
            grid = (_shortened(grid[1]),) if quick else grid
            for tower, hidden in (("linear", ()), ("one hidden layer", (WIDTH,))):
                yield f"{tower}, {k} numbers, {name}", _chosen(Way(grid, k, hidden, scale))


def _softmax(rate: float) -> dict[str, Any]:
    return {"loss": "in-batch-softmax", "solver": Adam(max_iter=30, learning_rate=rate, batch_size=1024)}


def _shortened(setting: dict[str, Any]) -> dict[str, Any]:
    return setting | {"solver": clone(setting["solver"]).set_params(max_iter=2)}


def _untrained(train: Interactions, k: int) -> Tables:
    X = _texts(train)
    towers = feature_towers(*X, k)
    with torch.no_grad():
        left, right = (tower(torch.from_numpy(rows)).numpy() for tower, rows in zip(towers, X, strict=True))
    return left, right


def _texts(train: Interactions) -> Tables:
    return np.asarray(train.left_features), np.asarray(train.right_features)


def _from_nothing(train: Interactions, seed: int) -> tuple[Tables, float]:
    start = time.process_time()
    model = nk.TwoTower(K, random_state=seed).fit(train)
    return (model.left_embeddings_, model.right_embeddings_), time.process_time() - start


def _chosen(way: Way) -> Callable[[Interactions, int], tuple[Tables, float]]:
    best: list[dict[str, Any]] = []

    def make(train: Interactions, seed: int) -> tuple[Tables, float]:
        if len(way.grid) == 1:
            best[:] = way.grid
        if not best:
            metrics = [way.fit(setting, train, 0)[0] for setting in way.grid]
            print("   ", *(f"{metric:.4f}" for metric in metrics), flush=True)
            best.append(way.grid[int(np.argmax(metrics))])
        start = time.process_time()
        tables = way.fit(best[0], train, seed)[1]
        return tables, time.process_time() - start

    return make
