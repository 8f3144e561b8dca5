"""What the benchmarks share: timing in turn, data by name, results as JSON with the machine they come from."""

import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.options import RESULTS, ROOT
from benchmarks.stored import write_json

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
_IN_A_ROW = 5  # calls before it is another's turn


def limit_threads(n: int) -> None:
    """The same number of threads for FAISS, torch and BLAS."""
    faiss.omp_set_num_threads(n)
    torch.set_num_threads(n)
    threadpool_limits(n)


def median_ms(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median CPU milliseconds (all threads) of each function, called in turn (A B A B), after one call to warm up.

    CPU time, because these machines are shared: what a neighbour takes is not counted, what threads burn in waiting is.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            for _ in range(_IN_A_ROW):
                function()
            times[name].append(1e3 * (time.process_time() - start) / _IN_A_ROW)
    return {name: statistics.median(values) for name, values in times.items()}


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads of this process, and what the function returned."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def memory_mb(what: str, pid: int | str = "self") -> float:
    """What the system counts of a process: "VmRSS", in memory now, or "VmHWM", the most so far (not rusage's, which for
    a child begins with its parent's); 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(what)), 0.0)


def by_peer(python: Path | None, script: Path, arrays: dict[str, np.ndarray], *words: Any) -> dict[str, Any]:
    """The JSON line that a script prints with the peers' Python, given a folder with data.npz and words, and its
    found.npy; a note where that cannot run."""
    if python is None:
        return {"note": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", **arrays)  # pyright: ignore[reportArgumentType]
        command = [python, script, folder, *map(str, words)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | ONE_THREAD)
        if done.returncode:
            return {"note": f"not installed or failed: {(done.stderr.splitlines() or [''])[-1]}"}
        row = json.loads(done.stdout.splitlines()[-1])
        found = {file.stem: np.load(file) for file in Path(folder).glob("*.npy")}
        return row | ({"found": found["found"]} if "found" in found else {"each": found} if found else {})


def arrays(folder: Path, name: str, *keys: str) -> tuple[np.ndarray, ...]:
    """Arrays of FOLDER/NAME.npz."""
    with np.load(folder / f"{name}.npz") as file:
        return tuple(file[key] for key in keys)


def save(name: str, results: Any, **settings: Any) -> Path:
    """Write results/NAME.json with the settings, the commit, the versions and the machine."""
    packages = ("nearkin", "numpy", "torch", "faiss-cpu", "numba", "scikit-learn")
    machine = {"cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version()}
    record = {
        "settings": {key: value.name if isinstance(value, Path) else value for key, value in settings.items()},
        "commit": commit(),
        "versions": {package: version(package) for package in packages},
        "machine": machine,
        "results": results,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    write_json(path, record)
    return path


@cache
def commit() -> str:
    """The commit of the tree that measures, with "+" if files differ from it; empty without git."""
    try:
        git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
        changed = git(["git", "status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py"]).stdout
        return git(["git", "rev-parse", "--short=8", "HEAD"]).stdout.strip() + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
