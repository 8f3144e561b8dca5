"""Threads and Ctrl-C: searches run concurrently, changes alone, and Ctrl-C never interrupts a change."""

import os
import signal
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, TypeVar, cast

Made = TypeVar("Made")
_free = threading.Condition()
"""One for all guards, held for moments: so a fork, and a change of two indexes, can wait for all of them at once."""


class Guard:
    """Any number of threads search at once. A change waits for them, and runs alone.

    A thread may take what it holds again, but not change what it searches: RuntimeError, where otherwise it would wait
    for itself. A fork waits for changes to end; searches of other threads are not in the child.

    `Guard(of)` is that of a view: read under the lock of `of`, and never changed. RuntimeError for a change, and for
    reading once what it shows has changed.
    """

    def __init__(self, of: "Guard | None" = None) -> None:
        self._of: Guard = self if of is None else of._of
        self._changes = 0 if of is None else of._changes  # begun ones
        self._readers = Counter[int]()  # thread -> how often
        self._writer: int | None = None  # a thread that changes, or waits for readers to end
        self._depth = 0
        with _free:
            _guards.add(self)

    def __reduce__(self) -> tuple[Callable[[], "Guard"], tuple[()]]:
        return Guard, ()  # a copy of an index has its own lock

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While the block runs, nothing changes."""
        guard, me = self._of, threading.get_ident()
        with _free:
            _free.wait_for(lambda: me in guard._readers or guard._writer in (None, me))
            if self._changes != guard._changes:
                raise RuntimeError("the index has changed since this view of it was made; make another one")
            guard._readers[me] += 1
        try:
            yield
        finally:
            with _free:
                guard._readers[me] -= 1
                if not guard._readers[me]:
                    del guard._readers[me]
                _free.notify_all()

    @contextmanager
    def writing(self, *others: "Guard") -> Iterator[None]:
        """While the block runs, no other thread reads or changes the objects of this guard and the others."""
        me, guards = threading.get_ident(), (self, *others)
        with _free:
            if any(guard._of is not guard for guard in guards):
                raise RuntimeError("a view is only searched; change the index that it was made of, or a copy of it")
            if any(guard._writer != me and me in guard._readers for guard in guards):
                raise RuntimeError("the index is changed inside a callback of its search or save; do it after")
            _free.wait_for(lambda: all(guard._writer in (None, me) for guard in guards))
            for guard in guards:
                guard._writer = me
                guard._depth += 1
                guard._changes += 1
        try:
            with _free:
                _free.wait_for(lambda: all(guard._readers.keys() <= {me} for guard in guards))
            yield
        finally:
            with _free:
                for guard in guards:
                    guard._depth -= 1
                    guard._writer = me if guard._depth else None
                _free.notify_all()


_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


def _before_fork() -> None:
    """Wait for the changes of other threads; one that waits for readers has changed nothing yet."""
    _free.acquire()
    me = threading.get_ident()
    _free.wait_for(lambda: all(guard._writer in (None, me) or guard._readers for guard in _guards))


def _in_child() -> None:
    """Forget all other threads, which a forked process does not have."""
    me = threading.get_ident()
    for guard in _guards:
        guard._readers = Counter({me: guard._readers[me]}) if me in guard._readers else Counter()
        if guard._writer != me:
            guard._writer, guard._depth = None, 0
    _free.release()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(before=_before_fork, after_in_parent=_free.release, after_in_child=_in_child)


class cached_property(Generic[Made]):
    """`functools.cached_property` without the lock that it has in Python 3.11: a process that is forked while another
    thread computes any object's value would wait for it."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Made:
        if instance is None:
            return cast(Any, self)
        made = instance.__dict__[self._name] = self._make(instance)  # which comes before this from then on
        return made


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


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C in the block, which must be short, is raised after it. (Python handles signals in the main thread.)"""
    came = list[int]()
    try:
        with handled(signal.SIGINT, lambda number, frame: came.append(number)):
            yield
    finally:
        if came:
            signal.raise_signal(signal.SIGINT)
