"""Settings of rivals by validation pairs: one setting at a time is moved until no move is better."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin.data import Parts
from nearkin.records import Interactions

JUDGED = 3000  # lefts by which settings are chosen

Check = Callable[[np.ndarray, np.ndarray], float]
Values = dict[str, float]


class Axis(NamedTuple):
    """Where a setting starts, by what factor it moves, and what it must stay under."""

    start: float
    factor: float = 3.0
    under: float = math.inf

    def moved(self, value: float, way: int) -> float:
        return float(f"{value * self.factor**way:.4g}")


@dataclass(frozen=True)
class Setting:
    """What validation pairs choose for a rival."""

    options: Values
    rate: float
    epochs: int


class Epochs(NamedTuple):
    """Numbers of epochs with which settings are moved, and those that the best one then gets while it gains."""

    climbing: tuple[int, ...]
    longer: tuple[int, ...]


def climbed(axes: Mapping[str, Axis], judge: Callable[[Values], float]) -> Values:
    """The values from which no axis, moved once up or down, is judged better: so none lies at an edge of what was
    tried, unless it is at its bound."""
    seen: dict[tuple[float, ...], float] = {}

    def judged(values: Values) -> float:
        key = tuple(values.values())
        if key not in seen:
            seen[key] = judge(values)
        return seen[key]

    best, moved = {name: axis.start for name, axis in axes.items()}, True
    while moved:
        moved = False
        for name, axis in axes.items():
            for way in (1, -1):
                while axis.moved(best[name], way) < axis.under:
                    other = best | {name: axis.moved(best[name], way)}
                    if judged(other) <= judged(best):
                        break
                    best, moved = other, True
    return best


def longest(best: Setting, metric: float, longer: tuple[int, ...], judge: Callable[[Setting], float]) -> Setting:
    """The setting, of that metric, with the number of epochs after which more of them are no better."""
    for more in longer:
        other = Setting(best.options, best.rate, more)
        found = judge(other)
        if found <= metric:
            break
        best, metric = other, found
    return best


def judged_by(inner: Parts) -> Check:
    """NDCG@20 of the validation pairs of a few lefts."""
    valid = few_users(inner.valid)

    def check(P: np.ndarray, Q: np.ndarray) -> float:
        return nk.metrics.ranking_metrics(P, Q, valid, seen=inner.train, k=20, metrics=("ndcg",))["ndcg@20"]

    return check


def few_users(valid: Interactions, count: int = JUDGED) -> Interactions:
    """The pairs of `count` lefts that have one, the others without: enough for a choice."""
    matrix = valid.matrix().tocsr(copy=True)
    lefts = np.flatnonzero(np.diff(matrix.indptr))
    keep = np.zeros(matrix.shape[0])
    keep[np.random.default_rng(0).permutation(lefts)[:count]] = 1
    kept = sp.diags(keep) @ matrix
    kept.eliminate_zeros()
    return Interactions.from_matrix(sp.csr_matrix(kept))
