"""How far float32 steps drift off the manifold: 1e5 steps, by the form of the rotation and with or without a
re-projection.

    python -m benchmarks orthogonal drift            # writes results/orthogonal_drift.json

Error: ||R^T R - I||_F / sqrt(d), and the determinant at the end. The bound to keep is 2e-5 without re-projection and
1e-6 with one Newton-Schulz step every 1000 steps.
"""

import time
from pathlib import Path

import numpy as np
import torch
from numba import njit

from benchmarks.options import RESULTS, parser
from benchmarks.stored import write_json
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow
from nearkin.orthogonal.matching import random_matching


@njit(cache=True)
def rotate_plainly(X, pairs, c, s):  # c x - s y and s x + c y: what the library does not do
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        for r in range(X.shape[1]):
            x, y = X[i, r], X[j, r]
            X[i, r] = c[p] * x - s[p] * y
            X[j, r] = s[p] * x + c[p] * y


def plain_rotations(d: int, steps: int, marks: list[int], angle: float) -> list[float]:
    """Random matchings, all angles equal as in a slow training, in the textbook form."""
    X = haar_orthogonal(d, d, special=True, random_state=0).numpy()
    generator, errors = torch.Generator().manual_seed(0), []
    c, s = (np.full(d // 2, f(angle), np.float32) for f in (np.cos, np.sin))
    for step in range(1, steps + 1):
        rotate_plainly(X, random_matching(d, generator).numpy(), c, s)
        if step in marks:
            errors.append(orthogonality_error(X))
    return errors


def optimizer_steps(build, d: int, steps: int, marks: list[int], angle: float) -> tuple[list[float], float]:
    """The same with an optimizer on random gradients whose skew entries make angles of about `angle`."""
    p = torch.nn.Parameter(haar_orthogonal(d, d, special=True, random_state=0))
    generator = torch.Generator().manual_seed(1)
    gradients = [torch.randn(d, d, generator=generator) / (2 * d) ** 0.5 for _ in range(16)]
    optimizer, errors = build([p], angle), []
    for step in range(1, steps + 1):
        p.grad = gradients[step % 16]
        optimizer.step()
        if step in marks:
            errors.append(orthogonality_error(p))
    return errors, float(torch.linalg.det(p.detach().double()))


METHODS = {
    "Givens random": lambda p, lr: GivensDescent(p, lr, "random"),
    "Givens random, columns": lambda p, lr: GivensDescent(p, lr, "random", side="right"),
    "Givens random, stabilize_every=1000": lambda p, lr: GivensDescent(p, lr, "random", stabilize_every=1000),
    "flow s=2": lambda p, lr: StochasticFlow(p, lr, scale="none"),
    "flow s=8": lambda p, lr: StochasticFlow(p, lr, 8, scale="none"),
    "flow s=8, stabilize_every=1000": lambda p, lr: StochasticFlow(p, lr, 8, scale="none", stabilize_every=1000),
    "Riemannian exp": lambda p, lr: RiemannianDescent(p, lr, "exp"),
    "Riemannian newton-schulz": lambda p, lr: RiemannianDescent(p, lr, "newton-schulz"),
    "Riemannian taylor": lambda p, lr: RiemannianDescent(p, lr, "taylor"),
}


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--d", type=int, default=64)
    asked.add_argument("--steps", type=int, default=100_000)
    asked.add_argument("--angle", type=float, default=1e-3)
    asked.add_argument("--out", type=Path, default=RESULTS)
    options = asked.parse_args()
    torch.set_num_threads(1)
    steps = options.steps // 10 if options.quick else options.steps
    marks = sorted({max(1, round(steps * share)) for share in (0.01, 0.03, 0.1, 0.3, 1.0)})
    print(f"d = {options.d}, {steps} float32 steps of angles about {options.angle}\n{'':40}{'error':>10}{'det':>10}")
    errors = plain_rotations(options.d, steps, marks, options.angle)
    results = {"c x - s y (not ours)": {"errors": errors, "det": None}}
    print(f"{'c x - s y (not ours)':40}{errors[-1]:10.1e}")
    for name, build in METHODS.items():
        start = time.perf_counter()
        errors, det = optimizer_steps(build, options.d, steps, marks, options.angle)
        results[name] = {"errors": errors, "det": det}
        print(f"{name:40}{errors[-1]:10.1e}{det:10.6f}   {time.perf_counter() - start:.0f} s", flush=True)
        record = {"d": options.d, "steps": steps, "angle": options.angle, "marks": marks, "methods": results}
        options.out.mkdir(parents=True, exist_ok=True)
        write_json(options.out / "orthogonal_drift.json", record)


if __name__ == "__main__":
    main()
