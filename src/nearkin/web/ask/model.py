"""The model of a survey: fitted again from time to time in a process apart, so that no question waits for it."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np

from nearkin.embedding.ordinal import OrdinalEmbedding
from nearkin.metrics.ordinal import triplet_error
from nearkin.records import Comparisons

FEWEST = 10  # answers before the first fit
FEWEST_TO_WEIGH = 30  # answers of each of two raters before raters are weighed
_GROWTH = 1.05  # a fit starts when there are this many times the answers of the last one


@dataclass(frozen=True)
class Job:
    """What one fit is made from: n items, comparisons (m, 4) to learn, and others (h, 4) to compute the error on."""

    n_items: int
    learned: np.ndarray
    held_out: np.ndarray
    n_components: int
    n_questions: int
    seed: int
    rows_per_answer: int = 1  # comparisons that one answer implies, one after the other in `learned`
    raters: np.ndarray | None = None  # (answers,) the number of each answer's rater


@dataclass(frozen=True)
class Fitted:
    """A finished fit: embedding (n, p), the error on the answers held out (None without any), the next questions, and
    raters' weights by number, the best one's 1 (none where all weigh the same)."""

    embedding: np.ndarray
    n_answers: int
    error: float | None
    questions: list[tuple[int, ...]]
    weights: dict[object, float] = field(default_factory=dict)


def fit(job: Job) -> Fitted:
    """Fit an embedding to the answers, and choose what to ask next; runs in the model's own process."""
    names = np.arange(job.n_items)
    events = None if job.rows_per_answer == 1 else np.arange(len(job.learned)) // job.rows_per_answer
    raters = None if job.raters is None else np.repeat(job.raters, job.rows_per_answer)
    answers = Comparisons(job.learned, names, annotators=raters, events=events)
    weighed = job.raters is not None and int((np.bincount(job.raters) >= FEWEST_TO_WEIGH).sum()) >= 2
    model = OrdinalEmbedding(job.n_components, random_state=job.seed)
    model.fit(answers, raters="estimated" if weighed else "equal")
    error = triplet_error(model.embedding_, Comparisons(job.held_out, names)) if len(job.held_out) else None
    asked = model.next_queries(job.n_questions, random_state=job.seed + len(job.learned))
    questions = [tuple(map(int, row)) for row in asked]
    return Fitted(model.embedding_, len(job.learned), error, questions, model.rater_reliability_ or {})


class Learner:
    """Runs `fit` in a process apart; `take` gives what it finished, once."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._running: Future[Fitted] | None = None
        self._last = 0
        self.failure: str | None = None

    def offer(self, make: Callable[[], Job], n_answers: int) -> None:
        """Begin a fit if none runs and there are enough new answers."""
        if self._running is not None or n_answers < max(FEWEST, _GROWTH * self._last, self._last + 1):
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._last, self._running = n_answers, self._pool.submit(fit, make())

    def take(self) -> Fitted | None:
        """The fit that has finished since the last call, None if there is none.

        A fit that failed (answers that cancel out, a process that was killed for memory) is dropped and named in
        `failure`; more answers start the next one.
        """
        if self._running is None or not self._running.done():
            return None
        running, self._running = self._running, None
        error = running.exception()
        self.failure = None if error is None else f"{type(error).__name__}: {error}"
        if isinstance(error, BrokenExecutor):
            self._pool = None
        return running.result() if error is None else None

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
