"""What one machine carries: rates and memory of fitting and encoding with one and with two processes, one thread each.

    python -m benchmarks scale              # rates
    python -m benchmarks scale run --quick  # a tenth of everything
    python -m benchmarks scale growth       # seconds and memory of every main call against the size of its input

One process and two take turns (A B A B). Two figures stand beside each other, medians over the turns: the wall clock,
which is what counts but is disturbed by neighbours, and the CPU seconds of the busiest process, which are not, but do
not see waiting. Results go to results/scale.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import nearkin as nk
from benchmarks.harness import ONE_THREAD, limit_threads, memory_mb, save
from benchmarks.options import ROOT, parser

SIZES = (1, 2)


def blobs(n: int, d: int, seed: int) -> np.ndarray:
    """Clustered rows (n, d) float32 with a falling spectrum; every process draws its own share."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(1000, d)).astype(np.float32)
    X = centres[rng.integers(1000, size=n)] + 0.5 * rng.standard_normal((n, d), np.float32)
    return X * (np.arange(1, d + 1) ** -0.25).astype(np.float32)


def tasks(scale: float) -> dict[str, tuple[Callable[[], object], float]]:
    """name -> (work of this process, number of rows or pairs of all processes)."""
    from nearkin._distributed import current

    group = current()
    n = int(2**18 * scale)
    first, stop = group.share(n, 4096)
    X, wide = blobs(stop - first, 64, group.rank), blobs(stop - first, 128, group.rank)
    options = {"rotation": "givens-greedy", "init": "pca", "max_iter": 10, "tol": 0.0, "random_state": 0}
    pq = nk.ProductQuantizer(8, 256, max_points_per_centroid=1024, **options)
    oge = nk.OgE(64, max_iter=20, tol=0.0, random_state=0)
    coder = nk.ProductQuantizer(8, 256, **(options | {"max_iter": 1})).fit(blobs(8192 // group.size, 64, group.rank))
    rng = np.random.default_rng(0)
    users, items, k = int(2e5 * scale), int(5e4 * scale), 64
    rows, columns = rng.integers(users, size=20 * users), rng.integers(items, size=20 * users)
    table = nk.Interactions.from_pairs(rows, columns, left_ids=np.arange(users), right_ids=np.arange(items))
    P, Q = (torch.from_numpy(rng.standard_normal((m, k), np.float32)) for m in (users, items))
    loss = nk.embedding.AllPairsLoss(table, omega=0.01, regularization=0.1)
    part = loss.part(group)

    def gradient() -> None:
        point = part.at(P[part.rows], Q)
        point.value(), point.gradient()

    return {
        "PQ fit, 10 + 5 rounds": (lambda: pq.fit(X), n),
        "OgE fit, 20 rounds": (lambda: oge.fit(wide), n),
        "all-pairs value and gradient": (gradient, len(table)),
        "encoding, 8 bytes": (lambda: coder.encode(X), n),
        "encoding, 64 bits": (lambda: oge.encode(wide), n),
    }


def worker(scale: float, repeats: int) -> None:
    """One process of a run: time every task between barriers; rank 0 prints the record."""
    from nearkin._distributed import join_processes

    limit_threads(1)
    with join_processes() as group:
        record = {}
        for name, (work, count) in tasks(scale).items():
            work()  # compile, and fill the caches
            times = []
            for _ in range(repeats):
                group.barrier()
                wall, cpu = time.perf_counter(), time.process_time()
                work()
                mine = time.process_time() - cpu
                busiest = max(group.exchange(mine))
                times.append((time.perf_counter() - wall, busiest))
            record[name] = {"count": count, "times": times}
        peak = group.exchange(memory_mb("VmHWM") / 1024)
        if group.rank == 0:
            sys.stdout.write(json.dumps({"tasks": record, "peak_gb": max(peak)}) + "\n")


def launch(size: int, arguments: list[str]) -> str:
    """Run a module with `size` processes by torchrun: what rank 0 prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}", "--module"]
    variables = os.environ | ONE_THREAD | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, env=variables, check=True).stdout


def rates(scale: float, turns: int, repeats: int) -> dict:
    """Each task's rate at one and two processes, and how many times as fast two are."""
    runs: dict[int, list[dict]] = {size: [] for size in SIZES}
    for _ in range(turns):
        for size in SIZES:
            part = ["benchmarks.part", "scale.run", "--worker", str(scale), "--repeats", str(repeats)]
            output = launch(size, part)
            runs[size].append(json.loads(output.splitlines()[-1]))
    record: dict = {"peak_gb": {size: max(run["peak_gb"] for run in runs[size]) for size in SIZES}, "tasks": {}}
    for name, first in runs[1][0]["tasks"].items():
        seconds = {}
        for size in SIZES:
            times = np.array([pair for run in runs[size] for pair in run["tasks"][name]["times"]])
            seconds[size] = {"wall": statistics.median(times[:, 0]), "cpu": statistics.median(times[:, 1])}
        record["tasks"][name] = {
            "count": first["count"],
            "seconds": seconds,
            "speedup": {clock: seconds[1][clock] / seconds[2][clock] for clock in ("wall", "cpu")},
        }
        row = record["tasks"][name]
        each = "  ".join(f"{size}: {row['count'] / seconds[size]['cpu']:>11,.0f}/s" for size in SIZES)
        print(f"{name:32s} {each}  x {row['speedup']['cpu']:.2f} (wall x {row['speedup']['wall']:.2f})", flush=True)
    return record


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--worker", type=float, help=argparse.SUPPRESS)
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    if given.worker is not None:
        worker(given.worker, given.repeats)
        return
    scale, turns = (0.1, 1) if given.quick else (1.0, 2)
    load = os.getloadavg()[0]
    results = {"rates": rates(scale, turns, given.repeats) | {"load_before": load}}
    save("scale_quick" if given.quick else "scale", results, quick=given.quick, threads_per_process=1)
