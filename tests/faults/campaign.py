"""The long campaign: the cases of each suite in parts, by several children beside each other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.faults import kills
from tests.faults.child import run_cases
from tests.faults.table import Row


@dataclass(frozen=True)
class Suite:
    """`count` cases, `size` of them a part; `part(first, stop, seed)` does them."""

    title: str
    part: Callable[[int, int, int], Row]
    count: int
    size: int


def _of(module: str, title: str, count: int, size: int) -> Suite:
    return Suite(title, partial(run_cases, f"tests.faults.{module}"), count, size)


SUITES = {
    "readers": _of("readers", "readers", 1_000_000, 50_000),
    "folders": _of("folders", "saved folders", 100_000, 10_000),
    "signed": _of("folders:signed", "saved folders, re-signed", 30_000, 3_000),
    "commands": _of("commands", "command line", 2_000, 200),
    "api": _of("api", "Python names, 20 calls each", 7_000, 700),
    "writers": _of("writers", "several at once", 30, 3),
    "kills": Suite("kill points", kills.part, len(kills.PARTS), 1),
}


def run(name: str, count: int | None = None, seed: int = 0, workers: int = 1) -> Row:
    """The row of one suite, of `count` cases."""
    suite = SUITES[name]
    total = suite.count if count is None or name == "kills" else count
    row = Row(suite.title)
    pool = ThreadPoolExecutor(workers)
    try:
        starts = range(0, total, suite.size)
        for done in pool.map(lambda first: suite.part(first, min(first + suite.size, total), seed), starts):
            row.add(done)
    finally:  # Ctrl-C waits for the parts that run
        pool.shutdown(cancel_futures=True)
    return row
