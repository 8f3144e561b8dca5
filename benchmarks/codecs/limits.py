"""A measurement in a process of its own, which ends when it has taken too much of the processor."""

import multiprocessing
import resource
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any


def within(seconds: int, measure: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """What `measure` yields in a child process; {"note": why} at the end where it took more than `seconds` of CPU."""
    context = multiprocessing.get_context("fork")  # the rows are shared, not sent
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(seconds, measure, sender))
    child.start()
    sender.close()
    try:
        while True:
            yield receiver.recv()
    except EOFError:
        child.join()
    if child.exitcode:
        over = child.exitcode in (-24, -9)  # SIGXCPU, SIGKILL
        yield {"note": f"stopped after {seconds} CPU s" if over else f"failed, exit {child.exitcode}"}


def _child(seconds: int, measure: Callable[[], Iterator[dict[str, Any]]], sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    for record in measure():
        sender.send(record)
    sender.close()
