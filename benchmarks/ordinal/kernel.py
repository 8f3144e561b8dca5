"""What one gradient costs, against a C loop compiled for this machine: the share of what it allows."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ordinal.problems import seconds, synthetic
from nearkin.embedding.ordinal.losses import LOSSES, get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows
from nearkin.solvers import Plain, RowScaled, VarianceReduced

# The hinge's full gradient in 10 dimensions: sizes known when compiled, no other loss, triplets only.
C_LOOP = """
#include <stdint.h>
#define P 12
void pass(const float *restrict x, float *restrict g, const uint32_t *restrict q, long m) {
  for (long t = 0; t < m; t++) {
    const float *xi = x + P * (long)q[3*t], *xj = x + P * (long)q[3*t+1], *xk = x + P * (long)q[3*t+2];
    float *gi = g + P * (long)q[3*t], *gj = g + P * (long)q[3*t+1], *gk = g + P * (long)q[3*t+2];
    float u[P], v[P], a = 0, b = 0;
    for (int c = 0; c < P; c++) { u[c] = xi[c] - xj[c]; v[c] = xi[c] - xk[c]; }
    for (int c = 0; c < P; c++) { a += u[c] * u[c]; b += v[c] * v[c]; }
    if (1 + a - b <= 0) continue;
    for (int c = 0; c < P; c++) { gj[c] -= 2 * u[c]; }
    for (int c = 0; c < P; c++) { gk[c] += 2 * v[c]; }
    for (int c = 0; c < P; c++) { gi[c] += 2 * (u[c] - v[c]); }
  }
}
"""


def measure(quick: bool) -> dict[str, Any]:
    rows = []
    for n, m in ((100, 10_000), (1000, 100_000)) if quick else ((100, 100_000), (1000, 300_000), (10_000, 1_000_000)):
        train, _ = synthetic(n, m, seed=0)
        x = pad_rows(np.random.default_rng(1).normal(0, 0.1, (n, 10)))
        row: dict[str, Any] = {"n": n, "m": m, "nanoseconds": {}}
        row["c_loop"] = c_nanoseconds(x, train.indices)
        for loss in LOSSES:
            row["nanoseconds"][loss] = kernel_nanoseconds(OrdinalObjective(train.indices, n, get_loss(loss, 10)), x)
        again = c_nanoseconds(x, train.indices)  # A B A: the machine is shared
        row["c_loop"] = None if again is None else min(again, row["c_loop"])
        rows.append(row)
        print(line(row), flush=True)
    return {"p": 10, "dtype": "float32", "rows": rows}


def kernel_nanoseconds(problem: OrdinalObjective, x: np.ndarray) -> dict[str, float]:
    """Per comparison: a full gradient, an SVRG pass (two gradients each), passes of SGD and AdaGrad."""
    m = problem.n_terms
    snapshot = problem.snapshot(x)
    accumulator = np.full(len(x), 1.0, np.float32)
    passes = {
        "gradient": lambda: problem.gradient(x),
        "svrg": lambda: problem.walk(x.copy(), VarianceReduced(1e-9, snapshot, 1, m)),
        "sgd": lambda: problem.walk(x.copy(), Plain(1e-9)),
        "adagrad": lambda: problem.walk(x.copy(), RowScaled(1e-6, accumulator)),
    }
    return {name: 1e9 * seconds(run) / m for name, run in passes.items()}


def c_nanoseconds(x: np.ndarray, q: np.ndarray) -> float | None:
    """The same for the C loop; None without a compiler."""
    with compiled() as loop:
        if loop is None:
            return None
        g = np.zeros_like(x)
        return 1e9 * seconds(lambda: call(loop, x, g, q)) / len(q)


def c_gradient(x: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """The gradient by the C loop, to prove that it computes the same."""
    with compiled() as loop:
        if loop is None:
            return None
        g = np.zeros_like(x)
        call(loop, x, g, q)
        return g


def call(loop: Any, x: np.ndarray, g: np.ndarray, q: np.ndarray) -> None:
    loop(*(array.ctypes.data_as(ctypes.c_void_p) for array in (x, g, q)), ctypes.c_long(len(q)))


@contextmanager
def compiled() -> Iterator[Any]:
    """The C loop as a function, or None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
        source.write_text(C_LOOP)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        yield getattr(ctypes.CDLL(str(library)), "pass")


def line(row: dict[str, Any]) -> str:
    text = f"{row['n']:>6} {row['m']:>8} "
    if row["c_loop"] is not None:
        text += f"C loop {row['c_loop']:.1f} ns"
    for loss, times in row["nanoseconds"].items():
        share = "" if row["c_loop"] is None else f" ({row['c_loop'] / times['gradient']:.0%})"
        text += f" | {loss} {times['gradient']:.1f}{share}, svrg {times['svrg']:.0f}, adagrad {times['adagrad']:.0f}"
    return text
