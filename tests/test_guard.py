"""Forks while other threads search, and interrupts that come at a bad moment."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from nearkin._guard import Guard, cached_property, interrupts_in_finalizers
from tests.processes import Program


def test_a_child_forked_during_a_search_changes_its_index() -> None:
    """29 of 30 children waited for a search of a thread that they do not have, or for OpenMP's threads."""
    program = Program("tests.forking", env=os.environ | {"OMP_NUM_THREADS": "2"})
    printed, errors = program.communicate()
    assert printed == "[3, 3]\n", errors


def test_a_fork_waits_for_the_end_of_a_change() -> None:
    """A child that is made during a change would have half of it."""
    guard, changing, changed = Guard(), threading.Event(), []

    def change() -> None:
        with guard.writing():
            changing.set()
            time.sleep(0.3)
            changed.append(True)

    thread = threading.Thread(target=change)
    thread.start()
    changing.wait()
    child = os.fork()
    if not child:
        with guard.writing():
            os._exit(0 if changed else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


def test_a_child_forked_while_a_value_is_cached_caches_its_own() -> None:
    """In Python 3.11 one child of 200 hung in `Index.load`: the lock of a property was held by a thread it lacks."""
    making, forked = threading.Event(), threading.Event()

    class Thing:
        @cached_property
        def value(self) -> int:
            if threading.current_thread() is not threading.main_thread():
                making.set()
                forked.wait(60)
            return 7

    thread = threading.Thread(target=lambda: Thing().value)
    thread.start()
    assert making.wait(60)
    thing = Thing()
    if not (child := os.fork()):
        signal.alarm(30)
        os._exit(thing.value)
    forked.set()
    assert os.waitpid(child, 0)[1] == 7 << 8
    thread.join()
    assert (thing.value, vars(thing), Thing.value.__doc__) == (7, {"value": 7}, None)
    package = Path(__file__).parents[1] / "src"
    with_locks = [
        path for path in package.rglob("*.py") if re.search("functools.*cached_prop", path.read_text("utf-8"))
    ]
    assert with_locks == [package / "nearkin" / "_guard.py"]  # in words


def test_ctrl_c_in_a_finalizer_is_not_lost() -> None:
    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    try:
        for _ in range(3):
            with interrupts_in_finalizers(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
                Interrupted()
                end = time.monotonic() + 20
                while time.monotonic() < end:
                    pass
    finally:
        signal.signal(signal.SIGINT, before)
