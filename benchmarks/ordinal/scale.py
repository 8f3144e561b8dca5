"""Ten million answers over 100,000 objects: time and peak memory of a process that only loads and fits."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ordinal.problems import synthetic

FIT = """
import json, resource, sys, time
import numpy as np
began = time.perf_counter()
import nearkin as nk
rows, test = np.load(sys.argv[1]), np.load(sys.argv[2])
first = time.perf_counter()
nk.OrdinalEmbedding(10, max_iter=2, random_state=0).fit(rows[:1000])
ready, ticks = time.perf_counter(), time.process_time()
model = nk.OrdinalEmbedding(10, loss=sys.argv[3], max_iter=int(sys.argv[4]), random_state=0).fit(rows)
print(json.dumps({
    "import_seconds": first - began, "first_call_seconds": ready - first, "fit_seconds": time.perf_counter() - ready,
    "processor_seconds": time.process_time() - ticks,
    "epochs": model.n_iter_, "error": 1 - model.score(test),
    "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


def measure(quick: bool) -> dict[str, Any]:
    n, m = (10_000, 1_000_000) if quick else (100_000, 10_000_000)
    train, test = synthetic(n, m, seed=0)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.npy", "test.npy")]
        for path, part in zip(paths, (train, test), strict=True):
            np.save(path, part.indices)
        del train
        for loss in ("ste",):
            command = [sys.executable, "-c", FIT, *paths, loss, "20"]
            source = str(Path(__file__).parents[2] / "src")
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": source}
            )
            rows.append({"n": n, "m": m, "loss": loss, **json.loads(done.stdout)})
            print(line(rows[-1]), flush=True)
    return {"rows": rows}


def line(row: dict[str, Any]) -> str:
    return (
        "{n} objects, {m} answers, {loss}: {fit_seconds:.1f} s ({processor_seconds:.1f} s of processor) for {epochs} "
        "epochs, error {error:.3f}, peak {peak_gigabytes:.2f} GB (first call {first_call_seconds:.2f} s)"
    ).format(**row)
