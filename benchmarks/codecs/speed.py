"""Recall against queries a second among 10^5, 10^6 and 10^7 rows: ours, FAISS, ScaNN and usearch.

    python -m benchmarks codecs speed --only "ours, 16 bytes" "FAISS IVF, PQ32x4fs" --peers .peers
    python -m benchmarks codecs speed --rows 1000000 10000000 --at-once 12 --build-limit 200 --limit 340
    python -m benchmarks codecs speed --figure

SIFT descriptors, bytes: the 100,000 real rows first, then as many made ones as are wanted, each on the line from a real
row to one of its nearest in a tenth of them. 1,000 queries in one call (500 among 10^7), the quickest of three; in 256,
1,024 or 4,096 lists (ScaNN: leaves). All but ScaNN learn from other rows. Every engine is a process of its own, pinned
to one core and then to two (`curve.py`). `--at-once` builds so many engines together and then measures them on pairs of
cores, two pairs in five of the machine's at a time; what is not built by `--build-limit` seconds is a row that says so.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.codecs.fastest import draw
from benchmarks.codecs.peer_searchers import lists_of
from benchmarks.codecs.searchers import FACTORY, OURS, PEERS
from benchmarks.harness import arrays, limit_threads, save
from benchmarks.jobs import stored
from benchmarks.options import RESULTS, ROOT, parser, peer_python
from benchmarks.table import Results

SIZES = (10**5, 10**6, 10**7)
LEARNED = 16_384  # rows learned from, at least
_OVER = 4  # threads for each core, of engines that are built together and of which most wait for memory
_HUGE = 5_000_000  # rows from which half of the queries are asked


def source(rows: int) -> str:
    """The results of so many rows."""
    return f"codecs_speed_{len(str(rows)) - 1}"


def made_rows(real: np.ndarray, more: int) -> Iterator[np.ndarray]:
    """The real rows (n, d), then `more` parts of as many: each row on the line to one of its nearest in a tenth."""
    yield real
    if not more:
        return
    rng = np.random.default_rng(0)
    near = np.empty((len(real), more), np.int64)
    for part in np.array_split(rng.permutation(len(real)), 10):
        own = real[part].astype(np.float32)
        near[part] = part[faiss.knn(own, own, more + 1)[1][:, 1:]]
    for column in near.T:
        share = rng.uniform(0.2, 0.8, (len(real), 1)).astype(np.float32)
        yield np.rint(real * (1 - share) + real[column] * share).astype(np.uint8)


def prepare(folder: Path, data: Path, sizes: list[int]) -> None:
    """The files that `curve.py` reads."""
    learned, real, Q = arrays(data, "sift_bsds", "learn", "base", "query")
    np.save(folder / "queries.npy", Q)
    np.save(folder / "learned.npy", learned[: max(LEARNED, 10 * lists_of(max(sizes)))])
    for n in sizes:
        parts = -(-n // len(real))
        asked = Q[: len(Q) // 2] if n >= _HUGE else Q
        best = faiss.ResultHeap(len(asked), 10)
        with (folder / f"rows-{n}.u8").open("wb") as file:
            for number, part in enumerate(made_rows(real, parts - 1)):
                own = part[: n - number * len(real)]
                file.write(own.tobytes())
                scores, near = faiss.knn(asked.astype(np.float32), own.astype(np.float32), 10)
                best.add_result(scores, near + number * len(real))
        best.finalize()
        np.save(folder / f"truth-{n}.npy", best.I)


def pairs_of_cores() -> list[list[int]]:
    """Pairs of cores, of each physical one the first."""
    own = set()
    for core in sorted(os.sched_getaffinity(0)):
        file = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        siblings = file.read_text(encoding="utf-8") if file.exists() else str(core)
        own.add(min(int(text) for text in siblings.replace("-", ",").split(",")))
    cores = sorted(own)
    return [cores[at : at + 2] for at in range(0, len(cores) - len(cores) % 2 or 1, 2)]


class Engine:
    """One engine's process."""

    def __init__(self, name: str, rows: int, folder: Path, given: Namespace, cores: int) -> None:
        self.key = {"codec": name, "rows": rows}
        peer = name in PEERS
        python = peer_python(given.peers) if peer else Path(sys.executable)
        self._process: Any = None  # a Popen with pipes
        self._error, self.ready = folder / f"error-{name}-{rows}", False
        if python is None:
            return
        words = [str(Path(__file__).with_name("curve.py"))] if peer else ["-m", "benchmarks.codecs.curve"]
        settings = {"OMP_WAIT_POLICY": "passive"} | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(cores)
        )
        with self._error.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, *words, str(folder), str(rows), name, str(cores)], cwd=ROOT, text=True, stderr=errors,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | settings,
            )  # fmt: skip

    def built(self) -> None:
        """Wait until it is built or ended."""
        self.ready = self._process is not None and self._process.stdout.readline() == "built\n"

    def measured(self, cores: list[int]) -> Iterator[dict[str, Any]]:
        """A row for each number of threads."""
        if self.ready:
            self._process.stdin.write(" ".join(map(str, cores)) + "\n")
            self._process.stdin.flush()
            yield from (self.key | json.loads(line) for line in self._process.stdout)

    def end(self) -> str:
        """Stop it; the last line of its errors."""
        if self._process is None:
            return "not installed"
        self._process.kill()
        self._process.wait()
        return (self._error.read_text(encoding="utf-8").strip().splitlines() or ["not in time"])[-1]


