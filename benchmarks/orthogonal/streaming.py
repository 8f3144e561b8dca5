"""A rotation that drifts while it is followed: do cheap steps win where gradients cost next to nothing?

    python -m benchmarks orthogonal streaming

R(t) turns pairs of rows of a fixed rotation by angles that grow with the CPU seconds spent: whoever takes longer for a
step finds R further away. A step sees `rows` rows of R(t) with noise, and the gradient of ||X - R||^2 / 2 on them, d
numbers a row; all rows is the whole gradient, one row is the O(d) gradient of a stream. Every method has the same grid
of step lengths; the error is the mean of ||X - R(t)||^2 / (2 d) over the second half of the run, the start being R(0).
Standing still is a row of its own. Writes results/orthogonal_streaming.json.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.harness import limit_threads, save
from benchmarks.options import parser
from benchmarks.orthogonal.methods import PogoRule
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow

SPEED, NOISE = 0.05, 0.1  # radians a CPU second of a pair of rows, rms; of a row's length
GRID = (0.5, 0.125, 0.03125)  # step lengths; 0.5 goes all the way in one whole step
Build = Callable[[list[nn.Parameter], float], torch.optim.Optimizer]
METHODS: dict[str, Build] = {
    "riemannian auto": lambda p, lr: RiemannianDescent(p, lr, "auto", check_finite=False),
    "POGO's rule": PogoRule,
    "flow s=d/log d": lambda p, lr: StochasticFlow(p, lr, "d/log d", scale="none", check_finite=False),
    "flow s=8": lambda p, lr: StochasticFlow(p, lr, 8, scale="none", check_finite=False),
    "givens random": lambda p, lr: GivensDescent([{"params": p, "check_finite": False}], lr, "random"),
}


class Drift:
    """R(t) (d, d), by rows."""

    def __init__(self, d: int, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.start = haar_orthogonal(d, d, special=True, random_state=seed)
        self.partner = torch.arange(d) ^ 1
        speed = SPEED * torch.randn(d // 2, generator=self.generator).repeat_interleave(2)
        self.speed = torch.where(torch.arange(d) % 2 == 0, speed, -speed)

    def rows(self, which: Tensor, t: float) -> Tensor:
        angle = (self.speed[which] * t)[:, None]
        return angle.cos() * self.start[which] + angle.sin() * self.start[self.partner[which]]


def follow(build: Build, lr: float, d: int, rows: int, seconds: float, seed: int = 0) -> dict[str, float]:
    """Mean error of the second half, steps a second, the distance from the manifold at the end."""
    drift = Drift(d, seed)
    X = nn.Parameter(drift.start.clone())
    X.grad = torch.zeros(d, d)
    optimizer, everything = build([X], lr), torch.arange(d)
    optimizer.step()  # compiles
    errors, spent, steps, measured = [], 0.0, 0, 0.0
    while spent < seconds:
        start = time.process_time()
        which = everything if rows == d else torch.randint(d, (rows,), generator=drift.generator)
        seen = drift.rows(which, spent) + NOISE / d**0.5 * torch.randn(rows, d, generator=drift.generator)
        X.grad.zero_()
        X.grad[which] = X.detach()[which] - seen
        try:
            optimizer.step()
        except ValueError:  # diverged
            return {"error": math.inf, "steps": steps / max(spent, 1e-9), "orthogonality": math.inf}
        spent, steps = spent + time.process_time() - start, steps + 1
        if spent > seconds / 2 and spent > measured + seconds / 50:
            measured = spent
            errors.append(float((X.detach() - drift.rows(everything, spent)).square().sum()) / (2 * d))
    mean = sum(errors) / len(errors) if errors else math.inf
    return {"error": mean, "steps": steps / spent, "orthogonality": orthogonality_error(X)}


def standing(d: int, seconds: float) -> dict[str, float]:
    """The error of who does not follow, in the mean over the second half."""
    drift, everything = Drift(d, 0), torch.arange(d)
    times = [seconds * (0.51 + 0.02 * i) for i in range(25)]
    errors = [float((drift.start - drift.rows(everything, t)).square().sum()) / (2 * d) for t in times]
    return {"error": sum(errors) / len(errors), "steps": 0.0, "orthogonality": 0.0, "lr": 0.0}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", default="1024")
    options.add_argument("--seconds", type=float, default=4.0, help="of each run, CPU")
    arguments = options.parse_args()
    limit_threads(arguments.threads)
    seconds = 0.2 if arguments.quick else arguments.seconds
    results: dict[str, dict[str, dict[str, float]]] = {}
    for d in [64] if arguments.quick else map(int, arguments.sizes.split(",")):
        for rows in (d, d // 16, 1):
            found = results[f"d = {d}, {rows} rows"] = {"standing still": standing(d, seconds)}
            for name, build in METHODS.items():
                runs = [follow(build, lr, d, rows, seconds) | {"lr": lr} for lr in GRID]
                found[name] = row = min(runs, key=lambda run: run["error"])
                text = f"{row['error']:10.6f}{row['steps']:10.1f} a second  lr {row['lr']}"
                print(f"{d:6}{rows:6}  {name:20}{text}", flush=True)
            save("orthogonal_streaming", results, threads=arguments.threads, seconds=seconds)


if __name__ == "__main__":
    main()
