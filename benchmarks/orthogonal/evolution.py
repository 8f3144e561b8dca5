"""Evolution strategies with an orthogonal recurrent policy: what a generation costs, and what it earns.

    python -m benchmarks orthogonal evolution                  # d = 200 and 400
    python -m benchmarks orthogonal evolution --processes 2    # the population over processes

Flows, Figure 3 in small: h <- tanh(h W + x V), action 2 tanh(h u), W (d, d) orthogonal, swinging up a pendulum
(gymnasium's equations, here for a whole population at once). Each generation draws `PAIRS` mirrored perturbations of
(W, V, u), ranks the returns and moves V and u by Adam and W by the method: random pairs of axes (the paper's flow), the
exact exponential, our default, or freely with a projection by SVD every five generations. Processes evaluate shares of
the population and exchange returns only, by torch.distributed; all make the same step from the same seeds. Every
method has three step lengths, judged on seed 0. Writes results/orthogonal_evolution.json.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.harness import limit_threads, save
from benchmarks.options import parser
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import nearest_orthogonal, orthogonality_error
from nearkin.orthogonal import RiemannianDescent, StochasticFlow

PAIRS, EPISODE, NOISE, PROJECT_EVERY = 16, 100, 0.05, 5
Build = Callable[[list[nn.Parameter], float], torch.optim.Optimizer]
METHODS: dict[str, tuple[Build, float]] = {  # and the least of its step lengths
    "flow s=2": (lambda p, lr: StochasticFlow(p, lr, 2, scale="none", maximize=True), 0.01),
    "flow s=2, by |x|": (lambda p, lr: StochasticFlow(p, lr, 2, "abs", scale="none", maximize=True), 0.01),
    "riemannian auto": (lambda p, lr: RiemannianDescent(p, lr, "auto", maximize=True), 0.0003),
    "riemannian exp": (lambda p, lr: RiemannianDescent(p, lr, "exp", maximize=True), 0.0003),
    "projection by SVD": (lambda p, lr: torch.optim.SGD(p, lr, maximize=True), 0.0003),
}


def returns(W: Tensor, V: Tensor, u: Tensor, seed: int) -> Tensor:
    """The returns (b,) of one episode for policies W (b, d, d), V (b, 3, d), u (b, d, 1): gymnasium's Pendulum."""
    draw = torch.Generator().manual_seed(seed)
    b, d = len(W), W.shape[-1]
    angle = (2 * torch.rand(1, generator=draw) - 1) * math.pi * torch.ones(b)
    speed, hidden, total = torch.zeros(b), torch.zeros(b, 1, d), torch.zeros(b)
    for _ in range(EPISODE):
        seen = torch.stack([angle.cos(), angle.sin(), speed / 8], 1)[:, None]
        hidden = torch.tanh(torch.baddbmm(seen @ V, hidden, W))
        force = 2 * torch.tanh((hidden @ u)[:, 0, 0])
        wrapped = (angle + math.pi) % (2 * math.pi) - math.pi
        total -= wrapped.square() + 0.1 * speed.square() + 0.001 * force.square()
        speed = (speed + 0.05 * (15 * angle.sin() + 3 * force)).clamp(-8, 8)
        angle = angle + 0.05 * speed
    return total


def share(count: int) -> slice:
    """This process' part of the population."""
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    return slice(rank * count // world, (rank + 1) * count // world)


def train(d: int, build: Build, lr: float, seed: int, generations: int, *, project: bool) -> dict[str, float]:
    """Mean return of the last five generations, milliseconds of a generation and of its step, |W^T W - I|."""
    draw = torch.Generator().manual_seed(seed)
    W = nn.Parameter(haar_orthogonal(d, d, special=True, random_state=seed))
    V, u = nn.Parameter(torch.randn(3, d, generator=draw)), nn.Parameter(torch.randn(d, 1, generator=draw) / d**0.5)
    params, optimizers = [W, V, u], [torch.optim.Adam([V, u], 0.05, maximize=True), build([W], lr)]
    means, whole, stepping = [], [], []
    for generation in range(generations):
        start = time.perf_counter()
        noise = [torch.randn(PAIRS, *p.shape, generator=draw) for p in params]
        mine = share(PAIRS)
        mirrored = [torch.cat([p + NOISE * n[mine], p - NOISE * n[mine]]) for p, n in zip(params, noise, strict=True)]
        earned = torch.zeros(2, PAIRS)
        with torch.no_grad():
            earned[:, mine] = returns(*mirrored, seed=1000 * seed + generation).view(2, -1)
        if dist.is_initialized():
            dist.all_reduce(earned)
        ranks = earned.flatten().argsort().argsort().view(2, -1) / (2 * PAIRS - 1)
        for p, n in zip(params, noise, strict=True):
            p.grad = torch.tensordot(ranks[0] - ranks[1], n, 1) / (PAIRS * NOISE)
        middle = time.perf_counter()
        for optimizer in optimizers:
            optimizer.step()
        if project and (generation + 1) % PROJECT_EVERY == 0:
            W.data = nearest_orthogonal(W.detach())
        end = time.perf_counter()
        means.append(float(earned.mean()))
        whole.append(end - start)
        stepping.append(end - middle)
    return {
        "return": statistics.mean(means[-5:]),
        "first": means[0],
        "ms": 1e3 * statistics.median(whole),
        "step": 1e3 * statistics.mean(sorted(stepping)[: -(-9 * generations // 10)]),  # the rest is compiling
        "orthogonality": orthogonality_error(W),
    }


def compete(sizes: list[int], generations: int, seeds: int) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for d in sizes:
        rows = found[str(d)] = {}
        for name, (build, least) in METHODS.items():
            learn = partial(train, d, build, generations=generations, project=name.startswith("projection"))
            tried = {lr: learn(lr, 0)["return"] for lr in (least, 4 * least, 16 * least)}
            lr = max(tried, key=lambda lr: tried[lr])
            runs = [learn(lr, seed) for seed in range(1, seeds + 1)]
            rows[name] = {key: statistics.mean(run[key] for run in runs) for key in runs[0]} | {"lr": lr}
            if not dist.is_initialized() or dist.get_rank() == 0:
                print(d, name, {key: round(value, 4) for key, value in rows[name].items()}, flush=True)
    return found


def work(rank: int, world: int, meeting: str, arguments: argparse.Namespace) -> None:
    """One process; rank 0 writes what was found."""
    limit_threads(arguments.threads)
    if world > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    sizes = [16] if arguments.quick else [int(d) for d in arguments.sizes.split(",")]
    generations, seeds = (3, 1) if arguments.quick else (arguments.generations, arguments.seeds)
    found = compete(sizes, generations, seeds)
    if rank == 0:
        name = "orthogonal_evolution" + (f"_{world}p" if world > 1 else "")
        save(name, found, threads=arguments.threads, processes=world, generations=generations, pairs=PAIRS)
    if world > 1:
        dist.destroy_process_group()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", default="200,400")
    options.add_argument("--generations", type=int, default=40)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--processes", type=int, default=1)
    arguments = options.parse_args()
    if arguments.processes == 1:
        work(0, 1, "", arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        torch.multiprocessing.spawn(work, (arguments.processes, meeting, arguments), arguments.processes)


if __name__ == "__main__":
    main()
