"""Choice among candidates by their values for the same held-out queries: one rule, for every choice of the library.

Differences are paired by query, which removes the differences between queries. Of the candidates that no other leads by
more than one standard error the cheapest wins, of equally cheap ones the one with the largest mean."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import betaincinv

from nearkin._exact import nearest
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback
from nearkin.metrics.neighbours import ExactNeighbours, Search, distinct, with_ties


@dataclass(frozen=True)
class Defaults:
    """What a choice by recall is based on, unless the caller has other data."""

    queries: int = 1_000  # held out, at most: the standard error of a recall is then below .01


DEFAULTS = Defaults()
ROWS, NEIGHBOURS = 4_096, 10  # among which they find, at most, and k of the recall
CONFIDENCE = 0.95  # of the intervals
PRIOR = 0.2  # of a hit: 0 is Clopper-Pearson, .5 Jeffreys; coverage in simulation is .94 at least
FEWEST = 6  # queries; even if all differ in one direction, a sign test of fewer does not reach 5 %


class Difference(NamedTuple):
    """The mean of differences over queries, its standard error, and the ends of its 95 % interval."""

    mean: float
    error: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0; if not, the two are a tie."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        tie = "" if self.clear else "a tie, "
        return f"{tie}{self.mean:+.4f} (95 % interval {self.low:+.4f} to {self.high:+.4f})"


def paired_difference(one: ArrayLike, other: ArrayLike) -> Difference:
    """The mean of `one - other` (q,), values for the same queries, which removes the differences between queries.

    The interval joins those of the mean gain and of the mean loss, as method 10 of Newcombe (1998, Improved confidence
    intervals for the difference between binomial proportions based on paired data) does for 0 and 1, and has a width
    where no query differs. Differences are taken to lie in [-1, 1], or within the size of the largest. With fewer than
    six queries the interval always includes 0, and the standard error of a single difference is its size. ValueError
    without queries, and for values of different queries.

    >>> str(paired_difference([0.5, 0.6, 0.7, 0.4, 0.5] * 20, [0.4, 0.5, 0.5, 0.3, 0.4] * 20))
    '+0.1200 (95 % interval +0.0870 to +0.1402)'
    """
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(f"values have shapes {first.shape} and {second.shape}; they must be (q,), one for each query")
    differences, n = first - second, len(first)
    mean, unit = float(differences.mean()), max(1.0, float(np.abs(differences).max()))
    error = float(differences.std(ddof=1)) / n**0.5 if n > 1 else abs(mean)
    gain, loss = np.maximum(differences, 0) / unit, np.maximum(-differences, 0) / unit
    gains, losses, spread = mean_interval(gain), mean_interval(loss), float(gain.std() * loss.std())
    x, y = (
        np.subtract([gain.mean(), gains[1]], [gains[0], gain.mean()]),
        np.subtract([losses[1], loss.mean()], [loss.mean(), losses[0]]),
    )
    r = -float(gain.mean() * loss.mean()) / spread if spread else 0.0  # correlation: a query has a gain or a loss
    down, up = (unit * np.sqrt(x * x + y * y - 2 * r * x * y)).tolist()
    low, high = mean - down, mean + up
    return Difference(mean, error, *((low, high) if n >= FEWEST else (min(low, 0.0), max(high, 0.0))))


def mean_interval(values: np.ndarray) -> list[float]:
    """The ends of the 95 % interval of the mean of values (q,) in [0, 1], one for each query. Both lie in [0, 1]."""
    return [_lower_end(values), 1 - _lower_end(1 - values)]


def _lower_end(values: np.ndarray) -> float:
    """The lower end for the mean m: that of a share m of queries of 0 or 1 whose standard error is the same.

    With the variance v of the values a query weighs as m (1 - m) / v of 0 or 1, at least one: the effective sample size
    of Korn & Graubard (1998, Confidence intervals for proportions with small expected number of positive counts). In v
    one query more counts, of value 0: a loss that no query showed. The limit lies between those of Clopper & Pearson
    (conservative) and of Jeffreys (90 % near 1); both in Brown, Cai & DasGupta (2001, Interval estimation for a
    binomial proportion).
    """
    n, mean = len(values), float(values.mean())
    if mean <= 0:
        return 0.0
    weight = n * max(mean * (1 - mean) / float(np.square(values - mean).mean() + mean * mean / n), 1.0)
    return float(betaincinv(mean * weight + PRIOR, (1 - mean) * weight + 1 - PRIOR, (1 - CONFIDENCE) / 2))


ROUNDING = 1e-9  # equal values may differ by rounding


def held_out(
    X: np.ndarray, queries: np.ndarray | None = None, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Queries (q, d), `most` of them, and the vectors (n, d) left to train on and to find: of X in random order the
    first, a quarter at most, are the queries, unless some (m, d) are given, of which evenly spaced ones are taken."""
    most = DEFAULTS.queries if most is None else most
    if queries is not None:
        return queries[:: max(1, -(-len(queries) // most))], X
    count = min(most, len(X) // 4)
    return X[:count], X[count:]


@dataclass(frozen=True)
class HeldOut:
    """Vectors (n, d), queries (q, d) and their exact neighbours: the recall of a candidate for each query.

    Vectors that a candidate cannot tell apart are in random order, and recalls are expected values.
    """

    rows: np.ndarray
    queries: np.ndarray
    metric: str
    truth: ExactNeighbours = field(repr=False)

    @classmethod
    def of(cls, rows: np.ndarray, queries: np.ndarray, metric: str = "l2", k: int | None = None) -> "HeldOut":
        """Compute the k nearest vectors, 10 by default, by "l2" or "ip"."""
        k = NEIGHBOURS if k is None else k
        return cls(rows, queries, metric, ExactNeighbours.of(rows, queries, k, metric))

    @classmethod
    def among(cls, rows: np.ndarray, queries: np.ndarray, metric: str = "l2") -> "HeldOut":
        """The 10 nearest of the different vectors: equal ones decide no choice, and comparing their ties takes long."""
        return cls.of(distinct(rows.astype(np.float32))[0], queries.astype(np.float32), metric)

    @classmethod
    def split(cls, X: np.ndarray, queries: np.ndarray | None = None, metric: str = "l2") -> "HeldOut":
        """The queries that `held_out` takes; of the vectors left 4,096 at most are to be found."""
        asked, rows = held_out(X, queries)
        return cls.among(rows[:ROWS], asked, metric)

    @property
    def k(self) -> int:
        """Neighbours that count, fewer than asked for if there are fewer vectors."""
        return self.truth.ids.shape[1]

    def found(self, search: Search) -> np.ndarray:
        """The recall (q,) of a search, 0 without queries."""
        values = np.zeros(max(1, len(self.queries)))
        for some, scores, ids in with_ties(search, len(self.queries), self.k, len(self.rows)):
            values[some] = self.truth.take(some).recall(ids, scores)
        return values

    def recall(self, decoded: np.ndarray, queries: np.ndarray | None = None) -> np.ndarray:
        """The recall (q,) of decoded vectors (n, d'), with `queries` (q, d') or the held-out ones."""
        Q = self.queries if queries is None else queries
        return self.found(lambda some, depth: nearest(decoded, Q[some], depth, self.metric))


Name = TypeVar("Name", bound=Hashable)


@dataclass
class Trial(Generic[Name]):
    """Candidates, their values for the same queries, users or questions (larger is better), and their costs.

    `callback(step, record)` is called with the record of each candidate that is added; `total` is the number of
    candidates at most, `measure` names the values there.

    >>> trial = Trial[str]()
    >>> for name, values, cost in ("short", [0.5, 0.6, 0.7], 8), ("long", [0.5, 0.8, 0.6], 16):
    ...     _ = trial.add(name, np.array(values), cost)
    >>> trial.winner()
    'short'
    """

    callback: Callback | None = None
    total: int | None = None
    measure: str = "recall"
    values: dict[Name, np.ndarray] = field(default_factory=dict[Name, np.ndarray], init=False)
    _notes: dict[Name, Record] = field(default_factory=dict[Name, Record], init=False)

    def add(self, candidate: Name, values: np.ndarray, cost: float | None = None, **more: object) -> np.ndarray:
        """Add a candidate with its values (q,) and its cost, in any unit, where costs differ; `more` is added to its
        record."""
        self.values[candidate], self._notes[candidate] = values, more if cost is None else {"cost": cost, **more}
        if self.callback is not None:
            total = {} if self.total is None else {"total": self.total}
            record = self._record(candidate)
            name = f"{candidate:.3g}" if isinstance(candidate, float) else candidate
            note = f"{name}: {self.measure} {record['value']:.3f}"
            self.callback(len(self.values), {**total, "objective": -record["value"], "note": note, **record})
        return values

    def lead(self, one: Name, other: Name) -> Difference:
        """The difference of two candidates, paired by query."""
        return paired_difference(self.values[one], self.values[other])

    def leads(self, one: Name, other: Name) -> bool:
        """Whether `one` leads by more than a standard error."""
        difference = self.lead(one, other)
        return difference.mean > difference.error + ROUNDING

    def best(self, *among: Name) -> Name:
        """The candidate of the largest mean, of equals the first; of all, or of those given."""
        return max(among or self.values, key=lambda name: float(self.values[name].mean()))

    def winner(self, *among: Name) -> Name:
        """The cheapest of the candidates that no other leads by more than a standard error; of all, or of those
        given."""
        names = sorted(
            among or self.values, key=lambda name: (self._notes[name].get("cost", 0.0), -self.values[name].mean())
        )
        return next(one for one in names if not any(self.leads(other, one) for other in names))

    def table(self, winner: Name | None = None) -> list[Record]:
        """A record of each candidate: "candidate", "value" (its mean), "error" (the standard error of its difference
        from the best), "won", and what was added."""
        winner = self.winner() if winner is None else winner
        return [{**self._record(name), "won": name == winner} for name in self.values]

    def _record(self, name: Name) -> Record:
        error = self.lead(self.best(), name).error
        return {"candidate": name, "value": float(self.values[name].mean()), "error": error, **self._notes[name]}
