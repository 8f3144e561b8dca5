"""Does the engine find what `nearkin search` finds? Asked before an export is published."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearkin._types import ArrayLike
from nearkin.export.source import Source

Search = Callable[[np.ndarray, int], np.ndarray]  # (questions, k) -> ids (q, k), nearest first, or fewer: -1 or ""

_ROUNDING = 1e-5  # relative: engines sum table entries in another order than FAISS


@dataclass(frozen=True)
class Check:
    """The outcome: `recall` of `queries` queries, k neighbours each, against `target`."""

    queries: int
    k: int
    recall: float
    target: float

    @property
    def passed(self) -> bool:
        return self.recall >= self.target

    def __str__(self) -> str:
        return (
            f"self-check: {self.queries} queries, recall@{self.k} {self.recall:.4f} of nearkin search's neighbours, "
            f"target {self.target:g}: {'passed' if self.passed else 'FAILED'}"
        )


class RecallTooLowError(RuntimeError):
    """The engine's neighbours are not the index's: nothing was published. `check` says by how much."""

    def __init__(self, check: Check) -> None:
        super().__init__(f"{check}; nothing was published. A lower --recall-target accepts it")
        self.check = check


def self_check(
    source: Source, search: Search, target: float, *, k: int = 10, n: int = 100, queries: ArrayLike | None = None
) -> Check:
    """Compare the engine's answers with the index's on `n` questions, or on the rows of `queries` (q, d).

    A neighbour counts if it is one of the index's k, or of the rows with the score of the k-th, or as near by its code
    as one of these: many codes are equally near, and which of them is named is chance. An id that is named twice, or is
    not in the index, is a miss.
    """
    asked = source.questions(n) if queries is None else source.asked(queries)
    k = min(k, len(source))
    own = source.distances(asked, source.as_near(asked, k))
    wanted = np.minimum(np.isfinite(own).sum(axis=1), k)
    limit = np.where(np.isfinite(own), own, -np.inf).max(axis=1)
    found = source.positions(search(asked, k))
    near = source.distances(asked, _once(found)) <= (limit + _ROUNDING * np.abs(limit))[:, None]
    hits = np.minimum(near.sum(axis=1), wanted)
    recall = float((hits[wanted > 0] / wanted[wanted > 0]).mean()) if wanted.any() else 0.0
    return Check(len(asked), k, recall, target)


def _once(positions: np.ndarray) -> np.ndarray:
    """Positions (q, k) with every repetition within a row turned to -1."""
    seen = (positions[:, :, None] == positions[:, None, :]) & np.tri(positions.shape[1], k=-1, dtype=bool)
    return np.where(seen.any(axis=2), -1, positions)
