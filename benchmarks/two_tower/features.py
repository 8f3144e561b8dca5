"""Towers over features: linear and nonlinear, by ALS, Adam and Gauss-Newton, for known and for unknown lefts.

wordnet_minilm: which entries (rights, 11,246) are kinds of an entry (lefts, 4,274), from vectors of their texts. Every
right has one pair, so the rights of all test pairs are known by their text alone. "known": a tenth of the pairs of
lefts that have others; "unknown": all pairs of a tenth of the lefts, which are known by their text alone too.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

import nearkin as nk
from nearkin.embedding import Adam, GaussNewton, Tower
from nearkin.records import Interactions

K, WIDTH, DEPTH = 64, 256, 20


def features(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> None:
    """NDCG@20 and Recall@20 of both kinds of lefts, and CPU seconds of a fit, means over the seeds."""
    for label, make in ways():
        runs = []
        for seed in range(options.seeds):
            train, known, unknown = read(options, seed)
            start = time.process_time()
            P, Q = make(train, seed)
            row = {"seconds": time.process_time() - start}
            for name, pairs in (("known", known), ("unknown", unknown)):
                found = nk.metrics.ranking_metrics(P, Q, pairs, seen=train, k=DEPTH)
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


def ways() -> Iterator[tuple[str, Callable[[Interactions, int], tuple[np.ndarray, np.ndarray]]]]:
    """Names, and what makes both tables from the training pairs and a seed."""
    yield (
        "cosines of the texts' vectors, nothing learned",
        lambda train, _seed: (train.left_features, train.right_features),
    )
    for name, hidden in (("linear", ()), ("one hidden layer", (WIDTH,))):
        yield (
            f"ids and {name}, ALS",
            _fitting(lambda _seed, hidden=hidden: {"left": Tower(hidden), "right": Tower(hidden)}),
        )
    solvers = {"Adam": Adam(max_iter=150, learning_rate=0.003), "Gauss-Newton": GaussNewton()}
    for solver_name, solver in solvers.items():
        for name, hidden in (("linear", False), ("one hidden layer", True)):
            yield f"{name}, {solver_name}", _fitting(_modules(hidden, solver))


def _fitting(settings: Callable[[int], dict[str, Any]]) -> Callable:
    def make(train: Interactions, seed: int) -> tuple[np.ndarray, np.ndarray]:
        model = nk.TwoTower(K, random_state=seed, **settings(seed)).fit(train)
        return model.left_embeddings_, model.right_embeddings_

    return make


def _modules(hidden: bool, solver: Any) -> Callable[[int], dict[str, Any]]:
    def settings(seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        return {"left": _tower(hidden), "right": _tower(hidden), "solver": solver}

    return settings


def _tower(hidden: bool, width: int = 384) -> nn.Module:
    """From vectors of length 1 to K numbers."""
    return nn.Sequential(nn.Linear(width, WIDTH), nn.GELU(), nn.Linear(WIDTH, K)) if hidden else nn.Linear(width, K)
