"""One engine's curve, in a process of its own: `curve.py FOLDER ROWS NAME CORES`; peers run it without nearkin.

FOLDER holds rows-ROWS.u8 (n, d), learned.npy, queries.npy and truth-ROWS.npy. The engine is built on all cores that it
is given. Then a line of standard input says what to measure: the numbers of the cores to use, or nothing to stop. One
line of JSON follows for each number of threads, up to that many: recall 10@10 and queries a second at each effort, and
one query alone; the bytes of a vector, the memory that the engine holds, and the most that building took.
"""

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_ANSWERS = 10
_SHORT = 0.4  # seconds after which a point is not repeated
_REPEATS, _ALONE = 3, 50  # the quickest of; queries asked one by one
_BLOCK = 250_000  # rows read at a time


class Rows:
    """Rows (n, d) of bytes in a file, of which some are read at a time, so that memory counts the engine alone."""

    def __init__(self, file: Path, d: int) -> None:
        self._file, self.d, self.n = file, d, file.stat().st_size // d

    def read(self, first: int, last: int) -> np.ndarray:
        last = min(last, self.n)
        return np.fromfile(self._file, np.uint8, (last - first) * self.d, offset=first * self.d).reshape(-1, self.d)

    def blocks(self, first: int = 0) -> Any:
        for start in range(first, self.n, _BLOCK):
            yield self.read(start, start + _BLOCK)

    def whole(self) -> np.ndarray:
        """All rows as float32, for engines that take no less."""
        found = np.empty((self.n, self.d), np.float32)
        for start in range(0, self.n, _BLOCK):
            found[start : start + _BLOCK] = self.read(start, start + _BLOCK)
        return found


def megabytes(what: str) -> float:
    """Of this process: "RssAnon" now, "VmHWM" the most so far."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def pin(cores: list[int]) -> None:
    """Every thread of this process onto these cores."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def points(made: Any, Q: np.ndarray, truth: np.ndarray, threads: int, recalls: dict[Any, float]) -> Any:
    """A point for each effort: CPU seconds of one thread, seconds by the clock of more."""
    clock = time.process_time if threads == 1 else time.perf_counter
    made.threads(threads)
    for effort in made.efforts:
        search, quickest, spent = made.searching(effort), float("inf"), 0.0
        search(Q[:8])
        for _ in range(_REPEATS):
            start = clock()
            found = search(Q)
            quickest = min(quickest, clock() - start)
            spent += quickest
            if spent > _SHORT:
                break
        if effort not in recalls:
            recalls[effort] = float(np.mean([len(set(a) & set(b)) for a, b in zip(found, truth, strict=True)])) / 10
        start = clock()
        for query in Q[:_ALONE] if threads == 1 else []:
            search(query[None])
        alone = {"alone_ms": 1e3 * (clock() - start) / _ALONE} if threads == 1 else {}
        size = made.size(effort)
        yield {"effort": effort, "recall": recalls[effort], "per_second": len(Q) / quickest, "bytes": size} | alone


def main() -> None:
    folder, n, name, cores = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    if name.startswith(("ScaNN", "usearch")):
        from peer_searchers import make  # beside this file; that Python has no nearkin
    else:
        from benchmarks.codecs.searchers import make
    Q, truth = np.load(folder / "queries.npy"), np.load(folder / f"truth-{n}.npy")
    before, began, cpu = megabytes("RssAnon"), time.perf_counter(), time.process_time()
    made = make(name, Rows(folder / f"rows-{n}.u8", Q.shape[1]), np.load(folder / "learned.npy"), cores)
    row = {"build_seconds": time.perf_counter() - began, "build_cpu": time.process_time() - cpu, "cores": cores}
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    print("built", flush=True)
    given = [int(word) for word in sys.stdin.readline().split()]
    recalls: dict[Any, float] = {}
    for threads in range(1, len(given) + 1):
        pin(given[:threads])
        found = list(points(made, Q[: len(truth)], truth[:, :_ANSWERS], threads, recalls))
        row |= {"memory_mb": megabytes("RssAnon") - before, "peak_mb": megabytes("VmHWM")}
        print(json.dumps({"threads": threads} | row | {"points": found}), flush=True)


if __name__ == "__main__":
    main()
