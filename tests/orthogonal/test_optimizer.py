"""What all optimizers share: parameters of one shape move as one batch, by the steps of the loop over them; moments
turn with the point; gradients are looked at always, every so many steps, or never."""

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from nearkin.orthogonal import Adam, RiemannianDescent, orthogonal_optimizer
from nearkin.orthogonal.optimizer import as_tall, from_tall
from tests.contracts.test_optimizers import KINDS, MOMENTS, OPTIMIZERS
from tests.covering import each
from tests.orthogonal.steps import descend_along, gradient, point

SHAPES = [(5, 5), (6, 3), (3, 6), (2, 5, 5), (2, 3, 6, 3), (2, 3, 6)]


def same(ours: Any, joined: list[nn.Parameter], loop: Any, single: list[nn.Parameter]) -> None:
    """Both hold the same points and moments."""
    for a, b in zip(joined, single, strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=0, atol=1e-10)
        assert ours.state[a].keys() == loop.state[b].keys()
        for name, value in ours.state[a].items():
            torch.testing.assert_close(value, loop.state[b][name], rtol=0, atol=1e-9)


@each(
    ("name", "moments"), [*zip(OPTIMIZERS, itertools.cycle(MOMENTS), strict=False), *itertools.product(KINDS, MOMENTS)]
)
def test_a_batch_of_parameters_is_the_loop(name: str, moments: str) -> None:
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(point(shape, 7 * n + 1)) for n in range(2) for shape in SHAPES]
        groups = [{"params": params, "foreach": foreach, "by_angle": True}]
        optimizer = OPTIMIZERS[name](groups, 0.02, stabilize_every=3, **MOMENTS[moments])
        descend_along(optimizer, params, 4)
        ends += [optimizer, params]
    same(*ends)


def test_convolutions_are_joined_too() -> None:
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(point((4, 18), seed).reshape(4, 2, 3, 3)) for seed in range(3)]
        optimizer = RiemannianDescent(params, 0.05, "qr", momentum=0.5, layout="convolution", foreach=foreach)
        descend_along(optimizer, params, 4)
        ends += [optimizer, params]
    same(*ends)


def test_gradients_are_tested_together_and_named_one_by_one() -> None:
    params = [nn.Parameter(torch.eye(3)) for _ in range(4)]
    optimizer = RiemannianDescent(params, 0.1)
    for number, p in enumerate(params):
        p.grad = torch.full((3, 3), 1e38 if number == 2 else 1.0)
    with pytest.raises(ValueError, match=r"gradient of parameter 2.*as large as"):
        optimizer.step()
    assert all(torch.equal(p, torch.eye(3)) for p in params)
    for p in params:  # each is fine, only their common norm is not
        p.grad = torch.full((3, 3), 9e18) * torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 0]])
    optimizer.step()


