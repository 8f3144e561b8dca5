"""Which codes are trained: few rows say how recall grows with the bytes, whole trainings close in on the target."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from nearkin._words import counted
from nearkin.contracts import Callback, ignore
from nearkin.pipeline.methods import SCALARS, find_method
from nearkin.pipeline.sweep.choose import Choice, choose, judged_at
from nearkin.pipeline.sweep.forecast import Forecast
from nearkin.pipeline.sweep.trial import Code, Trial

METHODS = ("procrustes", "residual", "product-residual", *SCALARS)
FINE = 1.05  # closed in until the next shorter code that was tried is shorter by less than this factor
MOST_BYTES = 512  # of a code that is learned
_IN_LISTS = "procrustes"  # the method that is tried in inverted lists
_LONGER = (1.0, 1.1, 1.25)  # times the bytes that are enough without lists, tried one after the other in lists
_ALONE, _RESCORED = False, True
_SHARES = {_ALONE: 0.65, _RESCORED: 0.8}  # of the time, after which a question is closed; the rest is for lists
_NEAR = 0.7  # of the first method's size: codes that keep as much are not much shorter


class Measuring(Protocol):
    """What trains and judges codes: a `Bench`, or one that remembers."""

    def measure(self, code: Code, *, light: bool = False) -> Trial: ...

    def measure_lists(self, code: Code, probes: Iterable[int]) -> Iterator[Trial]: ...


class Race:
    """Trials of methods on rows of d columns, measured by `bench`.

    `trials` are the codes trained whole, `scouts` those learned from few rows, `out_of_time` whether some that were
    wanted were not trained, because `seconds` were over. `whole` is how many times the seconds of a light training a
    whole one is taken for, until one was measured.
    """

    def __init__(
        self,
        bench: Measuring,
        target: float,
        d: int,
        seconds: float,
        rate: float = 0.0,
        callback: Callback = ignore,
        whole: float = 5.0,
    ) -> None:
        self._bench, self._target, self._d, self._rate, self._callback = bench, target, d, rate, callback
        self._start, self._seconds, self._whole = time.perf_counter(), seconds, whole
        self._forecast = {_ALONE: Forecast(), _RESCORED: Forecast()}
        self.scouts: list[Trial] = []
        self.trials: list[Trial] = []
        self.out_of_time = False

    def run(self, methods: Sequence[str]) -> None:
        """Measure what the answers need: codes that cost little to train first, so that there is an answer early."""
        for method in methods:
            if method in SCALARS and self._best(_ALONE) is None:
                self._try(Code(method, self._most(method)), 1.0)
        learned = [method for method in methods if method not in SCALARS]
        self._scout_sizes(learned[:1])
        for method in learned[:1]:  # an answer by codes alone that is not far off, however little time there is
            expected = self._next(method, _ALONE)
            if expected is not None:
                self._try(Code(method, expected), _SHARES[_RESCORED])
        self._close_in(learned[:1], _RESCORED)  # short codes, soon trained
        self._try_others(learned)
        for rescored in (_ALONE, _RESCORED):
            self._close_in(learned, rescored)

    def race_lists(self, n_lists: int) -> None:
        """Codes in inverted lists: the shortest product codes that keep enough, with more and more lists visited."""
        for rescored in (_ALONE, _RESCORED):
            shortest = self._shortest_in_lists(rescored)
            for size in [] if shortest is None else [math.ceil(factor * shortest) for factor in _LONGER]:
                if size <= self._d and (self._probe(Code(_IN_LISTS, size, n_lists), rescored) or self.out_of_time):
                    break

    def _shortest_in_lists(self, rescored: bool) -> int | None:
        """Bytes of the shortest product code that keeps enough without lists: measured, else as few rows foretell."""
        flat = [trial for trial in self.trials if trial.method == _IN_LISTS and not trial.code.n_lists]
        best = choose(flat, self._target, rescored=rescored)
        if best is not None:
            return best.trial.n_bytes
        return self._expected(_IN_LISTS, rescored, 0, self._most(_IN_LISTS) + 1)

    def _probe(self, code: Code, rescored: bool) -> bool:
        """Judge a code with 1, 2, 3, 4, 6, 8, ... lists visited, until enough neighbours are kept."""
        if not self._has_time(code, 1.0):
            return False
        steps = [count for i in range(20) for count in (2**i, 3 * 2 ** (i - 1)) if count == int(count)]
        probes = [int(count) for count in steps if count <= code.n_lists // 2]
        for trial in self._bench.measure_lists(code, probes):
            self._keep(trial)
            if choose([trial], self._target, rescored=rescored) is not None:
                return True
        return False

    def _best(self, rescored: bool) -> Choice | None:
        return choose(self.trials, self._target, rescored=rescored, rate=self._rate)

    def _longest(self, first: str) -> int:
        """The most bytes that a code of the first learned method may have and still be the shortest."""
        best = self._best(_ALONE)
        return self._most(first) if best is None else min(best.trial.n_bytes, self._most(first))

    def _scout_sizes(self, first: Sequence[str]) -> None:
        """Codes of the first method at doubling sizes, learned from few rows."""
        for method in first:
            size = 1
            while size <= self._longest(method) and self._look(Code(method, size)):
                if self.scouts[-1].low() >= self._target:
                    break
                size *= 2

    def _try_others(self, methods: Sequence[str]) -> None:
        """Codes of the other methods where the first one's answers seem to lie; few rows would hardly be faster."""
        for method in methods[1:]:
            limit = self._longest(methods[0])
            for rescored in (_ALONE, _RESCORED):
                expected = self._expected(methods[0], rescored, 0, limit + 1) or limit
                near = [size for size in self._sizes(method) if _NEAR * expected <= size <= expected]
                if near and not any(trial.code == (method, near[-1], 0) for trial in self.trials):
                    self._try(Code(method, near[-1]), _SHARES[rescored])

    def _look(self, code: Code) -> bool:
        """Measure a code learned from few rows; False if there was no time."""
        if time.perf_counter() - self._start > self._seconds / 2:
            self.out_of_time = True
            return False
        trial = self._bench.measure(code, light=True)
        self.scouts.append(trial)
        for rescored, forecast in self._forecast.items():
            forecast.light.setdefault(code.method, {})[code.n_bytes] = trial.low(judged_at(trial, rescored))
        self._tell(trial, " learned from few rows")
        return True

    def _close_in(self, methods: Sequence[str], rescored: bool) -> None:
        """Train the code that is expected to be the shortest that keeps enough, until none shorter is expected to."""
        while not rescored or any(judged_at(trial, rescored) > 1 for trial in [*self.scouts, *self.trials]):
            wanted = [(size, method) for method in methods if (size := self._next(method, rescored)) is not None]
            if not wanted:
                return
            n_bytes, method = min(wanted)
            if not self._try(Code(method, n_bytes), _SHARES[rescored]):
                return

    def _next(self, method: str, rescored: bool) -> int | None:
        """The size of a method to train next; None where no shorter code than the best is expected of it."""
        whole = [trial for trial in self.trials if trial.method == method]
        if method != _IN_LISTS and any(trial.queries_per_second < self._rate for trial in whole):
            return None  # too slow, and longer codes are slower
        mine = {t.n_bytes: choose([t], self._target, rescored=rescored) is not None for t in whole}
        best = self._best(rescored)
        above = min([size for size, enough in mine.items() if enough], default=self._most(method) + 1)
        above = above if best is None else min(above, best.trial.n_bytes)
        below = max((size for size, enough in mine.items() if not enough and size < above), default=0)
        between = [size for size in self._sizes(method) if below < size < above]
        if not between or above <= FINE * below:
            return None
        expected = self._expected(method, rescored, below, above)
        if expected is not None:
            return expected
        return between[-1] if mine.get(above) and below not in mine else None

    def _expected(self, method: str, rescored: bool, below: int, above: int) -> int | None:
        """The smallest size between, of those the method has, that is expected to keep enough."""
        forecast = self._forecast[rescored]
        sizes = (size for size in self._sizes(method) if below < size < above)
        return next((size for size in sizes if forecast.recall(method, size) >= self._target), None)

    def _sizes(self, method: str) -> Sequence[int]:
        return [size for size in find_method(method).sizes(self._d) if size <= MOST_BYTES or method in SCALARS]

    def _most(self, method: str) -> int:
        return max(self._sizes(method), default=0)

    def _try(self, code: Code, share: float) -> bool:
        """Train and judge a code, if it is done before `share` of the time is over."""
        if not self._has_time(code, share):
            return False
        self._keep(self._bench.measure(code))
        return True

    def _keep(self, trial: Trial) -> None:
        self.trials.append(trial)
        if not trial.code.n_lists:
            for rescored, forecast in self._forecast.items():
                recall = trial.low(judged_at(trial, rescored))
                forecast.whole.setdefault(trial.method, {})[trial.n_bytes] = recall
        self._tell(trial, "" if trial.n_probe is None else f" in lists, {trial.n_probe} visited")

    def _tell(self, trial: Trial, how: str) -> None:
        """What was just measured, for the bar or the log."""
        note = f"{trial.method}, {counted(trial.n_bytes, 'byte')}{how}: recall {trial.mean():.4f}"
        record = {"bytes": trial.n_bytes, "recall": trial.mean(), "note": note}
        self._callback(len(self.scouts) + len(self.trials), record)

    def _has_time(self, code: Code, share: float) -> bool:
        """Whether a whole training would end in time, judged by the code of that method that is nearest in size.

        Of a method of which none was trained, by the codes of the first method that were learned from few rows.
        """
        known = [(t.n_bytes, t.seconds) for t in self.trials if t.method == code.method and not t.code.n_lists]
        known += [(t.n_bytes, self._whole * t.seconds) for t in self.scouts if t.method == code.method or not known]
        size, taken = min(known, key=lambda pair: abs(math.log(pair[0] / code.n_bytes)), default=(1, 0.0))
        taken *= max(1.0, code.n_bytes / size)
        if time.perf_counter() - self._start + taken <= share * self._seconds:
            return True
        self.out_of_time = True
        return False


def lists_for(n: int) -> int:
    """About four times the square root of n rows, a power of two."""
    return 2 ** round(math.log2(4 * math.sqrt(n)))
