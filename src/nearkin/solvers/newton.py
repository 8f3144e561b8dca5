"""Truncated Newton steps: preconditioned conjugate gradients, Levenberg-Marquardt damping, Armijo search."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Defaults:
    """Changes of the damping; the ratios at which it changes are Nocedal and Wright's."""

    raised: float = 4.0  # factor after a step that lowered the value too little
    lowered: float = 3.0  # divisor after one that lowered it as predicted


DEFAULTS = Defaults()


class Solved(NamedTuple):
    """The solution x, with `residual` |b - A x| / |b| and the cost."""

    x: Tensor
    steps: int
    residual: float


class NewtonStep(NamedTuple):
    """The point after a step, its value and the next damping."""

    x: Tensor
    value: float
    damping: float


def conjugate_gradient(
    matvec: Linear, b: Tensor, *, preconditioner: Linear | None = None, tolerance: float = 0.1, max_iter: int = 20
) -> Solved:
    """Solve A x = b (any shape) for a positive semi-definite A given by `matvec` (Nocedal and Wright, Alg. 5.3), until
    |b - A x| <= tolerance |b|, `max_iter`, or a direction of no curvature; x is a descent direction always."""
    x, r = torch.zeros_like(b), b.clone()
    z = r if preconditioner is None else preconditioner(r)
    p, rz, scale = z.clone(), _dot(r, z), float(b.norm())
    steps = 0
    while steps < max_iter and scale > 0 and float(r.norm()) > tolerance * scale:
        Ap = matvec(p)
        curvature = _dot(p, Ap)
        if curvature <= 0:
            x = x + p if steps == 0 else x
            break
        x, r = x + (rz / curvature) * p, r - (rz / curvature) * Ap
        z = r if preconditioner is None else preconditioner(r)
        new = _dot(r, z)
        p, rz, steps = z + (new / rz) * p, new, steps + 1
    return Solved(x, steps, float(r.norm()) / scale if scale else 0.0)


def newton_step(
    value: Callable[[Tensor], float],
    gradient: Tensor,
    matvec: Linear,
    x: Tensor,
    *,
    start_value: float,
    damping: float,
    preconditioner: Linear | None = None,
    tolerance: float = 0.1,
    max_iter: int = 20,
) -> NewtonStep:
    """One step of minimising `value` from x, G being the (Gauss-)Newton matrix of `matvec`. Solves (G + damping I) d =
    -gradient by conjugate gradients, searches along d by Armijo's rule, and lowers the damping above a ratio of 3/4 of
    the predicted decrease, raises it below 1/4 (Nocedal and Wright, 10.3)."""

    def damped(d: Tensor) -> Tensor:
        return matvec(d) + damping * d

    solved = conjugate_gradient(
        damped, -gradient, preconditioner=preconditioner, tolerance=tolerance, max_iter=max_iter
    )
    d = solved.x
    slope = _dot(gradient, d)
    predicted = slope + 0.5 * _dot(d, matvec(d))
    found = armijo(lambda t: value(x + t * d), start_value, min(slope, 0.0))
    ratio = (found.value - start_value) / predicted if predicted < 0 else 0.0
    if found.step_size < 1 or ratio < 0.25:
        damping *= DEFAULTS.raised
    elif ratio > 0.75:
        damping /= DEFAULTS.lowered
    return NewtonStep(x + found.step_size * d, found.value, damping)


def _dot(x: Tensor, y: Tensor) -> float:
    return float((x * y).sum(dtype=torch.float64))


_HALVINGS = 20
_SUFFICIENT = 1e-4  # required share of the predicted decrease; Nocedal and Wright's value


class Found(NamedTuple):
    """The result of a search; step size 0 and the old value if no smaller one was found."""

    step_size: float
    value: float
    evaluations: int


def armijo(along: Callable[[float], float], value: float, slope: float) -> Found:
    """Halve t from 1 until f(t) <= f(0) + 1e-4 t f'(0) (Armijo 1966; Nocedal and Wright, Alg. 3.1).

    `along(t)` is f at step t, `value` f(0), and `slope` the directional derivative f'(0), which must be negative or 0;
    a positive one is a ValueError. At most 20 steps are tried. A value that is not finite counts as too large.

    >>> armijo(lambda t: (t - 0.4) ** 2, 0.16, -0.8)
    Found(step_size=0.5, value=0.00999..., evaluations=2)
    """
    if not slope <= 0:
        raise ValueError(f"slope is {slope}; it must be at most 0, pass a descent direction such as -gradient")
    step = 1.0
    for evaluation in range(1, _HALVINGS + 1):
        new = along(step)
        if np.isfinite(new) and new <= value + _SUFFICIENT * step * slope:
            return Found(step, new, evaluation)
        step /= 2
    return Found(0.0, value, _HALVINGS)
