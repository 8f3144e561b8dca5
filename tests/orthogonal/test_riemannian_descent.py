"""Riemannian descent: products alone keep the manifold over many long steps; skew momentum needs no transport."""

import itertools

import pytest
import torch
from torch import nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, RiemannianDescent, orthogonal_parametrization, riemannian_descent
from nearkin.orthogonal.retraction import RETRACTIONS
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point

SHAPES = [(24, 24), (30, 8), (132, 132), (300, 24)]


@each(("retraction", "shape", "lr"), covering(["auto", *RETRACTIONS], SHAPES, [0.002, 0.01, 0.05]))
def test_many_float32_steps_stay_within_a_millionth(retraction: str, lr: float, shape: tuple[int, int]) -> None:
    # "taylor" used to leave up to 3e-5 between two stabilizations, and "newton-schulz" 2e-5 after a long step
    p = nn.Parameter(haar_orthogonal(*shape, random_state=0))
    optimizer = RiemannianDescent([p], lr, retraction)
    generator, worst = torch.Generator().manual_seed(0), 0.0
    for _ in range(120 if len(p) < 100 else 8):
        p.grad = torch.randn(*shape, generator=generator)
        optimizer.step()
        worst = max(worst, orthogonality_error(p))
    assert worst < (1e-6 if retraction in ("auto", "taylor", "newton-schulz") else 3e-6), worst


@each(
    ("name", "lr", "dtype", "batch", "threads"),
    covering(
        ["taylor", "newton-schulz", "cayley", "exp", "parametrization"],
        *([0.1, 0.3, 1.0], [torch.float32, torch.float64], [(), (3,)], [1, 2]),
    ),
)
def test_no_plane_hides_a_step_that_leaves_the_manifold(
    name: str, lr: float, dtype: torch.dtype, batch: tuple[int, ...], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error was estimated by a fixed vector of signs, which is orthogonal to many planes of differences of axes."""
    monkeypatch.setattr(riemannian_descent, "is_small", lambda X: threads == 1)  # compiled or by products
    d = 8
    axes = torch.eye(d, dtype=torch.float64)
    pairs = list(itertools.combinations(range(d), 2))
    planes = [(a, b) for a, b in itertools.combinations(pairs, 2) if not set(a) & set(b)]
    for (i, j), (k, m) in planes[:: len(planes) // 9]:
        A = torch.outer(axes[i] - axes[j], axes[k] - axes[m]) / 2
        A = (A - A.T).to(dtype).expand(*batch, d, d)
        holder = nn.Linear(d, d, bias=False)
        p = holder.weight = nn.Parameter(torch.eye(d, dtype=dtype).repeat(*batch, 1, 1))
        if name == "parametrization":
            orthogonal_parametrization(holder)
            optimizer = torch.optim.SGD(holder.parameters(), lr)
        else:
            optimizer = RiemannianDescent([p], lr, name, stabilize_every=0)
        for _ in range(10):
            optimizer.zero_grad()
            (holder.weight * (holder.weight.detach() @ A / 2)).sum().backward()
            optimizer.step()
        error = orthogonality_error(holder.weight.detach().double())
        assert error < {torch.float32: 3e-6, torch.float64: 2e-11}[dtype], (i, j, k, m)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="retraction is 'svd'"):
        RiemannianDescent([nn.Parameter(torch.eye(3))], 0.1, "svd")


@each("shape", [(5, 5), (6, 3)])
@each("adam", [True, False])
def test_steps_with_moments_are_those_of_the_formulas(shape: tuple[int, int], adam: bool) -> None:
    """Square: both moments entry by entry in the skew coordinates. Tall: one second moment, of the tangent gradient.
    Momentum adds the skew forms up, which need no transport."""
    lr, beta1, beta2, eps = 0.05, 0.8, 0.95, 1e-3
    X = point(shape, 0)
    p = nn.Parameter(X.clone())
    optimizer = RiemannianDescent([p], lr, "exp", momentum=Adam((beta1, beta2), eps) if adam else beta1)
    M = v = torch.zeros(())
    for t in range(1, 5):
        G = p.grad = gradient(shape, t)
        optimizer.step()
        square = shape[0] == shape[1]
        raw = X.T @ G - G.T @ X if square else G - X @ (X.T @ G + G.T @ X) / 2
        M = beta1 * M + (1 - beta1 if adam else 1) * (raw if square else G)
        v = beta2 * v + (1 - beta2) * (raw**2 if square else (raw**2).mean())
        D = lr * M / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps) if adam else lr * M
        X = X @ torch.linalg.matrix_exp(-D) if square else torch.linalg.matrix_exp(X @ D.T - D @ X.T) @ X
        torch.testing.assert_close(p.detach(), X, rtol=0, atol=1e-10)
