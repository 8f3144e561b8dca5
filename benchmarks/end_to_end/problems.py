"""The data sets, and what is measured through an index."""

from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk

KEYS = ("precision@100", "recall@100", "ndcg@100")


def read(data: Path, name: str, n_test: int, seed: int) -> Any:
    """The parts of a data set: the last pairs of every history where there are timestamps, of equal times those drawn
    by the seed; else the given split."""
    with np.load(data / f"{name}.npz") as file:
        if "split" in file:
            return nk.data.split_given(nk.Interactions.from_pairs(file["user"], file["item"], split=file["split"]))
        pairs = nk.Interactions.from_pairs(file["user"], file["item"], timestamps=file["timestamp"])
    return nk.data.split_leave_last_out(pairs, n_test=n_test, random_state=seed)


def measured(P: np.ndarray, Q: np.ndarray, parts: Any) -> dict[str, float]:
    found = nk.metrics.ranking_metrics(P, Q, parts.test, seen=parts.train, k=100)
    return {key: found[key] for key in KEYS}
