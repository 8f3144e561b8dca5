"""What held-out pairs decide: the best step of training, by their ranking, and the strength of regularization."""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin.contracts import Callback, ignore
from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.solvers.als import AlternatingLeastSquares
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions

RANKED_LEFTS = 1000  # left entities that are ranked at most: the standard error of an NDCG is then below 0.01
FEWEST_PAIRS = 30  # fewer say nothing
DEPTH = 100

SHARES = (0.5, 0.25, 0.125, 0.0625)  # of the noise level
FIRST_SWEEPS = 5  # strong regularization grows from small tables slowly, and must not be judged too early
SWEEPS = 2  # at each later strength, which starts from the tables of the one before
MARGIN = 1.02  # weaker regularization must win by more than chance: warm starts flatter it
FALLBACK = 0.25  # share of the noise level where too few pairs can be held out
SAMPLED = 0.005  # share of the noise level for sampled losses, whose scores are logits and must grow large


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


class Chosen(NamedTuple):
    strength: float
    P: Tensor
    Q: Tensor


def start_tables(
    objective: Objective, strength: float, P: Tensor, Q: Tensor, group: Group = ALONE
) -> tuple[Tensor, Tensor]:
    """Tables after a few sweeps of alternating least squares, for other solvers to start from."""
    solver = AlternatingLeastSquares(objective.loss(strength), P, Q, group=group)
    for _ in range(FIRST_SWEEPS):
        solver.step()
    return solver.P, solver.Q


def choose_regularization(
    objective: Objective,
    P: Tensor,
    Q: Tensor,
    ranking: ValidationRanking | None,
    *,
    random_state: np.random.Generator,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Chosen:
    """The lambda of best held-out metric among shares of the objective's noise level, and the tables it ended with.

    Walks from strong to weak regularization, each starting from the tables of the one before, and stops when the
    metric no longer rises by 2 %. Without held-out pairs it returns a quarter of the noise level and the tables
    as they were.
    """
    noise = objective.noise_level(random_state)
    if ranking is None:
        return Chosen(FALLBACK * noise, P, Q)
    best: tuple[float, Chosen] | None = None
    for number, share in enumerate(SHARES, start=1):
        solver = AlternatingLeastSquares(objective.loss(share * noise), P, Q, group=group)
        for _ in range(FIRST_SWEEPS if best is None else SWEEPS):
            value = solver.step()
        P, Q = solver.P, solver.Q
        metric = ranking.metric(P, Q)
        record = {"step": number, "total": len(SHARES), "phase": "regularization", "regularization": share * noise}
        (callback or ignore)(number, record | {"objective": value, "metric": metric})
        if best is not None and metric <= MARGIN * best[0]:
            break
        best = (metric, Chosen(share * noise, P, Q))
    if best is None:
        raise RuntimeError("no strength of regularization was tried")
    return best[1]
