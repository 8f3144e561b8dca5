"""Rotations of a language model at 4 bits: loss and perplexity against time, ours beside SGDG, Hadamard and none.

    python -m benchmarks orthogonal language_model                       # half an hour of one thread
    python -m benchmarks orthogonal language_model --methods "SGDG;riemannian"   # and what is not learned
    python -m benchmarks orthogonal language_model --bits 3              # or --smaller: d = 64 and two layers
    python -m benchmarks orthogonal language_model --quick               # seconds

A network of transformer.py is trained once (kept in --cache). Its weights and activations are rounded to 4 bits, and
the rotations R1 (residual stream) and R2 (each head) are learned through the rounding, from random Hadamard matrices,
by the loss on the training text. Every method has the same grid of step lengths, judged on seed 0 with a quarter of the
steps; then five fresh seeds, a cosine down to zero, `STEPS` steps. The clock counts gradient and step and stops while
the loss on the judging text is taken.
"""

import math
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from scipy.linalg import hadamard
from torch import Tensor, nn

from benchmarks.jobs import Job, command
from benchmarks.options import RESULTS
from benchmarks.orthogonal.figures import draw_language_model
from benchmarks.orthogonal.methods import FiveLoops
from benchmarks.orthogonal.transformer import Shape, Weights, characters, loss, rotated, sequences, trained
from benchmarks.table import Results
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, GivensDescent, RiemannianDescent, StochasticFlow

NAME = "orthogonal_language_model"
BITS = 4
GRID = tuple(0.001 * 4.0**power for power in range(8))  # step lengths, for every method
STEPS = 100  # as SpinQuant has it
CACHE = Path(__file__).parents[1] / ".cache"
SMALLER = Shape(d=64, layers=2, heads=2, hidden=128, length=64, steps=400, batch=16)
SMALL = Shape(d=32, layers=2, heads=2, hidden=64, length=32, steps=30, batch=8)


@dataclass(frozen=True)
class Method:
    """How R1 and R2 are moved; `steps` is the share of all steps that it takes."""

    name: str
    build: Callable[[list[nn.Parameter], float], torch.optim.Optimizer]
    steps: float = 1.0


ADAM = Adam((0.9, 0.95))
METHODS = [
    Method("SGDG", FiveLoops),
    Method("SGDG, momentum 0.5", lambda p, lr: FiveLoops(p, lr, momentum=0.5)),
    Method("riemannian", lambda p, lr: RiemannianDescent(p, lr, "auto")),
    Method("riemannian, momentum 0.5", lambda p, lr: RiemannianDescent(p, lr, "auto", momentum=0.5)),
    Method("riemannian, Adam", lambda p, lr: RiemannianDescent(p, lr, "auto", momentum=ADAM)),
    Method("givens greedy, Adam", lambda p, lr: GivensDescent(p, lr, momentum=ADAM)),
    Method("givens random, Adam", lambda p, lr: GivensDescent(p, lr, "random", momentum=ADAM)),
    Method("flow s=d/log d, Adam", lambda p, lr: StochasticFlow(p, lr, "d/log d", scale="none", momentum=ADAM)),
]
HALVES = ["SGDG", "riemannian", "riemannian, momentum 0.5", "riemannian, Adam"]  # which also run with half the steps
METHODS += [Method(f"{m.name}, half the steps", m.build, 0.5) for m in METHODS if m.name in HALVES]


class Task:
    """A trained network, its text, and how rotations of it are judged."""

    def __init__(self, shape: Shape, cache: Path, batch: int, judged: int, bits: int = BITS) -> None:
        self.shape, self.batch, self.bits = shape, batch, bits
        self.text, self.held_out = characters()
        self.weights: Weights = trained(shape, self.text, cache)
        source = torch.Generator().manual_seed(12345)
        self.judge = sequences(self.held_out, judged, shape.length, source)

    def hadamard(self, seed: int) -> list[Tensor]:
        """Random Hadamard matrices R1 (d, d) and R2 (layers, heads, w, w): rows of one with random signs."""
        generator = torch.Generator().manual_seed(seed)
        s, width = self.shape, self.shape.d // self.shape.heads

        def draw(*size: int) -> Tensor:
            signs = torch.randint(2, (*size, 1), generator=generator) * 2.0 - 1
            return signs * torch.from_numpy(hadamard(size[-1])).float() / size[-1] ** 0.5

        return [draw(s.d), draw(s.layers, s.heads, width)]

    def identity(self) -> list[Tensor]:
        """R1 and R2 that turn nothing."""
        s, width = self.shape, self.shape.d // self.shape.heads
        return [torch.eye(s.d), torch.eye(width).repeat(s.layers, s.heads, 1, 1)]

    def loss(self, rotations: list[Tensor], tokens: Tensor, *, round_it: bool = True) -> Tensor:
        return loss(rotated(self.weights, *rotations), tokens, self.shape.heads, self.bits if round_it else None)

    @torch.no_grad()
    def judged(self, rotations: list[Tensor], *, round_it: bool = True) -> float:
        """Loss on the judging text."""
        parts = self.judge.split(16)
        return sum(float(self.loss(rotations, part, round_it=round_it)) * len(part) for part in parts) / len(self.judge)


