"""Forks while other threads search, and interrupts that come at a bad moment."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nearkin._guard import Guard, interrupts_in_finalizers

FORK = """
import os, sys, threading, time
import faiss, numpy as np
from nearkin import Index, ProductQuantizer
faiss.omp_set_num_threads(2)
X = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)

def children(index):
    stop, ended = threading.Event(), 0
    def search():
        while not stop.is_set():
            index.search(X, 5)
    index.search(X, 5)
    thread = threading.Thread(target=search)
    thread.start()
    for i in range(3):
        time.sleep(.006 * i)
        child = os.fork()
        if not child:
            index.add(X[:9]).search(X[:300], 3)
            os._exit(0 if len(index) == 2009 else 1)
        for _ in range(600):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                ended += status == 0
                break
            time.sleep(.05)
        else:
            os.kill(child, 9)
            break
    stop.set()
    thread.join()
    return ended

quantizers = None, ProductQuantizer(4, 16, max_iter=1, random_state=0)
print([children(Index.build(X, quantizer)) for quantizer in quantizers])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_child_forked_during_a_search_changes_its_index() -> None:
    """29 of 30 children waited for a search of a thread that they do not have, or for OpenMP's threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.stdout == "[3, 3]\n", done.stderr


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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Windows has no such signals")
@pytest.mark.parametrize("late", [0.0, 0.05])
def test_ctrl_c_in_a_finalizer_is_not_lost_where_the_main_thread_is_late(late: float, monkeypatch) -> None:
    """It was sent again once, after 10 ms, and lost where the hook that had started the sender still ran."""

    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0)

    def start(thread: threading.Thread) -> None:
        usual(thread)
        end = time.monotonic() + late
        while time.monotonic() < end:  # a signal that comes here is raised here
            pass

    usual = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    try:
        for _ in range(3):
            with interrupts_in_finalizers(), pytest.raises(KeyboardInterrupt):  # noqa: PT012
                Interrupted()
                time.sleep(20.0)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
