"""An orthonormal weight for every optimizer: its gradient, its right inverse, shapes, and what optimizers do to it."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.optim.swa_utils import AveragedModel

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import nearest_orthogonal, orthogonality_error
from nearkin.orthogonal import is_orthogonal, orthogonal_parametrization

SHAPES = [(5, 5), (7, 3), (3, 7), (1, 1), (4, 1), (1, 4), (2, 6, 4), (2, 3, 4, 4)]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


class Holder(nn.Module):
    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(value)


def holder(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, scale: float = 1.0) -> Any:
    generator = torch.Generator().manual_seed(0)
    module = Holder((scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype))
    return orthogonal_parametrization(module)


def objective(W: Tensor) -> Tensor:
    weights = torch.randn(W.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(W.dtype)
    return (weights * W).sum() + (W**3).sum()


@each_shape
def test_the_present_value_is_projected(shape: tuple[int, ...]) -> None:
    value = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(holder(shape).weight.detach(), nearest_orthogonal(value), rtol=0, atol=1e-9)


@each_shape
def test_the_gradient_is_the_central_difference(shape: tuple[int, ...]) -> None:
    module = holder(shape)
    P = module.parametrizations.weight.original
    objective(module.weight).backward()
    for number in range(P.numel()):
        ends = []
        for t in (1e-6, -1e-6):
            moved = copy.deepcopy(module)
            with torch.no_grad():
                moved.parametrizations.weight.original.view(-1)[number] += t
                ends.append(float(objective(moved.weight)))
        assert float(P.grad.view(-1)[number]) == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@each_shape
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_right_inverse_is_exact(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    module = holder(shape, dtype)
    *batch, d, k = shape
    Q = haar_orthogonal(*batch, max(d, k), min(d, k), random_state=3, dtype=torch.float64)
    Q = (Q if d >= k else Q.mT).to(dtype)
    module.weight = Q
    assert torch.equal(module.weight.detach(), Q)
    module.weight = 3 * Q  # not orthonormal: the nearest that is
    torch.testing.assert_close(module.weight.detach(), Q, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad], ids=lambda o: o.__name__)
@each_shape
def test_any_optimizer_stays_on_the_manifold_and_descends(make: Any, shape: tuple[int, ...]) -> None:
    module = holder(shape, torch.float32)
    optimizer, losses = make(module.parameters(), lr=0.02), []
    for _ in range(15):
        optimizer.zero_grad()
        loss = objective(module.weight)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        assert orthogonality_error(module.weight) < 2e-6
    assert losses[-1] < losses[0] or shape[-2:] == (1, 1)


@pytest.mark.parametrize("lr", [0.3, 3.0, 1e3])
def test_long_steps_are_the_polar_factor(lr: float) -> None:
    module = holder((12, 8))
    P = module.parametrizations.weight.original
    objective(module.weight).backward()
    torch.optim.SGD([P], lr=lr).step()
    expected = nearest_orthogonal(P.detach().clone())
    torch.testing.assert_close(module.weight.detach(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_a_parameter_does_not_matter(scale: float) -> None:
    torch.testing.assert_close(holder((7, 5), scale=scale).weight, holder((7, 5)).weight, rtol=0, atol=1e-9)
    flat = torch.ones(4, 3, dtype=torch.float64) + torch.eye(4, 3)
    flat[:, 2] = flat[:, 1]
    with pytest.raises(ValueError, match="not of full rank"):
        orthogonal_parametrization(Holder(scale * flat))


def test_one_small_step_is_that_of_torch_s_own() -> None:
    start, lr = haar_orthogonal(6, 6, special=True, random_state=0, dtype=torch.float64), 1e-5
    ours = orthogonal_parametrization(Holder(start.clone()))
    theirs = parametrizations.orthogonal(Holder(start.clone()), orthogonal_map="cayley")
    for module, rate in ((ours, 2 * lr), (theirs, lr)):  # theirs moves by X (A - A^T), twice the tangent gradient
        objective(module.weight).backward()
        torch.optim.SGD(module.parameters(), lr=rate).step()
    moved = theirs.weight.detach() - start
    torch.testing.assert_close(ours.weight.detach() - start, moved, rtol=0, atol=1e-3 * float(moved.norm()))


def test_optimizers_that_copy_and_interpolate_parameters_work() -> None:
    module = holder((8, 8))
    target = haar_orthogonal(8, 8, random_state=5, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(module.parameters(), lr=1, max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = -(module.weight[:, :4] * target[:, :4]).sum()  # within reach of both determinants
        loss.backward()
        return loss

    optimizer.step(closure)
    assert float(closure().detach()) == pytest.approx(-4, abs=1e-6)
    average = AveragedModel(module)
    for seed in range(3):
        with torch.no_grad():
            module.parametrizations.weight.original += 0.1 * torch.randn(
                8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
            )
        average.update_parameters(module)
    assert is_orthogonal(average.module.weight, 1e-9)


def test_state_dict_and_cache() -> None:
    module = holder((4, 9), torch.float32)
    torch.optim.SGD(module.parameters(), 0.5)
    with torch.no_grad():
        module.parametrizations.weight.original += 0.05  # saved between a step and its next use
    other = holder((4, 9), torch.float32, scale=2.0)
    other.load_state_dict(module.state_dict())
    assert torch.equal(module.weight, other.weight)
    assert list(module.state_dict()) == ["parametrizations.weight.original"]
    used = module.weight.detach().clone()
    assert torch.equal(module.weight, used)  # to use it changes nothing


def test_convolutions_and_sixteen_bits() -> None:
    torch.manual_seed(0)
    layer = orthogonal_parametrization(nn.Conv2d(2, 6, 3))
    layer(torch.randn(1, 2, 5, 5)).square().sum().backward()
    torch.optim.Adam(layer.parameters(), 0.05).step()
    assert is_orthogonal(layer.weight.flatten(1), 2e-6)
    half = orthogonal_parametrization(nn.Linear(16, 8).bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half(torch.randn(3, 16)).square().sum().backward()
    torch.optim.SGD(half.parameters(), 0.1).step()
    assert half.weight.dtype == torch.bfloat16
    assert is_orthogonal(half.weight)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"name is 'wight'; it must be a parameter of the Linear, which has: weight"):
        orthogonal_parametrization(nn.Linear(3, 3), "wight")
    with pytest.raises(ValueError, match=r"bias has shape \(3,\)"):
        orthogonal_parametrization(nn.Linear(3, 3), "bias")
    with pytest.raises(ValueError, match="not of full rank"):
        orthogonal_parametrization(Holder(torch.zeros(3, 3)))
    with pytest.raises(ValueError, match="not finite"):
        orthogonal_parametrization(Holder(torch.full((3, 3), torch.nan)))