def learn(task: Task, method: Method, lr: float, seed: int, steps: int, every: int) -> dict[str, Any]:
    """One run from a random Hadamard start: the curve of (seconds, judged loss), the seconds of the steps alone."""
    rotations = [nn.Parameter(R) for R in task.hadamard(seed)]
    optimizer = method.build(rotations, lr)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    source = torch.Generator().manual_seed(1000 + seed)
    curve, spent, stepping = [(0.0, task.judged(rotations))], 0.0, 0.0
    for step in range(1, steps + 1):
        tokens = sequences(task.text, task.batch, task.shape.length, source)
        start = time.process_time()
        optimizer.zero_grad()
        task.loss(rotations, tokens).backward()
        middle = time.process_time()
        optimizer.step()
        end = time.process_time()
        spent, stepping = spent + end - start, stepping + end - middle
        rates.step()
        if step % every == 0 or step == steps:
            curve.append((spent, task.judged(rotations)))
            if not curve[-1][1] < 3 * curve[0][1]:
                break
    error = max(orthogonality_error(R.detach().double()) for R in rotations)
    return {"curve": curve, "loss": curve[-1][1], "seconds": spent, "stepping": stepping, "orthogonality": error}


def choose(task: Task, method: Method, steps: int) -> tuple[float, dict[str, float]]:
    """The step length of the grid with the least loss on seed 0 after a quarter of the steps, and all losses."""
    losses = {}
    for lr in GRID:
        try:
            losses[lr] = learn(task, method, lr, 0, steps, steps)["loss"]
        except ValueError:  # diverged: the gradient is not finite
            losses[lr] = math.inf
        losses[lr] = losses[lr] if math.isfinite(losses[lr]) else math.inf
    return min(losses, key=lambda lr: losses[lr]), {f"{lr:.4g}": value for lr, value in losses.items()}


def compete(task: Task, method: Method, chosen: dict[str, Any], steps: int, seeds: int) -> dict[str, Any]:
    """The method's row: step length by `choose`, then fresh seeds. A row of half the steps takes the whole one's."""
    base = method.name.removesuffix(", half the steps")
    if base in chosen:
        lr, grid = chosen[base]["lr"], chosen[base]["grid"]
    else:
        lr, grid = choose(task, method, max(1, steps // 4))
    count = round(method.steps * steps)
    runs = [learn(task, method, lr, seed, count, max(1, steps // 10)) for seed in range(1, seeds + 1)]
    return {"lr": lr, "grid": grid, "steps": count, "runs": runs}


def fixed(task: Task, seeds: int) -> dict[str, Any]:
    """What is not learned: the network as it is, rounded as it is, and turned by random Hadamard matrices."""
    turned = [task.judged(task.hadamard(seed)) for seed in range(1, seeds + 1)]
    none = task.identity()
    rows = {"not rounded": [task.judged(none, round_it=False)], "none": [task.judged(none)], "random Hadamard": turned}
    return {name: {"runs": [{"loss": value} for value in values]} for name, values in rows.items()}


def task_of(given: Namespace) -> tuple[Task, int, int]:
    """The task, and numbers of steps and seeds."""
    shape, batch, judged = (SMALL, 4, 8) if given.quick else (SMALLER, 8, 64) if given.smaller else (Shape(), 2, 24)
    task = Task(shape, Path(given.cache), batch, judged, given.bits)
    return task, *((6, 2) if given.quick else (given.steps, given.seeds))


def rows_of(given: Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The rows asked for by their names, and what measures each."""
    task, steps, seeds = task_of(given)
    for name, row in fixed(task, seeds).items():
        yield name, lambda row=row: row
    found: dict[str, dict[str, Any]] = {}
    asked = given.methods.split(";")
    for method in METHODS:
        if given.methods == "" or method.name in asked:

            def measured(method: Method = method) -> dict[str, Any]:
                found[method.name] = compete(task, method, found, steps, seeds)
                return found[method.name]

            yield method.name, measured


def source(given: Namespace) -> str:
    """The name of the JSON and of the figure."""
    if given.smaller:
        return f"{NAME}_d64"
    return f"{NAME}_{given.bits}bits" if given.bits != BITS else NAME


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name, work in rows_of(given):
        yield source(given), Job({"rotations": name}, work)


def main() -> None:
    options = {"methods": "", "steps": STEPS, "seeds": 5, "bits": BITS, "cache": str(CACHE)}
    for name in command(__doc__, jobs, {"grid": list(GRID)}, smaller=False, **options):
        draw_language_model(Results(RESULTS).read(name), name)
