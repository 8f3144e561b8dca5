"""Loss against time: how long every method and every peer takes to one target, on ten tasks.

    python -m benchmarks orthogonal tasks
    python -m benchmarks orthogonal tasks --tasks ica sorting --methods "riemannian auto,POGO"   # replaces their rows
    python -m benchmarks orthogonal tasks --again                # the settings of stored rows, measured again

Every method gets the same budget on two seeds, of which the later time counts (with one, the choice was luck): without
momentum, with 0.5 and 0.9, a walk over step lengths in factors of 4 from the task's starting value, then factors of 2
beside the best: at most 17 pairs of runs. Then it runs on fresh seeds, and the median time to the target counts. The
clock covers gradient and step and stops for the full loss; it counts the process' seconds, which no busy neighbour
lengthens. A point off the manifold (by more than 1e-2) ends the run. Who
chooses a default anew chooses it on `CHOSEN_ON` and reports `HELD_OUT`. Steps of Adam and VAdam are lr / 16 long.
"""

import math
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS, peer_packages
from benchmarks.orthogonal.figures import draw_tasks
from benchmarks.orthogonal.methods import LandingRule, PogoRule, add_peers, geoopt_sgd
from benchmarks.orthogonal.problems import (
    Problem,
    batch,
    conv,
    copying,
    diagonalisation,
    heads,
    ica,
    mlp,
    pca,
    procrustes,
    sorting,
)
from benchmarks.table import Results
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, RiemannianDescent

FEASIBLE = 1e-2  # a point counts if ||X^T X - I||_F / sqrt(k) is at most this; all but Landing are far below it
CHOSEN_ON: dict[str, Callable[[int, Path], Problem]] = {
    "procrustes": procrustes,
    "mlp": mlp,
    "diagonalisation": diagonalisation,
    "sorting": sorting,
    "batch": batch,
}
HELD_OUT: dict[str, Callable[[int, Path], Problem]] = {
    "pca": pca,
    "conv": conv,
    "ica": ica,
    "heads": heads,
    "copying": copying,
}
TASKS = CHOSEN_ON | HELD_OUT


@dataclass(frozen=True)
class Method:
    name: str
    build: Callable[[list[nn.Parameter], float, float], torch.optim.Optimizer]  # (params, lr, momentum)
    ours: bool = True


def with_adam(params: list[nn.Parameter], lr: float, momentum: float) -> torch.optim.Optimizer:
    return RiemannianDescent(params, lr / 16, "auto", momentum=Adam((momentum, 0.99)))


def methods(packages: list[str]) -> list[Method]:
    found = [
        Method("riemannian auto", lambda p, lr, m: RiemannianDescent(p, lr, "auto", momentum=m)),
        Method("riemannian auto, Adam", with_adam),
        Method("POGO's rule", PogoRule, ours=False),
        Method("POGO's rule, VAdam", lambda p, lr, m: PogoRule(p, lr / 16, m, 0.99), ours=False),
        Method("Landing", LandingRule, ours=False),
    ]
    return found + [Method("geoopt SGD, euclidean", geoopt_sgd, ours=False)] * ("geoopt" in packages)


def run(problem: Problem, method: Method, lr: float, momentum: float, seconds: float) -> list[tuple[float, float]]:
    """Train for `seconds` on the clock; return [(time, full loss)], ending early at the target or at divergence."""
    torch.manual_seed(problem.seed)
    params = [nn.Parameter(X.clone()) for X in problem.starts]
    optimizers = [method.build(params, lr, momentum)]
    if problem.others:
        optimizers.append(torch.optim.SGD(problem.others, lr=problem.other_lr, momentum=0.9))
    curve, spent, step = [], 0.0, 0
    while spent < seconds:
        start = time.process_time()
        for _ in range(problem.check_every):
            for optimizer in optimizers:
                optimizer.zero_grad()
            problem.batch_loss(params).backward()
            try:
                for optimizer in optimizers:
                    optimizer.step()
            except ValueError:  # a diverged run: the gradient is not finite
                return curve
            step += 1
        spent += time.process_time() - start
        with torch.no_grad():
            if max(map(orthogonality_error, params)) > FEASIBLE:
                return curve  # off the manifold: whatever the loss is, it does not count
            loss = problem.full_loss(params)
        curve.append((spent, loss))
        if loss <= problem.target or not loss < 3 * max(1.0, abs(curve[0][1])):
            break
    return curve


