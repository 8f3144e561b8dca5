"""The ranking of held-out pairs that training watches and regularization is chosen by."""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from nearkin.data.interaction_split import split_random
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions

RANKED_LEFTS = 1000  # left entities that are ranked at most: the standard error of an NDCG is then below 0.01
FEWEST_PAIRS = 30  # fewer say nothing
DEPTH = 100


class ValidationRanking(NamedTuple):
    """Pairs to predict, those to leave out of the rankings, and the left entities to rank."""

    pairs: Interactions
    seen: Interactions
    lefts: np.ndarray

    def metric(self, P: Tensor, Q: Tensor) -> float:
        """NDCG@100."""
        metrics = ranking_metrics(
            P.numpy(), Q.numpy(), self.pairs, seen=self.seen, k=DEPTH, metrics=("ndcg",), rows=self.lefts
        )
        return metrics[f"ndcg@{DEPTH}"]


def validation_ranking(pairs: Interactions, seen: Interactions, rng: np.random.Generator) -> ValidationRanking | None:
    """The ranking of held-out `pairs` for a sample of left entities; None if there are too few to learn from."""
    if len(pairs) < FEWEST_PAIRS:
        return None
    lefts = np.flatnonzero(np.diff(pairs.indptr) > 0)
    lefts = lefts if len(lefts) <= RANKED_LEFTS else np.sort(rng.choice(lefts, RANKED_LEFTS, replace=False))
    return ValidationRanking(pairs, seen, lefts)


def split_for_validation(
    interactions: Interactions, share: float, rng: np.random.Generator
) -> tuple[Interactions, ValidationRanking | None]:
    """Part at random; gives everything back for training if the held-out part would be too small."""
    parts = split_random(interactions, valid=share, test=0, random_state=rng)
    ranking = validation_ranking(parts.valid, parts.train, rng)
    return (interactions, None) if ranking is None or not len(parts.train) else (parts.train, ranking)
