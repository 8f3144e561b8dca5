"""The stabilized Barzilai-Borwein step (SVRG-SBB eq. 14) and a first step that needs no tuning."""

import numpy as np

from nearkin.solvers.finite_sum import Objective


def sbb_step(dx: np.ndarray, dy: np.ndarray, epsilon: float) -> float:
    """|dx|^2 / (|<dx, dy>| + epsilon |dx|^2) for dx = x_s - x_{s-1} and dy = g_{s+1} - g_s (SVRG-SBB eq. 14).

    It lies in [1 / (L + epsilon), 1 / epsilon] where the gradient is L-Lipschitz (eq. 15); with epsilon = 0 (SBB_0) it
    is unbounded and infinite where <dx, dy> = 0. Algorithm 1 prints the second "Delta x" where dy is meant. Returns 0
    if dx is zero: the run stands still.
    """
    dx, dy = dx.ravel().astype(np.float64), dy.ravel().astype(np.float64)
    square = float(dx @ dx)
    bottom = abs(float(dx @ dy)) + epsilon * square
    if square == 0.0:
        return 0.0
    return square / bottom if bottom > 0.0 else float("inf")


def probe_step(problem: Objective, x: np.ndarray, gradient: np.ndarray, epsilon: float) -> float:
    """Algorithm 1's eta_0 from one more gradient: the SBB step between x and a point |x| / 100 down the gradient.

    With epsilon = 0 a positive floor keeps this first step finite.
    """
    length = float(np.linalg.norm(gradient.astype(np.float64)))
    if length == 0.0:
        return 0.0
    size = float(np.linalg.norm(x.astype(np.float64))) or 1.0
    dx = (-(0.01 * size / length) * gradient).astype(x.dtype)
    return sbb_step(dx, problem.gradient(x + dx) - gradient, max(epsilon, 1e-3))
