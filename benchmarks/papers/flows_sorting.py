"""Flows, Table 2 as printed: q a random permutation of 1 to 16, step lengths down to 1e-4, what "exact" may have been.

The flow draws the matchings of a round-robin uniformly (s = 2, a non-intersecting family). The paper gives no range of
q; d = 16 stands in section 6.1. Its exact integrator is NaN from 1e-3 on, which the true exponential cannot be.
Compiled loops, a run at a time, time 50 in every run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numba
import numpy as np
import torch

from benchmarks.jobs import Job, Row
from examples.sorting_flow import sorted_share
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal.matching import round_robin

D = 16


@dataclass(frozen=True)
class Size:
    """Time of a run, runs, step lengths."""

    time: float = 50.0
    runs: int = 10
    etas: tuple[float, ...] = (0.00005, 0.0001, 0.00015, 0.001, 0.0015, 0.01, 0.015, 0.1, 0.15)


FULL, SMALL = Size(), Size(5.0, 2, (0.0001, 0.01, 0.015, 0.1, 0.15))
TERMS = 20  # of the exponential's series, exact to rounding where |eta Omega| < 0.1


@numba.njit(cache=True)
def flow(X, q, eta, rounds):
    """X <- X times the rotations of the matchings (steps, d/2, 2), one after the other.

    The angle of a pair is (d - 1) eta Omega_ij, Omega = X^T Q X N - N X^T Q X.
    """
    d = len(X)
    for pairs in rounds:
        for i, j in pairs:
            entry = 0.0
            for k in range(d):
                entry += X[k, i] * q[k] * X[k, j]
            theta = (d - 1) * eta * entry * (i - j)  # n_j - n_i
            c, s = np.cos(theta), np.sin(theta)
            for k in range(d):
                a, b = X[k, i], X[k, j]
                X[k, i], X[k, j] = c * a - s * b, s * a + c * b
    return X


@numba.njit(cache=True)
def series(X, q, eta, steps, terms):
    """X <- X sum_t (eta Omega)^t / t! over `terms` terms, until time is up or it is at rest."""
    d = len(X)
    n = np.arange(d, 0, -1).astype(np.float64)
    for _ in range(steps):
        M = X.T @ (q.reshape(-1, 1) * X)
        W = eta * M * (n.reshape(1, -1) - n.reshape(-1, 1))
        total, term = np.eye(d), np.eye(d)
        for t in range(1, terms + 1):
            term = term @ W / t
            total = total + term
            if np.abs(term).max() < 1e-18:
                break
        X = X @ total
        if np.abs(W).max() < 1e-15 * eta:
            break
    return X


def exponential(X: np.ndarray, q: np.ndarray, eta: float, steps: int) -> np.ndarray:
    """The same with the true exponential."""
    point, values, n = torch.from_numpy(X), torch.from_numpy(q), torch.arange(D, 0, -1, dtype=torch.float64)
    for _ in range(steps):
        M = point.T @ (values[:, None] * point)
        W = eta * M * (n[None, :] - n[:, None])
        point = point @ torch.matrix_exp(W)
        if float(W.abs().max()) < 1e-15 * eta:
            break
    return point.numpy()


def measured(name: str, eta: float, size: Size) -> Row:
    """The median distance from O(d), and every run's share of sorted pairs (ten q)."""
    rounds, steps = round_robin(D).numpy(), round(size.time / eta)
    starts = haar_orthogonal(size.runs, D, D, random_state=1, dtype=torch.float64).numpy()
    errors, shares = [], []
    for run in range(size.runs):
        q = 1.0 + np.random.default_rng(run).permutation(D)
        X = starts[run].copy()
        if name == "stochastic, s = 2":
            drawn = np.random.default_rng([run, 1]).integers(len(rounds), size=steps)
            X = flow(X, q, eta, rounds[drawn])
        else:
            X = exponential(X, q, eta, steps) if eta > 2e-4 else series(X, q, eta, steps, TERMS)
        errors.append(float(np.linalg.norm(X @ X.T - np.eye(D))))
        shares.append(sorted_share(torch.from_numpy(X)[None], torch.from_numpy(q)[None]))
    sorted_ones = [round(float(share), 4) for share in shares]
    return {"error": float(np.median(errors)), "of": size.runs, "sorted": sorted_ones}


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Table 2 as printed."""
    del data
    for eta in reversed(size.etas):
        for name in ("stochastic, s = 2", "exact"):
            yield Job({"integrator": name, "eta": eta}, partial(measured, name, eta, size))