@each(
    ("shape", "layout", "tall"),
    [
        *(((*batch, *one), "matrix", (5, 2)) for batch in ((), (3,), (2, 3)) for one in ((5, 2), (2, 5))),
        *(((*batch, 4, 4), "matrix", (4, 4)) for batch in ((), (2,))),
        ((4, 2, 3, 3), "convolution", (18, 4)),
        ((20, 2, 3, 3), "convolution", (20, 18)),
    ],
)
def test_a_parameter_is_seen_tall_and_written_back(shape: tuple[int, ...], layout: Any, tall: tuple[int, int]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X, kept = as_tall(p, layout), p.clone()
    assert X.shape[-2:] == tall
    torch.testing.assert_close(from_tall(2 * X + 1, p, layout), 2 * kept + 1)


@each("moments", [{"momentum": 0.7}, {"momentum": Adam((0.7, 0.9))}])
@each("name", ["flow-2", "flow-3", "givens-random", "givens-greedy"])
def test_the_buffer_turns_with_the_point(name: str, moments: dict) -> None:
    """X <- T X (X T for columns) and M <- T (0.7 M + G): a buffer left behind would point along old axes."""
    p, M = nn.Parameter(point((6, 6), 1)), torch.zeros(6, 6, dtype=torch.float64)
    optimizer = OPTIMIZERS[name]([p], 0.1, **moments)
    share = 1.0 if moments["momentum"] == 0.7 else 1 - 0.7
    for seed in range(4):
        before = p.detach().clone()
        p.grad = gradient((6, 6), seed)
        optimizer.step()
        columns = name == "givens-greedy"
        turn = before.T @ p.detach() if columns else p.detach() @ before.T
        assert float((turn - torch.eye(6)).norm()) > 0.05, "a step that turns something"
        M = 0.7 * M + share * p.grad
        M = M @ turn if columns else turn @ M
        torch.testing.assert_close(optimizer.state[p]["momentum"].reshape(6, 6), M, rtol=1e-9, atol=1e-12)


@each(("when", "seen"), [(True, 1), ("every 3", 3), ("every 1", 1)])
@each("name", [*KINDS, "auto", "givens"])
@each("count", [1, 2])
def test_a_bad_gradient_is_seen_when_it_is_looked_at(name: str, when: Any, seen: int, count: int) -> None:
    params = [nn.Parameter(torch.eye(6)) for _ in range(count)]
    if name in OPTIMIZERS:
        optimizer = OPTIMIZERS[name]([{"params": params, "check_finite": when}], lr=0.1)
    else:
        optimizer = orthogonal_optimizer(params, 0.1, method=name, check_finite=when)
    for p in params:
        p.grad = torch.ones(6, 6)
    for _ in range(seen - 1):
        optimizer.step()
    before = [p.detach().clone() for p in params]
    params[-1].grad = torch.full((6, 6), torch.nan)
    with pytest.raises(ValueError, match=f"gradient of parameter {count - 1}.*NaN"):
        optimizer.step()
    assert all(torch.equal(p.detach(), b) for p, b in zip(params, before, strict=True))


def test_without_looks_a_step_that_is_not_finite_and_a_sparse_gradient_are_refused() -> None:
    p = nn.Parameter(torch.eye(6))
    optimizer = RiemannianDescent([p], 0.1, "newton-schulz", check_finite=False)
    p.grad = torch.full((6, 6), torch.nan)
    with pytest.raises(ValueError, match="step is not finite"):
        optimizer.step()
    assert torch.equal(p.detach(), torch.eye(6))
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["check_finite"]  # as an optimizer without the option saved it: looks are the default
    optimizer.load_state_dict(saved)
    with pytest.raises(ValueError, match="NaN"):
        optimizer.step()
    p.grad = torch.eye(6).to_sparse()
    with pytest.raises(TypeError, match=r"parameter 0 is sparse.*dense"):
        RiemannianDescent([p], 0.1, check_finite=False).step()


@each("value", ["every 0", "every", "every x", "always", 3, None, "every -1"])
def test_what_is_no_option(value: Any) -> None:
    with pytest.raises(ValueError, match=r"check_finite is .*'every 100'"):
        RiemannianDescent([nn.Parameter(torch.eye(3))], 0.1, check_finite=value)


COMPILED = "givens-random", "givens-greedy", "riemannian-auto"


@each("name", [*COMPILED, "riemannian-auto, thin"])
@each("d", [1, 5, 6])
def test_a_compiled_step_finds_one_bad_entry_of_its_gradient_before_it_changes_anything(name: str, d: int) -> None:
    for row in range(d):
        p = nn.Parameter(torch.eye(d + ("thin" in name), d))
        optimizer = OPTIMIZERS[name.split(",")[0]]([p], 0.1, momentum=0.5 if "auto" in name else 0.0)
        p.grad = torch.ones_like(p).triu()
        optimizer.step()
        before = p.detach().clone()
        moments = [value.clone() for value in optimizer.state[p].values() if isinstance(value, torch.Tensor)]
        p.grad[row, -1] = torch.inf
        with pytest.raises(ValueError, match=r"gradient of parameter 0.*infinity"):
            optimizer.step()
        assert torch.equal(p.detach(), before)
        after = [value for value in optimizer.state[p].values() if isinstance(value, torch.Tensor)]
        assert all(torch.equal(*pair) for pair in zip(moments, after, strict=True))


@each("name", COMPILED)
def test_autograd_sees_that_a_compiled_step_has_changed_the_parameter(name: str) -> None:
    p = nn.Parameter(torch.eye(4))
    loss = (p**3).sum()
    loss.backward(retain_graph=True)
    OPTIMIZERS[name]([p], 0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
