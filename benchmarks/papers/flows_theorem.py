"""Flows, Theorem 5.1 on a small case: its three conditions and its bound, with constants that are known exactly.

F(X) = tr(A X B X^T) with symmetric A, B is maximised over O(d): the gradient 2 A X B is Lipschitz with L = 2 |A| |B|
(spectral norms), F* pairs the sorted eigenvalues, and |Omega|^2 <= 16 |A|_F^2 |B|^2. A uniform matching (s = 2) scaled
by d - 1 has E |hat Omega|^2 = (d - 1) |Omega|^2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.jobs import Job, Row
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal import StochasticFlow

D = 6


@dataclass(frozen=True)
class Size:
    """Steps of a chain, chains."""

    steps: int = 400
    chains: int = 200


FULL, SMALL = Size(), Size(20, 10)


def matchings(d: int) -> list[list[tuple[int, int]]]:
    """All perfect matchings of d axes."""
    found = {tuple(sorted(tuple(sorted(order[k : k + 2])) for k in range(0, d, 2))) for order in permutations(range(d))}
    return [[(int(i), int(j)) for i, j in pairs] for pairs in sorted(found)]


def mean_estimate(Omega: Tensor) -> tuple[Tensor, float]:
    """E hat Omega and E |hat Omega|^2 over every matching, each pair scaled by d - 1."""
    d, total, square = len(Omega), torch.zeros_like(Omega), 0.0
    every = matchings(d)
    for pairs in every:
        estimate = torch.zeros_like(Omega)
        for i, j in pairs:
            estimate[i, j], estimate[j, i] = (d - 1) * Omega[i, j], (d - 1) * Omega[j, i]
        total, square = total + estimate, square + float(estimate.square().sum())
    return total / len(every), square / len(every)


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Theorem 5.1."""
    del data
    yield Job({"d": D}, partial(measured, size))


def measured(size: Size) -> Row:
    """The conditions' worst cases over random points, and both sides of the bound."""
    torch.manual_seed(0)
    A, B = (M + M.T for M in torch.randn(2, D, D, dtype=torch.float64))
    norm_A, norm_B = (float(torch.linalg.matrix_norm(M, 2)) for M in (A, B))
    points = haar_orthogonal(size.chains, D, D, random_state=1, dtype=torch.float64)
    gradients = 2 * A @ points @ B
    gaps, moves = gradients[1:] - gradients[:-1], points[1:] - points[:-1]
    L = 2 * norm_A * norm_B
    lipschitz = float((torch.linalg.matrix_norm(gaps) / torch.linalg.matrix_norm(moves)).max())
    bound = 16 * float(A.square().sum()) * norm_B**2 * (D - 1)
    Omega = left_skew(points[0], gradients[0])
    mean, square = mean_estimate(Omega)
    largest = max((D - 1) * float(left_skew(X, G).square().sum()) for X, G in zip(points, gradients, strict=True))
    return {
        "L": L, "largest ratio": lipschitz, "sigma^2": bound, "largest E |estimate|^2": largest,
        "bias": float((mean - Omega).abs().max()),
        "E |estimate|^2 over |Omega|^2": square / float(Omega.square().sum()),
        "steps": size.steps, "chains": size.chains, **bounds(A, B, points[0], L, bound, size),
    }  # fmt: skip


def bounds(A: Tensor, B: Tensor, start: Tensor, L: float, sigma2: float, size: Size) -> dict[str, float]:
    """The least mean squared gradient along the chains, and the bound with the step length that makes it least."""
    best = float((torch.linalg.eigvalsh(A) * torch.linalg.eigvalsh(B)).sum())
    gap = best - float((A * (start @ B @ start.T)).sum())
    constant = sigma2 * ((2 * D**0.5 + 1) * L + float(torch.linalg.matrix_norm(2 * A @ B)))
    eta = (2 * gap / constant / (size.steps + 1)) ** 0.5
    X = nn.Parameter(start.repeat(size.chains, 1, 1))
    optimizer = StochasticFlow([X], eta, 2, maximize=True)
    squares = []
    for _ in range(size.steps + 1):
        X.grad = 2 * A @ X.detach() @ B
        Omega = X.grad @ X.detach().mT
        squares.append(float((Omega - Omega.mT).square().sum((1, 2)).mean()))
        optimizer.step()
    right = 2 * gap / (eta * (size.steps + 1)) + constant * eta
    return {"eta": eta, "first": squares[0], "left": min(squares), "right": right}
