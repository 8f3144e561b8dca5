"""The data sets, and what a pair of tables is judged by."""

from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin.data import Parts

DEPTHS = (20, 100)


def read(name: str, folder: Path, seed: int) -> Parts:
    if name == "gowalla":
        return nk.data.split_given(nk.read_interactions(folder / "gowalla.npz"))
    return nk.data.split_random(nk.read_interactions(folder / f"{name}.npz", min_weight=4), random_state=seed)


def test_metrics(left: np.ndarray, right: np.ndarray, parts: Parts) -> dict[str, float]:
    found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTHS, metrics=("recall", "ndcg"))
    return {"ndcg@100": found["ndcg@100"], "recall@20": found["recall@20"]}
