"""Held-out pairs of a fit, and the strength of regularization that ranks them best."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin.contracts import Callback
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.objective import Objective
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions


@dataclass(frozen=True)
class Defaults:
    """Numbers of the choice, 2026-11 on ml100k and gowalla without a recorded table."""

    ranked_lefts: int = 1000  # most left entities of a held-out ranking: the standard error of an NDCG is below .01
    fewest_pairs: int = 30  # held-out pairs; with fewer the metric is noise
    depth: int = 100  # of the held-out NDCG
    strengths: tuple[float, ...] = (0.5, 0.25, 0.125, 0.0625)  # tried lambdas, as shares of the noise level
    first_sweeps: int = 5  # at the first strength: embeddings grow slowly from small tables under strong regularization
    sweeps: int = 2  # at each later strength, which starts from the tables of the one before
    margin: float = 1.02  # gain that a weaker strength needs: warm starts favour it
    fallback: float = 0.25  # share of the noise level with too few pairs to hold out


DEFAULTS = Defaults()


class ValidationRanking(NamedTuple):
    """Pairs to predict, those to leave out of the rankings, and the left entities to rank."""

    pairs: Interactions
    seen: Interactions
    lefts: np.ndarray

    def metric(self, P: Tensor, Q: Tensor) -> float:
        """NDCG@100."""
        metrics = ranking_metrics(
            P.numpy(), Q.numpy(), self.pairs, seen=self.seen, k=DEFAULTS.depth, metrics=("ndcg",), rows=self.lefts
        )
        return metrics[f"ndcg@{DEFAULTS.depth}"]


def judging_lefts(held: Interactions, most: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted numbers of the left entities that have held-out pairs, or of `most` of them drawn at random."""
    lefts = np.flatnonzero(np.diff(held.indptr) > 0)
    return lefts if len(lefts) <= most else np.sort(rng.choice(lefts, most, replace=False))


def validation_ranking(pairs: Interactions, seen: Interactions, rng: np.random.Generator) -> ValidationRanking | None:
    """The ranking of held-out `pairs` for a sample of left entities; None if there are too few pairs."""
    if len(pairs) < DEFAULTS.fewest_pairs:
        return None
    return ValidationRanking(pairs, seen, judging_lefts(pairs, DEFAULTS.ranked_lefts, rng))


class Chosen(NamedTuple):
    """A strength of regularization, the tables that ALS reached with it, and the sweeps of all strengths."""

    strength: float
    P: Tensor
    Q: Tensor
    sweeps: int = 0


def start_tables(
    objective: Objective, strength: float, P: Tensor, Q: Tensor, group: Group = ALONE
) -> tuple[Tensor, Tensor]:
    """Tables after a few sweeps of alternating least squares, the start of other solvers."""
    solver = ALS().alternate(objective.loss(strength), P, Q, group=group)
    for _ in range(DEFAULTS.first_sweeps):
        solver.step()
    return solver.P, solver.Q


def choose_regularization(
    objective: Objective,
    P: Tensor,
    Q: Tensor,
    ranking: ValidationRanking | None,
    *,
    noise: float,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Chosen:
    """The lambda of best held-out metric among shares of the objective's `noise` level, and its tables.

    Goes from strong to weak regularization, each starting from the tables of the one before, and stops when the metric
    no longer rises by 2 %. Without held-out pairs it returns a quarter of the noise level and the given tables.
    """
    if ranking is None:
        return Chosen(DEFAULTS.fallback * noise, P, Q)
    best: tuple[float, Chosen] | None = None
    done = 0
    for number, share in enumerate(DEFAULTS.strengths, start=1):
        solver = ALS().alternate(objective.loss(share * noise), P, Q, group=group)
        sweeps = DEFAULTS.first_sweeps if best is None else DEFAULTS.sweeps
        for _ in range(sweeps):
            value = solver.step()
        done += sweeps
        P, Q = solver.P, solver.Q
        metric = ranking.metric(P, Q)
        if callback is not None:
            record = {"step": number, "total": len(DEFAULTS.strengths), "phase": "regularization"}
            callback(number, record | {"regularization": share * noise, "objective": value, "metric": metric})
        if best is not None and metric <= DEFAULTS.margin * best[0]:
            break
        best = (metric, Chosen(share * noise, P, Q))
    if best is None:
        raise RuntimeError("no strength of regularization was tried")
    return best[1]._replace(sweeps=done)
