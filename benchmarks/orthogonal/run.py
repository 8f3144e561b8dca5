"""Cost of one step from a given gradient: every method and every peer in one run, in turn (A B A B).

    python -m benchmarks orthogonal run --quick
    python -m benchmarks orthogonal --sizes 64x64 1024x64 --methods riemannian,POGO

The gradient is Gaussian and lr such that a step's skew matrix has norm 0.1 (spectral, estimated); matrix exponentials
and Newton-Schulz steps cost more at larger norms. `share` is the counted arithmetic per second over that of this
machine's matrix product of the same size, measured in the same run; for steps that a single pass over the memory makes
(`ONE_PASS`) it is their bytes per second over those of a plain copy. A cheap step is not a fast method: see tasks.py.
"""

import math
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS, peer_packages
from benchmarks.orthogonal.figures import draw_steps
from benchmarks.orthogonal.methods import Maker, Step, add_peers, our_steps, peer_steps
from benchmarks.table import Results
from nearkin.linalg.haar import haar_orthogonal

NORM = 0.1
SIZES = (*(f"{2**power}x{2**power}" for power in range(4, 13)), "1024x64", "4096x64")
ONE_PASS = ("givens random", "flow s=2", "plain copy")


def flops(name: str, d: int, k: int) -> float | None:
    """Counted additions and multiplications of one step, or None where a factorisation hides them (flows, Table 1)."""
    square, product = d == k, 2 * d * k * k
    s = {"flow s=2": 2, "flow s=8": 8, "flow s=d/log d": math.ceil(d / math.log(d))}.get(name, 0)
    if name.startswith("givens random") or s == 2:
        return 2 * d * k + 4 * d * k  # d/2 entries of 4 k each, d/2 rotations of 8 k: flops.py
    if name == "givens greedy":
        return 2 * d * d * k + 4 * d * k
    if s:
        return 4 * d * s * k + 4 * 2 * d * s * s  # blocks, their exponentials (four products at this norm), their use
    counts = {
        "taylor": 4 if square else 5,  # at this norm, for an error below 1e-6
        "exp": 5,
        "newton-schulz": 5 if square else 4,
        "qr": 4.2 if square else 4.1,  # the factor of the Gram matrix and a triangular solve
        "POGO's rule": 6,
        "Landing": 5,
    }
    return counts[name] * product if name in counts else None


def now() -> float:
    """The process' seconds, which a busy neighbour does not lengthen; on several threads, the clock's."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def step_times(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Seconds per step, all methods in turn until the time is used, each in blocks of about 10 ms.

    The lower quartile over blocks, because a busy neighbour only ever adds. A method slower than a tenth of the time is
    measured twice, and one of more than a second a step is not warmed up.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    cost = {}
    for name, step in steps.items():  # warm up: compilation, allocation
        for _ in range(2):
            start = now()
            step()
            cost[name] = now() - start
            if cost[name] > 1:
                times[name].append(cost[name])
                break
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 2:
        for name, step in steps.items():
            if len(times[name]) >= 2 and cost[name] > seconds / 10:
                continue
            count = max(1, round(0.01 / cost[name]))
            start = now()
            for _ in range(count):
                step()
            times[name].append((now() - start) / count)
        rounds += 1
    return {name: sorted(values)[len(values) // 4] for name, values in times.items()}


def makers(d: int, k: int, packages: list[str]) -> dict[str, Maker]:
    """What can be measured at this size within the time."""
    lr = NORM / (2 * math.sqrt(2 * d) if d == k else 2 * math.sqrt(d))  # over the norm of a Gaussian Omega
    left_out = {"flow s=d/log d", "givens greedy", "givens random, columns"} if d > k else set()
    left_out |= {"geotorch", "torch parametrization, matrix_exp"} if max(d, k) > 512 else set()
    if max(d, k) > 1024 and d > k:  # seconds a step: torch's map completes a tall matrix to a square one
        left_out.add("torch parametrization, cayley")
    found = {**our_steps(lr), **peer_steps(lr, packages)}
    return {name: make for name, make in found.items() if name not in left_out}


def measured(d: int, k: int, seconds: float, packages: list[str], words: tuple[str, ...]) -> Iterator[Row]:
    """A row for each method whose name holds one of the words."""
    X = haar_orthogonal(d, k, random_state=0)
    G = torch.randn(d, k, generator=torch.Generator().manual_seed(1))
    steps = {name: make(X, G) for name, make in makers(d, k, packages).items() if any(word in name for word in words)}
    copied = torch.empty_like(X)
    steps["plain copy"] = lambda: copied.copy_(X)
    products, copies = rates(d, k)
    for name, value in step_times(steps, seconds).items():
        counted = flops(name, d, k)
        share = counted and counted / value / products
        if name in ONE_PASS:  # X and G are read, and X is read again and written; a copy reads and writes
            share = (8 if name == "plain copy" else 16) * d * k / value / copies
        yield {"method": name, "ms": 1e3 * value, "mflop": counted and counted / 1e6, "share": share}


def rates(d: int, k: int) -> tuple[float, float]:
    """Floating-point operations per second of X @ B, (d, k) by (k, k), and bytes per second of a copy of X."""
    A, B = torch.randn(d, k), torch.randn(k, k)
    C = torch.empty_like(A)
    times = step_times({"product": lambda: A @ B, "copy": lambda: C.copy_(A)}, 0.2)
    return 2 * d * k * k / times["product"], 8 * d * k / times["copy"]


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    packages = add_peers(peer_packages(given.peers))
    for size in ("64x64", "256x256", "1024x64") if given.quick else given.sizes:
        seconds = 0.5 if given.quick else given.seconds
        work = partial(measured, *map(int, size.split("x")), seconds, packages, tuple(given.methods.split(",")))
        yield f"orthogonal_{given.threads}t", Job({"size": size}, work)


def main() -> None:
    for name in command(__doc__, jobs, {"norm": NORM}, sizes=SIZES, seconds=6.0, methods=""):
        draw_steps(Results(RESULTS).read(name), name)
