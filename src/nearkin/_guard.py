"""Many searches at a time or one change, a change that Ctrl-C cannot cut in two, and a Ctrl-C that is not lost."""

import _thread
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Guard:
    """A lock that searches share and changes hold alone; waiting changes come before new searches.

    A thread that holds it may take it again, but a search may not turn into a change: RuntimeError, where otherwise
    the thread would wait for itself.
    """

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._readers: Counter[int] = Counter()  # thread -> how often
        self._writer: int | None = None
        self._depth = self._waiting = 0

    def __reduce__(self) -> tuple[Callable[[], "Guard"], tuple[()]]:
        return Guard, ()  # a copy of an index has a lock of its own

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While the block runs, nothing changes."""
        me = threading.get_ident()
        with self._free:
            known = self._writer == me or self._readers[me] > 0
            self._free.wait_for(lambda: known or (self._writer is None and not self._waiting))
            self._readers[me] += 1
        try:
            yield
        finally:
            with self._free:
                self._readers[me] -= 1
                self._readers += Counter()  # forget threads that have left
                self._free.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the block runs, nobody else reads or changes anything."""
        me = threading.get_ident()
        with self._free:
            if self._writer != me:
                if self._readers[me]:
                    raise RuntimeError("the index is changed inside a callback of its own search or save; do it after")
                self._waiting += 1
                try:
                    self._free.wait_for(lambda: self._writer is None and not +self._readers)
                finally:
                    self._waiting -= 1
                self._writer = me
            self._depth += 1
        try:
            yield
        finally:
            with self._free:
                self._depth -= 1
                if not self._depth:
                    self._writer = None
                self._free.notify_all()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C in the block, which must be short, is raised behind it. (Python tells signals to the main thread only.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, object]] = []
    before = signal.getsignal(signal.SIGINT)
    if before is None:  # set by something that is not Python
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def interrupts_in_finalizers() -> Iterator[None]:
    """Ctrl-C that comes while Python runs a finalizer is raised again behind it.

    Python only prints what a `__del__` or a C library's callback raises, and goes on: numba's compiler runs many of
    them, so a Ctrl-C during a first compilation would be lost. A thread raises it again once this hook has returned.
    """
    before = sys.unraisablehook

    def again(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        later = threading.Timer(0.01, _thread.interrupt_main)
        later.daemon = True
        later.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
