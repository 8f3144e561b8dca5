"""The model that chooses questions: fits of the answers so far, in a separate process."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np

from nearkin import Comparisons, OrdinalEmbedding
from nearkin.metrics import triplet_error

_AT_ONCE = 400  # questions that the model chooses at once: as many as may be answered before its next fit
_FEWEST = 10  # answers before the first fit
_FEWEST_TO_WEIGH = 30  # answers of each of two raters before raters are weighed
_GROWTH = 1.05  # a fit starts when there are this many times the answers of the last one


@dataclass(frozen=True)
class Fitted:
    """A finished fit: embedding (n, p), the error on `held_out` comparisons (None without any), the next questions, and
    raters' weights by number, the best one's 1 (none where all weigh the same)."""

    embedding: np.ndarray
    n_answers: int
    error: float | None
    held_out: int
    questions: list[tuple[int, ...]]
    weights: dict[object, float] = field(default_factory=dict)


def fit(answers: Comparisons, held_out: Comparisons, seed: int) -> Fitted:
    """Fit a map to the answers, and choose what to ask next; runs in the model's own process."""
    who = answers.annotators
    if who is not None and answers.events is not None:  # once for each answer, of several comparisons
        who = who[np.unique(answers.events, return_index=True)[1]]
    weighed = who is not None and int((np.bincount(who) >= _FEWEST_TO_WEIGH).sum()) >= 2
    model = OrdinalEmbedding(2, random_state=seed).fit(answers, raters="estimated" if weighed else "equal")
    n, error = len(answers.indices), None
    if len(held_out.indices):
        error = triplet_error(model.embedding_, held_out)
    questions = [tuple(map(int, row)) for row in model.next_queries(_AT_ONCE, random_state=seed + n)]
    return Fitted(model.embedding_, n, error, len(held_out.indices), questions, model.rater_reliability_ or {})


class Learner:
    """Runs `fit` in a separate process; `take` returns each result once."""

    def __init__(self) -> None:
        self._pool = self._new_pool()
        self._running: Future[Fitted] | None = None
        self._last = 0
        self.failure: str | None = None

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))  # its process begins with the first fit

    def offer(self, make: Callable[[], tuple[Comparisons, Comparisons, int]], n_answers: int) -> None:
        """Begin a fit if none runs and there are enough new answers."""
        if self._running is None and n_answers >= max(_FEWEST, _GROWTH * self._last, self._last + 1):
            self._last, self._running = n_answers, self._pool.submit(fit, *make())

    def take(self) -> Fitted | None:
        """The fit that has finished since the last call, None if there is none. A fit that failed is dropped and named
        in `failure`; more answers start the next one."""
        if self._running is None or not self._running.done():
            return None
        running, self._running = self._running, None
        error = running.exception()
        self.failure = None if error is None else f"{type(error).__name__}: {error}"
        if isinstance(error, BrokenExecutor):
            self._pool = self._new_pool()
        return running.result() if error is None else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
