"""SGDG follows its paper's formulas, with the fixed point of Cayley's curve found to the end."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import SGDG
from nearkin.orthogonal.optimizer import PRODUCTS
from tests.covering import covering, each

LARGE = PRODUCTS + 2  # there Cayley's curve is a solve, not products


def paper_step(X: Tensor, V: Tensor, G: Tensor, lr: float, momentum: float) -> tuple[Tensor, Tensor]:
    """Li, Fuxin & Todorovic (2020), Algorithm 1, for X (d, k): the next X and V."""
    V = momentum * V - G
    half = V @ X.mT - X @ (X.mT @ V @ X.mT) / 2
    W = half - half.mT
    V = W @ X
    alpha = min(lr, 1 / (float(W.abs().sum(0).max()) + 1e-8))
    Y = X + alpha * V
    for _ in range(60):
        Y = X + alpha / 2 * W @ (X + Y)
    return Y, V


@each(("shape", "lr", "momentum"), covering([(7, 7), (LARGE, LARGE), (9, 4), (4, 9), (5, 1)], [0.01, 100.0], [0, 0.9]))
def test_its_path_is_that_of_the_formulas(shape: tuple[int, int], lr: float, momentum: float) -> None:
    start = haar_orthogonal(max(shape), min(shape), random_state=0, dtype=torch.float64)
    p = nn.Parameter(start.clone() if shape[0] >= shape[1] else start.mT.clone())
    X, V = start, torch.zeros_like(start)
    optimizer, generator = SGDG([p], lr, momentum, stiefel=True), torch.Generator().manual_seed(1)
    for _ in range(10):
        G = torch.randn(start.shape, generator=generator, dtype=torch.float64)
        p.grad = G if shape[0] >= shape[1] else G.mT.contiguous()
        optimizer.step()
        X, V = paper_step(X, V, G, lr, momentum)
    torch.testing.assert_close(p.detach() if shape[0] >= shape[1] else p.detach().mT, X, rtol=0, atol=1e-9)
    assert orthogonality_error(p.detach()) < 1e-10


def test_it_takes_the_arguments_of_the_toolkits() -> None:
    names = "self params lr momentum dampening weight_decay nesterov stiefel omega grad_clip"
    assert list(inspect.signature(SGDG.__init__).parameters) == names.split()


@each(
    ("options", "message"),
    [
        ({}, "stiefel is False.*torch.optim.SGD"),
        ({"stiefel": True, "grad_clip": 1.0}, "grad_clip is 1.0"),
        ({"stiefel": True, "omega": 0.1}, "omega is 0.1"),
    ],
)
def test_what_it_has_not_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SGDG([nn.Parameter(torch.eye(3))], 0.1, **options)


@each(("shape", "lr", "momentum"), covering([(1, 1), (7, 7), (33, 33), (3, 6, 6)], [0.01, 100.0], [0, 0.9]))
def test_the_compiled_step_is_that_of_the_formulas(shape: tuple[int, ...], lr: float, momentum: float) -> None:
    p = nn.Parameter(haar_orthogonal(*shape, random_state=0))
    X = p.detach().double().view(-1, *shape[-2:]).clone()
    V, generator = torch.zeros_like(X), torch.Generator().manual_seed(1)
    optimizer = SGDG([p], lr, momentum, stiefel=True)
    for _ in range(10):
        p.grad = torch.randn(shape, generator=generator)
        assert optimizer._compiled_step(p, optimizer.param_groups[0]) or len(shape) > 2
        if len(shape) > 2:
            optimizer.step()
        G = p.grad.double().view(X.shape)
        for b in range(len(X)):
            X[b], V[b] = paper_step(X[b], V[b], G[b], lr, momentum)
        if momentum:
            torch.testing.assert_close(optimizer.state[p]["momentum"].double().view(X.shape), V, rtol=0, atol=5e-5)
    torch.testing.assert_close(p.detach().double().view(X.shape), X, rtol=0, atol=1e-5)
    assert orthogonality_error(p.detach()) < 1e-6


def test_a_gradient_of_zeros_moves_nothing() -> None:
    p = nn.Parameter(haar_orthogonal(12, 12, random_state=0))
    p.grad, before = torch.zeros(12, 12), p.detach().clone()
    optimizer = SGDG([p], 0.1, stiefel=True)
    optimizer.step()
    torch.testing.assert_close(p.detach(), before, rtol=0, atol=2e-7)
