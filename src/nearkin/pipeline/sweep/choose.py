"""From trials to an answer: the cheapest code that keeps enough neighbours, the fastest, the frontier around them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nearkin._types import Record
from nearkin.pipeline.sweep.trial import Trial

MAX_OVERSAMPLE = 16  # beyond it, fetching exact vectors costs more than a longer code


@dataclass(frozen=True)
class Choice:
    """A trial and how it is searched: by codes alone (`oversample` 1) or ranked again by vectors that are kept."""

    trial: Trial
    oversample: int = 1

    @property
    def rate(self) -> float:
        """Queries a second."""
        return self.trial.rates.get(self.oversample, 0.0)

    def vectors_bytes(self, d: int) -> int:
        """Bytes a row of the exact vectors that must be kept, on disk."""
        return 4 * d if self.oversample > 1 else 0

    def record(self, d: int) -> Record:
        """The choice as JSON holds it."""
        return {
            "method": self.trial.method,
            "bytes": self.trial.n_bytes,
            "lists": self.trial.code.n_lists,
            "n_probe": self.trial.n_probe,
            "oversample": self.oversample,
            "recall": self.trial.mean(self.oversample),
            "recall_low": self.trial.low(self.oversample),
            "kept_vectors_bytes": self.vectors_bytes(d),
            "queries_per_second": self.rate,
        }


def choose(
    trials: Sequence[Trial], target: float, *, rescored: bool = False, rate: float = 0.0, fastest: bool = False
) -> Choice | None:
    """The choice of fewest bytes a row whose recall is above `target` with confidence; None if there is none.

    `rescored`: with exact vectors kept; each trial is then searched with the least oversampling that is enough. `rate`:
    queries a second that it must manage. Of equally short codes the faster one is chosen. `fastest`: the choice of
    most queries a second in place of the shortest.
    """
    found = [choice for trial in trials for choice in _enough(trial, target, rescored) if choice.rate >= rate]
    if fastest:
        return max(found, key=lambda c: c.rate, default=None)
    return min(found, key=lambda c: (c.trial.stored, c.oversample, -c.rate), default=None)


def judged_at(trial: Trial, rescored: bool) -> int:
    """The oversampling by which it is judged whether a trial keeps enough: the deepest that a choice may have."""
    return max(o for o in trial.recall if o <= (MAX_OVERSAMPLE if rescored else 1))


def _enough(trial: Trial, target: float, rescored: bool) -> Iterator[Choice]:
    """The trial with the least oversampling that is enough."""
    for o in trial.recall:
        if (o > 1 or not rescored) and o <= judged_at(trial, rescored) and trial.low(o) >= target:
            yield Choice(trial, o)
            return


def frontier(trials: Sequence[Trial], *, by: str = "bytes") -> list[Trial]:
    """The trials that no other beats in recall by codes alone and in bytes, shortest first, or in speed, fastest first.

    `by`: "bytes" or "speed".
    """
    cost = {trial: trial.stored if by == "bytes" else -trial.queries_per_second for trial in trials}
    best, found = -1.0, []
    for trial in sorted(trials, key=lambda trial: (cost[trial], -trial.mean())):
        if trial.mean() > best:
            best = trial.mean()
            found.append(trial)
    return found