def time_to(curve: list[tuple[float, float]], target: float) -> float:
    return next((spent for spent, loss in curve if loss <= target), float("inf"))


def score(curve: list[tuple[float, float]], target: float) -> tuple[float, float]:
    """Order runs by the time to the target, and those that never reach it by their last loss."""
    return time_to(curve, target), curve[-1][1] if curve and curve[-1][1] == curve[-1][1] else float("inf")


Setting = tuple[float, float, bool]  # lr, momentum, and whether it arrives at the target


def choose(task: Callable[[int], Problem], method: Method, share: float) -> Setting:
    """Return lr and momentum of the best of at most 17 settings, each by the later of two seeds, and if they arrive."""
    problem = task(0)
    tried: dict[tuple[int, float], tuple[float, float]] = {}  # (power of two, momentum): score
    limit = share * problem.seconds

    def attempt(power: int, momentum: float) -> tuple[float, float]:
        if (power, momentum) not in tried:
            best = min((time for time, _ in tried.values()), default=float("inf"))
            lr, most = problem.lr * 2.0**power * (1 - momentum), min(limit, 1.5 * best)
            found = score(run(task(0), method, lr, momentum, most), problem.target)
            if found[0] < float("inf"):
                found = max(found, score(run(task(1000), method, lr, momentum, most), problem.target))
            tried[power, momentum] = found
        return tried[power, momentum]

    for momentum in (0.0, 0.5, 0.9):
        power = 0
        direction = 2 if attempt(2, momentum) < attempt(0, momentum) else -2
        while abs(power) < 6 and attempt(power + direction, momentum) < attempt(power, momentum):
            power += direction
    power, momentum = min(tried, key=lambda key: tried[key])
    for neighbour in (power - 1, power + 1):
        attempt(neighbour, momentum)
    power, momentum = min(tried, key=lambda key: tried[key])
    return problem.lr * 2.0**power * (1 - momentum), momentum, math.isfinite(tried[power, momentum][0])


def compete(
    task: Callable[[int], Problem], chosen: list[tuple[Method, Setting]], seeds: int, seconds: float
) -> Iterator[Row]:
    """A row a method, of fresh seeds. Methods take turns seed by seed, so that what else the machine does favours
    none; what never arrives runs once."""
    curves: dict[str, list[list[tuple[float, float]]]] = {method.name: [] for method, _ in chosen}
    for method, (lr, momentum, _) in chosen:
        run(task(0), method, lr, momentum, 1e-9)  # compiles
    for seed in range(1, seeds + 1):
        for method, (lr, momentum, arrives) in chosen:
            if seed == 1 or arrives:
                curves[method.name].append(run(task(seed), method, lr, momentum, seconds))
    target = task(0).target
    for method, (lr, momentum, _) in chosen:
        found = curves[method.name]
        times = [time_to(curve, target) for curve in found]
        yield {
            "method": method.name,
            "target": target,
            "ours": method.ours,
            "lr": lr,
            "momentum": momentum,
            "seconds": statistics.median(times),
            "all": times,
            "last_loss": statistics.median(curve[-1][1] if curve else float("nan") for curve in found),
            "curve": found[0],
        }


def measured(name: str, tried: list[Method], given: Namespace) -> Iterator[Row]:
    """The task's rows; with `--again` each method keeps the setting of its stored row."""
    share, seeds = (1 / 3, 1) if given.quick else (given.share, given.seeds)

    def task(seed: int) -> Problem:
        return TASKS[name](seed, given.data)

    stored = [row for row in Results(RESULTS).read("orthogonal_tasks") or [] if given.again and row["task"] == name]
    known = {row["method"]: (row["lr"], row["momentum"], math.isfinite(row["seconds"])) for row in stored}
    chosen = [(method, known.get(method.name) or choose(task, method, share)) for method in tried]
    return compete(task, chosen, seeds, 1.5 * share * task(0).seconds)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    words = given.methods.split(",")
    found = methods(add_peers(peer_packages(given.peers)))
    for name in given.tasks:
        tried = [method for method in found if any(word in method.name for word in words)]
        yield "orthogonal_tasks", Job({"task": name}, partial(measured, name, tried, given))


def main() -> None:
    command(__doc__, jobs, {}, tasks=tuple(TASKS), methods="", share=0.4, seeds=5, again=False)
    draw_tasks(Results(RESULTS).read("orthogonal_tasks"))
