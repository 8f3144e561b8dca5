"""Threads and Ctrl-C: many threads search an index, one changes it, and Ctrl-C never interrupts a change."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from nearkin._guard import handled

alone = threading.RLock()
"""Held while an index is changed, and for a moment where a search begins or ends; a fork waits for it."""

if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(before=alone.acquire, after_in_parent=alone.release, after_in_child=alone.release)


class Guard:
    """Any number of threads search at once, and wait while one changes. A change while a search runs is a RuntimeError.

    `Guard(of)` is that of a view: RuntimeError for a change, and for a search once what it shows has changed.
    """

    def __init__(self, of: "Guard | None" = None) -> None:
        self._of: Guard = self if of is None else of._of
        self._changes: int = 0 if of is None else of._changes  # begun ones
        self._searches = Counter[int]()  # process -> how many: a forked one has none of its parent's threads

    @contextmanager
    def reading(self) -> Generator[None, None, None]:
        """While the block runs, nothing changes."""
        guard, process = self._of, os.getpid()
        with alone:
            if self._changes != guard._changes:
                raise RuntimeError("the index has changed since this view of it was made; make another one")
            guard._searches[process] += 1
        try:
            yield
        finally:
            with alone:
                guard._searches[process] -= 1

    @contextmanager
    def writing(self) -> Generator[None, None, None]:
        """While the block runs, no other thread searches or changes."""
        if self._of is not self:
            raise RuntimeError("a view is only searched; change the index that it was made of, or a copy of it")
        with alone:
            if self._searches[os.getpid()]:
                raise RuntimeError("the index is being searched, saved or copied; change it after that, or a copy")
            self._changes += 1
            yield


@contextmanager
def uninterrupted() -> Generator[None, None, None]:
    """Ctrl-C in the block, which must be short, is raised after it. (Python handles signals in the main thread.)"""
    came = list[int]()
    try:
        with handled(signal.SIGINT, lambda number, frame: came.append(number)):
            yield
    finally:
        if came:
            signal.raise_signal(signal.SIGINT)
