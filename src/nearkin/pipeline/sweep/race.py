"""Which codes are tried, and in which order: doubling sizes first, then finer ones where the answer lies."""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from nearkin.contracts import Callback, ignore
from nearkin.pipeline.methods import SCALARS, CodeSize, find_method
from nearkin.pipeline.sweep.choose import Choice, choose
from nearkin.pipeline.sweep.trial import Trial, measure

FIXED = {name: bits for name, (bits, _) in SCALARS.items()}  # methods whose size follows from d: bits a column
METHODS = ("procrustes", *FIXED)
FINE = 1.1  # refined until the next shorter code that was tried is shorter by less than this factor
_SMALLEST = 4  # bytes


class Race:
    """Trials of methods on (training rows, all rows), judged by Q (q, d) and its exact neighbours truth (q, k).

    `trials` are those measured, `out_of_time` whether some that were wanted were not, because `seconds` were over.
    """

    def __init__(
        self,
        rows: tuple[np.ndarray, np.ndarray],
        Q: np.ndarray,
        truth: np.ndarray,
        target: float,
        metric: str,
        random_state: int,
        seconds: float,
        callback: Callback = ignore,
    ) -> None:
        self._rows, self._Q, self._truth = rows, Q, truth
        self._target, self._metric, self._seed = target, metric, random_state
        self._end, self._callback = time.perf_counter() + seconds, callback
        self.trials: list[Trial] = []
        self.out_of_time = False

    def run(self, methods: Sequence[str]) -> None:
        """Measure what the answer needs: codes that cost little to train first, so that there is an answer early."""
        d = self._rows[1].shape[1]
        for method in (m for m in FIXED if m in methods):
            if self._best() is None:
                self._until_enough(method, [math.ceil(d * FIXED[method] / 8)])
        for method in (m for m in methods if m not in FIXED):
            best = self._best()
            limit = max(_SMALLEST, d // 2) if best is None else best.trial.n_bytes
            self._until_enough(method, [size for i in range(32) if (size := _SMALLEST * 2**i) <= limit])
        self._refine(lambda: choose(self.trials, self._target))
        self._refine(lambda: choose(self.trials, self._target, rescored=True))

    def _best(self) -> Choice | None:
        return choose(self.trials, self._target)

    def _until_enough(self, method: str, sizes: Sequence[int]) -> None:
        for size in sizes:
            trial = self._try(method, size)
            if trial is None or trial.low() >= self._target:
                return

    def _refine(self, best: Callable[[], Choice | None]) -> None:
        """Halve the gap (of logarithms) between the best choice and the next shorter code of its method."""
        while (choice := best()) is not None and choice.trial.method not in FIXED:
            size, method = choice.trial.n_bytes, choice.trial.method
            below = max((t.n_bytes for t in self.trials if t.method == method and t.n_bytes < size), default=0)
            between = round(math.sqrt(max(below, 1) * size))
            if size <= FINE * below or between in (below, size) or size <= _SMALLEST:
                return
            if self._try(method, between) is None:
                return

    def _try(self, method: str, n_bytes: int) -> Trial | None:
        """The trial of a method at a size; None if there is no time for it, judged by the longest so far."""
        longest = max((trial.seconds for trial in self.trials), default=0.0)
        if time.perf_counter() + longest > self._end:
            self.out_of_time = True
            return None
        size = CodeSize(None if method in FIXED else n_bytes)
        quantizer = find_method(method).make(size, self._seed)
        trial = measure(method, n_bytes, quantizer, self._rows, self._Q, self._truth, metric=self._metric)
        self.trials.append(trial)
        self._callback(len(self.trials), {"bytes": n_bytes, "recall": trial.mean()})
        return trial
