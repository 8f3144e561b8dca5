"""Line searches along a descent direction."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nearkin._check import check_real

_SUFFICIENT = 1e-4  # share of the slope's promise; the value of Nocedal and Wright


class Found(NamedTuple):
    """What a search ended with; step size 0 and the old value if nothing smaller was met."""

    step_size: float
    value: float
    evaluations: int


def armijo(
    along: Callable[[float], float],
    value: float,
    slope: float,
    *,
    start: float = 1.0,
    max_iter: int = 20,
) -> Found:
    """Halve t from `start` until f(t) <= f(0) + 1e-4 t f'(0) (Armijo 1966; Nocedal and Wright, Alg. 3.1).

    `along(t)` is f at step t, `value` f(0), and `slope` the directional derivative f'(0), which must be negative or 0;
    a positive one is a ValueError. At most `max_iter` steps are tried. A value that is not finite counts as too large.

    >>> armijo(lambda t: (t - 0.4) ** 2, 0.16, -0.8)
    Found(step_size=0.5, value=0.00999..., evaluations=2)
    """
    check_real(start, "start", above=0)
    if not slope <= 0:
        raise ValueError(f"slope is {slope}; it must be at most 0, pass a descent direction such as -gradient")
    step = start
    for evaluation in range(1, max_iter + 1):
        new = along(step)
        if np.isfinite(new) and new <= value + _SUFFICIENT * step * slope:
            return Found(step, new, evaluation)
        step /= 2
    return Found(0.0, value, max_iter)
