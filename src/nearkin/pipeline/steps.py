"""The steps of a job: named, timed, and reported to a callback."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nearkin.contracts import Callback, ignore

Watch = Callable[[str], AbstractContextManager[Callback]]


class Steps:
    """Runs the named steps of a job; `seconds` says how long each took.

    `watch(name)` is entered around every step and yields the callback that it reports to; by default nobody watches.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch or (lambda name: nullcontext(ignore))
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[Callback]:
        """Time the block under `name`; yields the callback to feed."""
        start = time.perf_counter()
        with self._watch(name) as callback:
            yield callback
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
