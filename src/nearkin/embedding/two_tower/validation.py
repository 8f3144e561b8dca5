"""The held-out metric that training watches."""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from nearkin.data.interaction_split import split_random
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions

ROWS = 1000  # left rows that are ranked at most: the standard error of an NDCG is then below 0.01
ENOUGH = 30  # pairs; fewer say nothing
DEPTH = 100


class HeldOut(NamedTuple):
    """Pairs to predict, those to leave out of the rankings, and the left rows to rank."""

    pairs: Interactions
    seen: Interactions
    rows: np.ndarray

    def metric(self, P: Tensor, Q: Tensor) -> float:
        """NDCG@100."""
        metrics = ranking_metrics(
            P.numpy(), Q.numpy(), self.pairs, seen=self.seen, k=DEPTH, metrics=("ndcg",), rows=self.rows
        )
        return metrics[f"ndcg@{DEPTH}"]


def held_out(pairs: Interactions, seen: Interactions, rng: np.random.Generator) -> HeldOut | None:
    """A sample of the rows with held-out pairs; None if there are too few pairs to learn anything from."""
    rows = np.flatnonzero(np.diff(pairs.indptr) > 0)
    if len(pairs) < ENOUGH:
        return None
    rows = rows if len(rows) <= ROWS else np.sort(rng.choice(rows, ROWS, replace=False))
    return HeldOut(pairs, seen, rows)


def hold_out(interactions: Interactions, share: float, rng: np.random.Generator) -> tuple[Interactions, HeldOut | None]:
    """Part at random; gives everything back for training if the held-out part would be too small."""
    parts = split_random(interactions, valid=share, test=0, random_state=rng)
    held = held_out(parts.valid, parts.train, rng)
    return (interactions, None) if held is None or not len(parts.train) else (parts.train, held)