def run(engines: list[tuple[str, int]], folder: Path, given: Namespace, began: float) -> Iterator[dict[str, Any]]:
    """Build these engines (names and rows) at the same time, measure them, a pair of cores each: their rows."""
    cores = len(os.sched_getaffinity(0))
    total = sum(rows for _, rows in engines)
    shares = [max(1, min(cores, _OVER * cores * rows // total)) for _, rows in engines]
    started = [Engine(*engine, folder, given, share) for engine, share in zip(engines, shares, strict=True)]
    late = threading.Timer(
        began + given.build_limit - time.monotonic(), lambda: [own.end() for own in started if not own.ready]
    )
    late.start()
    with ThreadPoolExecutor(len(started)) as pool:
        list(pool.map(Engine.built, started))
    late.cancel()
    pairs = pairs_of_cores()
    free: queue.Queue[list[int]] = queue.Queue()
    for pair in pairs[: -(-2 * len(pairs) // 3)] if len(started) > 1 else pairs[:1]:
        free.put(pair)
    found: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def measure(engine: Engine) -> None:
        pair = free.get()
        count = 0
        try:
            for row in engine.measured(pair[: given.threads]):
                count += 1
                found.put(row)
        finally:
            free.put(pair)
            note = engine.end()
            if not count:
                found.put(engine.key | {"note": note})
            found.put(None)

    late = threading.Timer(began + given.limit - time.monotonic(), lambda: [own.end() for own in started])
    late.start()
    with ThreadPoolExecutor(len(started)) as pool:
        for engine in started:
            pool.submit(measure, engine)
        for _ in started:
            yield from iter(found.get, None)
    late.cancel()


def main() -> None:
    options = parser(__doc__)
    names = (*OURS, *FACTORY, *PEERS)
    options.set_defaults(threads=2)
    options.add_argument("--only", nargs="+", default=names, choices=names)
    options.add_argument("--rows", nargs="+", type=int, default=[SIZES[0]])
    options.add_argument("--engines", nargs="+", metavar="ROWS: NAME", help="some of that grid")
    options.add_argument("--at-once", type=int, default=1, help="engines built at the same time")
    options.add_argument("--build-limit", type=float, default=1e6, help="seconds from the start")
    options.add_argument("--limit", type=float, default=1e6)
    options.add_argument("--figure", action="store_true", help="draw what was measured")
    given = options.parse_args()
    if given.figure:
        print(draw(Results(RESULTS)))
        return
    began = time.monotonic()
    limit_threads(len(os.sched_getaffinity(0)))
    engines = [(name, rows) for rows in given.rows for name in given.only]
    if given.engines:
        engines = [(name, int(rows)) for rows, _, name in (text.partition(": ") for text in given.engines)]
    sizes = sorted({rows for _, rows in engines})
    with tempfile.TemporaryDirectory() as text:
        prepare(Path(text), given.data, sizes)
        print(f"rows and neighbours: {time.monotonic() - began:.0f} s", flush=True)
        for first in range(0, len(engines), given.at_once):
            for row in run(engines[first : first + given.at_once], Path(text), given, began):
                keep(row)


def _better(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a point has more recall and speed than another in no more bytes, so that the other is not kept."""
    more = ("recall", "per_second")
    return one["bytes"] <= other["bytes"] and all(one[name] > other[name] for name in more)


def keep(row: dict[str, Any]) -> None:
    """Put a row into the results in place of the one that it measures again."""
    key, name = ("codec", "rows", "threads"), source(row["rows"])
    if "points" in row:
        row["points"] = [point for point in row["points"] if not any(_better(other, point) for other in row["points"])]
    old = [other for other in stored(name)[0] if any(other.get(part) != row.get(part) for part in key)]
    print({part: value for part, value in row.items() if part != "points"}, flush=True)
    save(name, [*old, row])


if __name__ == "__main__":
    main()
