"""Arithmetic of one step, counted: the counterpart of the flows paper's Table 1.

    python -m benchmarks orthogonal flops            # writes results/orthogonal_flops.json

Matrix products are counted while a step runs (torch's flop counter: a multiplication and an addition each). What it
does not see is added by formula: rotations and their entries (our own kernels), Cholesky's factor and triangular
solves. Everything from a given gradient; MNIST is the MLP's (784, 100) and (100, 100), CIFAR the 108 inner kernels of
PlainNet-110 as (9 c, c) matrices, c = 16, 32, 64.
"""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.harness import save
from benchmarks.options import parser
from benchmarks.orthogonal.methods import PogoRule
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow

SETTINGS: dict[str, list[tuple[int, int, int]]] = {  # (d, k, how many)
    "ES-200": [(200, 200, 1)],
    "ES-400": [(400, 400, 1)],
    "MNIST": [(784, 100, 1), (100, 100, 1)],
    "CIFAR": [(9 * c, c, 36) for c in (16, 32, 64)],
}
METHODS = {
    "flow s=2": lambda p: StochasticFlow(p, 1e-4, scale="none"),
    "givens random": lambda p: GivensDescent(p, 1e-4, "random"),
    "flow s=8": lambda p: StochasticFlow(p, 1e-4, 8, scale="none"),
    "flow s=d/log d": lambda p: StochasticFlow(p, 1e-4, "d/log d", scale="none"),
    "givens greedy": lambda p: GivensDescent(p, 1e-4, "greedy"),
    "newton-schulz": lambda p: RiemannianDescent(p, 1e-4, "newton-schulz"),
    "taylor": lambda p: RiemannianDescent(p, 1e-4, "taylor"),
    "qr": lambda p: RiemannianDescent(p, 1e-4, "qr"),
    "exp": lambda p: RiemannianDescent(p, 1e-4, "exp"),
    "POGO's rule": lambda p: PogoRule(p, 1e-4),
}


def unseen(name: str, d: int, k: int) -> int:
    """Operations of one step outside torch's matrix products."""
    rotations, entries = d // 2 * 8 * k, d // 2 * 4 * k
    if name in ("flow s=2", "givens random"):
        return rotations + entries
    if name == "flow s=8":  # d/8 groups: 28 entries of 4 k each, and 8 x 8 by 8 x k
        return d // 8 * (28 * 4 * k + 2 * 64 * k)
    if name == "givens greedy":
        return rotations
    if name == "qr":  # the factor of the Gram matrix and a triangular solve
        return k**3 // 3 + d * k**2
    return 0


def counted(name: str, d: int, k: int) -> int:
    p = nn.Parameter(haar_orthogonal(d, k, random_state=0))
    p.grad = torch.randn(d, k, generator=torch.Generator().manual_seed(1))
    optimizer = METHODS[name]([p])
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    return counter.get_total_flops() + unseen(name, d, k)


def main() -> None:
    parser(__doc__).parse_args()
    torch.set_num_threads(1)
    rows = {
        name: {setting: sum(n * counted(name, d, k) for d, k, n in shapes) for setting, shapes in SETTINGS.items()}
        for name in METHODS
    }
    print(save("orthogonal_flops", rows, shapes=SETTINGS))
