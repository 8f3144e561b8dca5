"""The compiled step of small matrices is the step of products."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, RiemannianDescent, riemannian_descent
from nearkin.orthogonal.retraction import FOURTH, THIRD, TOLERANCE
from nearkin.orthogonal.small_step import descend_small
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point

SHAPES = [(1, 1), (2, 2), (20, 20), (3, 6, 6), (9, 4), (4, 9), (5, 1), (3, 8, 3), (2, 3, 2, 5)]
STRIDES: dict[str, Callable[[Tensor], Tensor]] = {
    "rows first": Tensor.contiguous,
    "columns first": lambda X: X.mT.contiguous().mT,
    "every second column": lambda X: torch.stack([X, X], -1).flatten(-2)[..., ::2],
    "batch last": lambda X: X.movedim(0, -1).contiguous().movedim(-1, 0),
}


def trained(X: Tensor, momentum: Any, lr: float, layout: str = "matrix", **options: Any) -> tuple[Tensor, list[Tensor]]:
    p = nn.Parameter(X.clone(memory_format=torch.preserve_format) if X.is_contiguous() else X)
    strides = p.stride()
    groups = [{"params": [p], "by_angle": lr == 0.05}]
    optimizer = RiemannianDescent(groups, lr, "auto", momentum=momentum, layout=layout, **options)
    for seed in range(5):
        p.grad = gradient(p.shape, seed, p.dtype)
        optimizer.step()
    assert p.stride() == strides
    return p.detach(), [value for _, value in sorted(optimizer.state[p].items()) if isinstance(value, Tensor)]


@each(
    ("shape", "lr", "momentum", "dtype"),
    covering(SHAPES, [1e-3, 0.05, 0.2], [0.0, 0.7, Adam((0.8, 0.95))], [torch.float32, torch.float64]),
)
def test_it_is_the_step_of_products(
    shape: tuple[int, ...], lr: float, momentum: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, moments = trained(point(shape, 1, dtype), momentum, lr)
    monkeypatch.setattr(riemannian_descent, "is_small", lambda M: False)
    slow, slow_moments = trained(point(shape, 1, dtype), momentum, lr)
    # of the iteration; the two polynomials, of which either may be taken, differ by the third power of a step
    bound = max(40 * TOLERANCE[dtype], TOLERANCE[dtype] ** 0.75)
    torch.testing.assert_close(compiled, slow, rtol=0, atol=bound)
    for ours, theirs in zip(moments, slow_moments, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e3 * bound)
    assert orthogonality_error(compiled) <= 2 * TOLERANCE[dtype]  # one vector estimates it


@each(
    ("strides", "shape", "maximize"),
    covering([*STRIDES], [(6, 6), (9, 4), (4, 9), (3, 6, 6), (3, 9, 4), (3, 4, 9), (2, 3, 5, 5)], [False, True]),
)
def test_one_matrix_in_any_strides_takes_the_same_steps(
    strides: str, shape: tuple[int, ...], maximize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix as `torch.linalg.qr` returns it, columns first, took the slow path, .3 of the speed."""
    calls, X = list[int](), point(shape, 1)
    monkeypatch.setattr(riemannian_descent, "descend_small", lambda *a: calls.append(1) or descend_small(*a))
    ends = [trained(Y, 0.7, 0.05, maximize=maximize)[0] for Y in (X, STRIDES[strides](X))]
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)
    assert len(calls) == 10


@each("shape", [(4, 2, 3, 3), (20, 2, 3, 3), (9, 1, 3, 3)])
@each("memory", [torch.contiguous_format, torch.channels_last])
def test_a_kernel_moves_as_its_matrix(
    shape: tuple[int, ...], memory: torch.memory_format, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = point((shape[0], shape[1] * 9), 1).view(shape).contiguous(memory_format=memory)
    calls, ends = list[int](), list[Tensor]()
    for fast in (True, False):
        found = (lambda *a: calls.append(1) or descend_small(*a)) if fast else (lambda *_: False)
        monkeypatch.setattr(riemannian_descent, "descend_small", found)
        ends.append(trained(X, 0.7, 0.05, "convolution")[0])
    torch.testing.assert_close(*ends, rtol=0, atol=1e-9)
    assert len(calls) == 5


@each("shape", [(2, 5, 5), (2, 7, 3)])
def test_a_step_too_long_leaves_the_point(shape: tuple[int, ...]) -> None:
    X = point(shape, 1, torch.float32).numpy()
    start, G = X.copy(), gradient(shape, 0, torch.float32).numpy()
    long, short = ({"lr": lr, "momentum": 0.0, "eps": 1e-8} for lr in (100.0, 0.01))
    assert not descend_small(X, G, long, {"step": 1})
    assert not descend_small(X, np.full_like(G, np.nan), short, {"step": 1})
    np.testing.assert_array_equal(X, start)
    assert descend_small(X, G, short, {"step": 1})
    assert not np.array_equal(X, start)


@each("momentum", [0.0, 0.7, Adam((0.8, 0.95))])
def test_a_step_too_long_for_the_series_is_the_geodesic(momentum: Any) -> None:
    ends = []
    for name in ("taylor", "exp"):
        p = nn.Parameter(point((7, 7), 1))
        optimizer = RiemannianDescent([p], 3.0, name, momentum=momentum)
        for _ in range(2):
            p.grad = gradient((7, 7), 0)
            optimizer.step()
        ends.append(p.detach())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-8)


def test_the_series_leaves_the_manifold_by_its_eighth_power_only() -> None:
    x = torch.linspace(0, 1, 11, dtype=torch.float64)
    f = 1 - x**2 / 2 + FOURTH * x**4 + 1j * (x - THIRD * x**3)
    torch.testing.assert_close(f.abs() ** 2 - 1, FOURTH**2 * x**8, rtol=0, atol=1e-15)
