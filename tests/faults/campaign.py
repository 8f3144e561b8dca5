"""The long campaign: suites in parts, each kept in a file when it ends: the next run goes on from there."""

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Event
from typing import Any, Protocol

from tests.faults.child import ROOT, Tell, Worker
from tests.faults.kills import PARTS, KillWorker
from tests.faults.table import Row


class Parts(Protocol):
    """What does a suite's cases by their numbers, and tells the outcome of each."""

    def part(self, first: int, stop: int, tell: Tell) -> Row: ...


@dataclass(frozen=True)
class Suite:
    """`count` cases, `size` of them a part; `worker(seed)` does them."""

    title: str
    worker: Callable[[int], AbstractContextManager[Parts]]
    count: int
    size: int


def _of(module: str, title: str, count: int, size: int) -> Suite:
    return Suite(title, partial(Worker, f"tests.faults.{module}"), count, size)


SUITES = {
    "readers": _of("readers", "readers", 1_000_000, 5_000),
    "folders": _of("folders", "saved folders", 100_000, 1_000),
    "signed": _of("folders:signed", "saved folders, re-signed", 30_000, 1_000),
    "commands": _of("commands", "command line", 2_000, 50),
    "sequences": _of("sequences", "sequences of 30 operations", 20_000, 100),
    "learners": _of("learners", "sequences of learning", 2_400, 120),
    "api": _of("api", "Python names, 20 calls each", 7_000, 100),
    "writers": _of("writers", "several at once", 30, 3),
    "kills": Suite("kill points", KillWorker, len(PARTS), 1),
}


class Stopped(Exception):
    """Ctrl-C, for the threads."""


class Campaign:
    """Suites by `workers` children beside each other; parts done at this commit are in the file `state`."""

    def __init__(self, state: Path, seed: int = 0, workers: int = 1, say: Callable[[str], None] = print) -> None:
        self.state, self.seed, self.workers, self.say = state, seed, workers, say
        self._known = _read(state, _commit())
        self._stop = Event()

    def run(self, name: str, count: int | None = None) -> Row:
        """The row of one suite, of `count` cases; a line every ten seconds says how far it is."""
        suite = SUITES[name]
        total = suite.count if count is None or name == "kills" else count
        row, tally = Row(suite.title), Row(suite.title)
        parts: Queue[tuple[int, int]] = Queue()
        for first in range(0, total, suite.size):
            part = (first, min(first + suite.size, total))
            if (kept := self._known.get((name, self.seed, *part))) is not None:
                row.add(kept)
            else:
                parts.put(part)
        start, before = time.monotonic(), row.inputs
        with ThreadPoolExecutor(self.workers) as pool:
            work = [pool.submit(self._work, name, parts, row, tally) for _ in range(self.workers)]
            try:
                while wait(work, timeout=10).not_done:
                    self.say(_progress(tally, before, start, total, len(row.faults)))
            except BaseException:
                self._stop.set()
                raise
        for done in work:
            done.result()
        self.say(_progress(tally, before, start, total, len(row.faults)))
        return row

    def _work(self, name: str, parts: Queue[tuple[int, int]], row: Row, tally: Row) -> None:
        """One thread: part after part by a worker of its own."""

        def tell(outcome: str) -> None:
            tally.outcomes[outcome] += 1
            if self._stop.is_set():
                raise Stopped

        with SUITES[name].worker(self.seed) as worker:
            while True:
                try:
                    part = parts.get_nowait()
                except Empty:
                    return
                try:
                    done = worker.part(*part, tell)
                except Stopped:
                    return
                self._keep(name, part, done)
                row.add(done)
                for fault in done.faults:
                    self.say(f"{row.suite}: {fault}")

    def _keep(self, name: str, part: tuple[int, int], done: Row) -> None:
        record = {"commit": _commit(), "suite": name, "seed": self.seed, "part": part, **done.record()}
        with self.state.open("a", encoding="utf-8") as file:  # one short write: whole, or at the end of a killed run
            file.write(json.dumps(record) + "\n")


def _progress(tally: Row, before: int, start: float, total: int, faults: int) -> str:
    done = sum(tally.outcomes.values())
    rate = done / max(time.monotonic() - start, 1e-9)
    left = (total - before - done) / rate / 60 if rate else 0
    return f"{tally.suite}: {before + done:,} of {total:,}, {rate:,.0f} a second, {left:.0f} min left, {faults} faults"


def _read(state: Path, commit: str) -> dict[tuple[Any, ...], Row]:
    """The parts that are in the file, of this commit; a line cut off by a kill is none."""
    found = {}
    for line in state.read_text(encoding="utf-8").splitlines() if state.is_file() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["commit"] == commit:
            found[record["suite"], record["seed"], *record["part"]] = Row.of_record(record)
    return found


def _commit() -> str:
    """The commit that is tried, and a mark where files differ from it."""
    words = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
