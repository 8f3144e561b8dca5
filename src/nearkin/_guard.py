"""Values kept on first use, and handlers of signals, in processes that fork and have threads."""

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Made = TypeVar("Made")


class cached_property(functools.cached_property[Made]):
    """Without the lock that it has in Python 3.11: a process that is forked while another thread computes any object's
    value would wait for it."""

    def __get__(self, instance: Any, owner: type | None = None) -> Made:  # pyright: ignore[reportIncompatibleMethodOverride]
        if instance is None:
            return self  # pyright: ignore[reportReturnType]
        return instance.__dict__.setdefault(self.attrname, self.func(instance))


@contextmanager
def handled(number: int, handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    """While the block runs in the main thread, the only one that may set handlers, `handler` gets this signal."""
    before = signal.getsignal(number)
    if threading.current_thread() is not threading.main_thread() or before is None:  # None: not set by Python
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
