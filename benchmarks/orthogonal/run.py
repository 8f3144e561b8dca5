"""Cost of one step from a given gradient: every method and every peer in one run, in turn (A B A B).

    python -m benchmarks orthogonal run --quick
    python -m benchmarks orthogonal --sizes 64x64 1024x64 --methods riemannian,POGO

The gradient is Gaussian and lr such that a step's skew matrix has norm 0.1 (spectral, estimated); matrix exponentials
and Newton-Schulz steps cost more at larger norms. A cheap step is not a fast method: see tasks.py.
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
from benchmarks.orthogonal.methods import NORM, Maker, Step, add_peers, our_steps, peer_steps
from benchmarks.table import Results
from nearkin.linalg.haar import haar_orthogonal

SIZES = (*(f"{2**power}x{2**power}" for power in range(4, 13)), "1024x64", "4096x64")


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
    for name, value in step_times(steps, seconds).items():
        yield {"method": name, "ms": 1e3 * value}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    packages = add_peers(peer_packages(given.peers))
    for size in ("64x64", "256x256", "1024x64") if given.quick else given.sizes:
        seconds = 0.5 if given.quick else given.seconds
        work = partial(measured, *map(int, size.split("x")), seconds, packages, tuple(given.methods.split(",")))
        yield f"orthogonal_{given.threads}t", Job({"size": size}, work)


def main() -> None:
    for name in command(__doc__, jobs, {"norm": NORM}, sizes=SIZES, seconds=6.0, methods=""):
        draw_steps(Results(RESULTS).read(name), name)
