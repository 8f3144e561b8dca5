"""Processor time of a whole default fit, the race of starts included, beside 20 rounds of FAISS's OPQ.

    python -m benchmarks quantization times --columns 128 512 --threads 2 --busy

8,192 rows, a byte for 16 to 64 columns. `--busy` runs a neighbour that multiplies matrices on every core meanwhile. CPU
seconds of all threads, wall seconds beside them; the load of the machine when each began is part of the record.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser
from benchmarks.quantization.peers import faiss_opq
from benchmarks.table import Results
from nearkin import ProductQuantizer

ROWS, ROUNDS = 8_192, 20
BYTES = {128: 8, 300: 15, 512: 16, 784: 16, 1024: 16}
_NEIGHBOUR = "import numpy as np\nA = np.ones((600, 600))\nwhile True:\n    A @ A"


def rows(columns: int, folder: Path) -> tuple[str, np.ndarray]:
    """SIFT, sentences (their first columns), GIST, MNIST, and normal rows of decaying variances."""
    files = {
        128: ("sift_bsds", "learn"),
        300: ("wordnet_minilm", "X"),
        512: ("cifar10_gist512", "X"),
        784: ("mnist", "X_train"),
    }
    if columns in files:
        file, name = files[columns]
        with np.load(folder / f"{file}.npz") as z:
            return file, np.ascontiguousarray(z[name][:ROWS, :columns], np.float32)
    rng = np.random.default_rng(0)
    mix = np.linalg.qr(rng.normal(size=(columns, columns)))[0] * np.arange(1, columns + 1) ** -0.5
    return "normal", (rng.normal(size=(ROWS, columns)) @ mix.T).astype(np.float32)


def timed(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """The repeat that took the fewest CPU seconds."""
    tries: list[dict[str, float]] = []
    for _ in range(repeats):
        load, wall, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
        work()
        tries.append({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "load": load})
    return min(tries, key=lambda found: found["cpu"])


def measured(columns: int, threads: int, busy: bool, folder: Path, repeats: int) -> dict[str, Any]:
    """Both fits of rows of so many columns."""
    limit_threads(threads)
    data, X = rows(columns, folder)
    n_bytes = BYTES[columns]
    neighbours = [subprocess.Popen([sys.executable, "-c", _NEIGHBOUR]) for _ in range((os.cpu_count() or 1) * busy)]
    try:
        ours = timed(lambda: ProductQuantizer(n_bytes, random_state=0).fit(X), repeats)
        peer = timed(lambda: faiss_opq(X, n_bytes, 8, "identity", ROUNDS), repeats)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    about = {"columns": columns, "threads": threads, "busy": busy, "data": data, "bytes": n_bytes}
    return about | {"ours": ours, "FAISS": peer}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--columns", nargs="+", type=int, choices=tuple(BYTES), default=tuple(BYTES))
    options.add_argument("--busy", action="store_true")
    options.add_argument("--repeats", type=int, default=1, help="fits of each; the quickest counts")
    given = options.parse_args()
    for columns in (128,) if given.quick else given.columns:
        row = measured(columns, given.threads, given.busy, given.data, given.repeats)
        found = Results(RESULTS).read("quantization_times") or []
        save("quantization_times", [*(old for old in found if _key(old) != _key(row)), row], rows=ROWS, rounds=ROUNDS)
        print(row, flush=True)


def _key(row: dict[str, Any]) -> tuple[int, int, bool]:
    return row["columns"], row["threads"], row["busy"]


if __name__ == "__main__":
    main()
