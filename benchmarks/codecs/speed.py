"""Recall against queries a second among 10^5, 10^6 and 10^7 rows: ours, FAISS, ScaNN and usearch.

    python -m benchmarks codecs speed --only "ours, 16 bytes" "FAISS IVF, PQ32x4fs" --peers .peers
    python -m benchmarks codecs speed --rows 1000000
    FAISS_SIMD_LEVEL=NONE python -m benchmarks codecs speed
    python -m benchmarks codecs speed --figure

SIFT descriptors, bytes: the 100,000 real rows first, then as many made ones as are wanted, each on the line from a real
row to one of its nearest in a tenth of them. 1,000 queries in one call (500 among 10^7), the quickest of three; in 256,
1,024 or 4,096 lists (ScaNN: leaves). All but ScaNN learn from other rows. Every engine is a process (`curve.py`), built
on all cores, then pinned to one core and to two.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
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
_HUGE = 5_000_000  # rows from which half of the queries are asked


def source(rows: int) -> str:
    """The results of so many rows."""
    return f"codecs_speed_{len(str(rows)) - 1}" + "_sse4" * (faiss.SIMDConfig.get_level_name() == "NONE")


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


def measured(name: str, rows: int, folder: Path, given: Namespace) -> Iterator[dict[str, Any]]:
    """Build an engine in its process, then measure it: a row for each number of threads, or a note."""
    key, peer, allowed = {"codec": name, "rows": rows}, name in PEERS, sorted(os.sched_getaffinity(0))
    python = peer_python(given.peers) if peer else Path(sys.executable)
    if python is None:
        yield key | {"note": "not installed"}
        return
    words = [str(Path(__file__).with_name("curve.py"))] if peer else ["-m", "benchmarks.codecs.curve"]
    settings = {"OMP_WAIT_POLICY": "passive"} | dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(len(allowed))
    )
    with tempfile.TemporaryFile("w+") as errors:
        engine: Any = subprocess.Popen(
            [python, *words, str(folder), str(rows), name, str(len(allowed))], cwd=ROOT, text=True, stderr=errors,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | settings,
        )  # fmt: skip
        if engine.stdout.readline() == "built\n":
            found = engine.communicate(" ".join(map(str, allowed[: given.threads])) + "\n")[0].splitlines()
            yield from (key | json.loads(line) for line in found)
        if engine.wait():
            errors.seek(0)
            yield key | {"note": (errors.read().strip().splitlines() or ["killed"])[-1]}


def main() -> None:
    options = parser(__doc__)
    names = (*OURS, *FACTORY, *PEERS)
    options.set_defaults(threads=2)
    options.add_argument("--only", nargs="+", default=names, choices=names)
    options.add_argument("--rows", nargs="+", type=int, default=[SIZES[0]])
    options.add_argument("--figure", action="store_true", help="draw what was measured")
    given = options.parse_args()
    if given.figure:
        print(draw(Results(RESULTS)))
        return
    began = time.monotonic()
    limit_threads(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as text:
        prepare(Path(text), given.data, sorted(given.rows))
        print(f"rows and neighbours: {time.monotonic() - began:.0f} s", flush=True)
        for rows in given.rows:
            for name in given.only:
                for row in measured(name, rows, Path(text), given):
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
