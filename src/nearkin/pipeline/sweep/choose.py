"""From trials to an answer: the cheapest code that keeps enough neighbours, and the frontier around it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nearkin._types import Record
from nearkin.pipeline.sweep.trial import Trial

MAX_OVERSAMPLE = 16  # beyond it, fetching exact vectors costs more than a longer code


@dataclass(frozen=True)
class Choice:
    """A trial and how it is searched: by codes alone (`oversample` 1) or ranked again by vectors that are kept."""

    trial: Trial
    oversample: int = 1

    def vectors_bytes(self, d: int) -> int:
        """Bytes a row of the exact vectors that must be kept, on disk."""
        return 4 * d if self.oversample > 1 else 0

    def record(self, d: int) -> Record:
        """The choice as JSON holds it."""
        return {
            "method": self.trial.method,
            "bytes": self.trial.n_bytes,
            "oversample": self.oversample,
            "recall": self.trial.mean(self.oversample),
            "recall_low": self.trial.low(self.oversample),
            "kept_vectors_bytes": self.vectors_bytes(d),
            "queries_per_second": self.trial.queries_per_second,
        }


def choose(trials: Sequence[Trial], target: float, *, rescored: bool = False) -> Choice | None:
    """The choice of fewest bytes a code whose recall is above `target` with confidence; None if there is none.

    `rescored`: with exact vectors kept; each trial is then searched with the least oversampling that is enough. Of
    equally short codes the faster one is chosen.
    """
    found = []
    for trial in trials:
        depths = [o for o in trial.recall if o <= (MAX_OVERSAMPLE if rescored else 1)]
        enough = [o for o in depths if trial.low(o) >= target and (o > 1 or not rescored)]
        if enough:
            found.append(Choice(trial, enough[0]))
    return min(found, key=lambda c: (c.trial.n_bytes, c.oversample, -c.trial.queries_per_second), default=None)


def frontier(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that no other beats in both bytes and recall by codes alone, shortest first."""
    best, kept = -1.0, []
    for trial in sorted(trials, key=lambda t: (t.n_bytes, -t.mean())):
        if trial.mean() > best:
            best = trial.mean()
            kept.append(trial)
    return kept
