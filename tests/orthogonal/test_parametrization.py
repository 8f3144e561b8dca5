"""An orthonormal weight for every optimizer: its gradient, its right inverse, shapes, what optimizers do to it, and
torch's functions and programs; putting a module's parameter on the manifold."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd, jacrev, vmap

import nearkin as nk
from nearkin.linalg.orthonormal import nearest_orthogonal, orthogonality_error
from nearkin.orthogonal import (
    RiemannianDescent,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
    orthogonal_parametrization,
    parametrization,
)
from tests.covering import each
from tests.orthogonal.steps import point

SHAPES = [(5, 5), (7, 3), (3, 7), (1, 1), (4, 1), (1, 4), (2, 6, 4), (2, 2, 3, 3)]
each_shape = each("shape", SHAPES)


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
@each("dtype", [torch.float32, torch.float64])
def test_the_right_inverse_is_exact(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    module = holder(shape, dtype)
    Q = point(shape, 3, dtype)
    module.weight = Q
    assert torch.equal(module.weight.detach(), Q)
    module.weight = 3 * Q  # not orthonormal: the nearest that is
    torch.testing.assert_close(module.weight.detach(), Q, rtol=0, atol=1e-6)


@each("make", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad])
@each_shape
def test_any_optimizer_stays_on_the_manifold_and_descends(make: Any, shape: tuple[int, ...]) -> None:
    module = holder(shape, torch.float32)
    P, losses = module.parametrizations.weight.original, []
    optimizer = make([P], lr=0.02)
    for lr in (*[0.02] * 8, 3.0, 1e3):
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        loss = objective(module.weight)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        assert orthogonality_error(module.weight) < 2e-6
    assert losses[7] < losses[0] or shape[-2:] == (1, 1)
    torch.testing.assert_close(module.weight, nearest_orthogonal(P.detach().clone()), rtol=0, atol=1e-5)


@each("scale", [1e-9, 1e9])
def test_the_unit_of_a_parameter_does_not_matter(scale: float) -> None:
    torch.testing.assert_close(holder((7, 5), scale=scale).weight, holder((7, 5)).weight, rtol=0, atol=1e-9)
    flat = torch.ones(4, 3, dtype=torch.float64) + torch.eye(4, 3)
    flat[:, 2] = flat[:, 1]
    with pytest.raises(ValueError, match="not of full rank"):
        orthogonal_parametrization(Holder(scale * flat))


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


def test_sixteen_bits() -> None:
    torch.manual_seed(0)
    half = orthogonal_parametrization(nn.Linear(16, 8).bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half(torch.randn(3, 16)).square().sum().backward()
    torch.optim.SGD(half.parameters(), 0.1).step()
    assert half.weight.dtype == torch.bfloat16
    assert is_orthogonal(half.weight)


def test_in_eval_a_weight_moved_from_outside_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module, calls = holder((6, 4)).eval(), list[int]()
    measure = parametrization.polar_by_products
    monkeypatch.setattr(parametrization, "polar_by_products", lambda M: calls.append(1) or measure(M))
    for number in range(3):
        module.parametrizations.weight.original.data.add_(0.1)  # torch's count of versions does not see it
        for _ in range(2):
            assert is_orthogonal(module.weight, 1e-12)
        assert len(calls) == number + 1
    assert torch.equal(copy.deepcopy(module).float().weight, module.float().weight)


def test_bad_input() -> None:
    for module, name, match in (
        (nn.Linear(3, 3), "wight", r"name is 'wight'; it must be a parameter of the Linear, which has: weight"),
        (nn.Linear(3, 3), "bias", r"bias has shape \(3,\)"),
        (Holder(torch.zeros(3, 3)), "weight", "not of full rank"),
        (Holder(torch.full((3, 3), torch.nan)), "weight", "not finite"),
    ):
        with pytest.raises(ValueError, match=match):
            orthogonal_parametrization(module, name)


def parametrized(layer: nn.Module) -> nn.Module:
    return nk.orthogonal.orthogonal_parametrization(layer.double())


def rotated() -> nn.Module:
    block = nk.orthogonal.BlockRotation(6, 3, dtype=torch.float64)
    nn.init.normal_(block.weight, std=0.3, generator=torch.Generator().manual_seed(1))
    return block


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "tall": (lambda: parametrized(nn.Linear(6, 9)), (2, 6)),
    "wide": (lambda: parametrized(nn.Linear(6, 4)), (2, 6)),
    "convolution": (lambda: parametrized(nn.Conv1d(3, 4, 2)), (2, 3, 5)),
    "block rotation": (rotated, (2, 6)),
}


@pytest.fixture(params=MODULES)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor]:
    make, shape = MODULES[request.param]
    torch.manual_seed(0)
    module, x = make(), torch.randn(shape, dtype=torch.float64)
    module(x)  # whose weight is orthonormal from here on
    return module, x


def loss(module: nn.Module, weights: dict[str, Any], x: Tensor) -> Tensor:
    return functional_call(module, weights, (x,)).pow(3).sum()


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # torch's own, for derivatives forwards
def test_gradients_of_functions_are_those_of_backward(case: tuple[nn.Module, Tensor]) -> None:
    module, x = case
    weights = dict(module.named_parameters())
    expected = torch.autograd.grad(module(x).pow(3).sum(), list(weights.values()))
    for transform in (grad, jacrev, jacfwd):
        found = transform(lambda w: loss(module, w, x))(weights)
        torch.testing.assert_close(tuple(found.values()), expected)


def test_batches_of_inputs_and_of_weights_are_loops(case: tuple[nn.Module, Tensor]) -> None:
    module, x = case
    weights = dict(module.named_parameters())
    each = vmap(grad(lambda w, one: loss(module, w, one[None])), in_dims=(None, 0))(weights, x)
    for name, found in each.items():
        for row, one in zip(found, x, strict=True):
            torch.testing.assert_close(row, grad(lambda w, one=one: loss(module, w, one[None]))(weights)[name])
    many = {name: torch.stack([w, w.neg(), 2 * w]) for name, w in weights.items()}
    found = vmap(lambda w: loss(module, w, x))(many)
    for number, value in enumerate(found):
        torch.testing.assert_close(value, loss(module, {name: w[number] for name, w in many.items()}, x))


def test_second_derivatives_are_differences_of_first(case: tuple[nn.Module, Tensor]) -> None:
    module, x = case

    def size_of_gradient(net: nn.Module) -> Tensor:
        first = torch.autograd.grad(net(x).pow(3).sum(), list(net.parameters()), create_graph=True)
        return torch.stack([g.square().sum() for g in first]).sum()

    second = torch.autograd.grad(size_of_gradient(module), list(module.parameters()))
    ends, h = list[Tensor](), 1e-5
    for sign in (1, -1):
        net, generator = copy.deepcopy(module), torch.Generator().manual_seed(2)
        change = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in net.parameters()]
        with torch.no_grad():
            for p, along in zip(net.parameters(), change, strict=True):
                p.add_(along, alpha=sign * h)
        ends.append(size_of_gradient(net))
    found = torch.stack([(g * along).sum() for g, along in zip(second, change, strict=True)]).sum()
    torch.testing.assert_close(found, (ends[0] - ends[1]).detach() / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", ["tall", "block rotation"], indirect=True)  # seconds each
def test_programs_are_whole(case: tuple[nn.Module, Tensor]) -> None:
    module, x = case
    expected = module(x)
    with pytest.warns(DeprecationWarning, match="trace"):
        traced: Any = torch.jit.trace(copy.deepcopy(module), (x,), check_trace=False)
    torch.testing.assert_close(traced(x), expected)
    torch.testing.assert_close(torch.export.export(module, (x,)).module()(x), expected)
    compiled: Any = torch.compile(copy.deepcopy(module), backend="aot_eager", fullgraph=True)
    found = compiled(x)
    torch.testing.assert_close(found, expected)
    weights = list(compiled.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(found.pow(3).sum(), weights),
        torch.autograd.grad(expected.pow(3).sum(), list(module.parameters())),
    )


def test_nearest_is_the_projection_and_haar_depends_on_the_seed() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(5, 5)
    expected = nearest_orthogonal(layer.weight.detach().double()).float()
    torch.testing.assert_close(orthogonal_(layer, init="nearest").detach(), expected)
    first = orthogonal_(layer, random_state=1).detach().clone()
    assert torch.equal(first, orthogonal_(layer, random_state=1))
    assert not torch.equal(first, orthogonal_(layer, random_state=2))
    other = nn.Linear(5, 5)
    assert not torch.equal(orthogonal_(layer), orthogonal_(other.weight))  # before, both were the matrix of seed 0


@each("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@each("init", ["haar", "nearest"])
def test_a_matrix_may_be_given_itself(dtype: torch.dtype, init: str) -> None:
    layer = nn.Linear(4, 6, dtype=dtype)
    for matrix in (layer.weight, torch.randn(4, 6).to(dtype), torch.eye(5, dtype=dtype).mul(3).requires_grad_()):
        assert orthogonal_(matrix, init=init) is matrix
        assert is_orthogonal(matrix)
    same = orthogonal_(nn.Linear(4, 6, dtype=dtype), random_state=torch.Generator().manual_seed(3))
    assert torch.equal(orthogonal_(layer.weight, random_state=torch.Generator().manual_seed(3)), same)


@each("function", [orthogonal_, orthogonal_parametrization])
def test_what_is_no_matrix_is_refused_by_name(function: Callable[[Any], object]) -> None:
    values = [np.eye(3), [nn.Parameter(torch.eye(3))], nn.Linear(3, 3).parameters(), {}, None, "weight"]
    tensors = [torch.eye(3, dtype=dtype) for dtype in (torch.long, torch.complex64)] + [torch.eye(3).to_sparse()]
    for wrong in (*values, *tensors):
        with pytest.raises(TypeError, match=r"^(module is a|the tensor (has dtype|is sparse))"):
            function(wrong)
    if function is orthogonal_:
        layer = nn.Linear(4, 3)
        for given, options, error, message in (
            (torch.zeros(3), {}, ValueError, "must be a matrix"),
            (torch.zeros(2, 3, 3), {}, ValueError, "a batch of matrices or a convolution"),
            (torch.eye(3), {"name": "bias"}, TypeError, "a tensor, which has no names"),
            (layer, {"name": "kernel"}, ValueError, r"name is 'kernel'.*which has: weight, bias"),
            (layer, {"name": "bias"}, ValueError, "batch of matrices"),
            (layer, {"init": "random"}, ValueError, "init is 'random'"),
            (torch.full((3, 3), torch.nan), {"init": "nearest"}, ValueError, "NaN or infinity"),
        ):
            with pytest.raises(error, match=message):
                orthogonal_(given, **options)


def test_parts_of_fully_sharded_parameters_are_refused_by_name() -> None:
    flat = pytest.importorskip("torch.distributed.fsdp._flat_param").FlatParameter(torch.zeros(9))
    with pytest.raises(TypeError, match=r"parameter 0 of group 0 is a FlatParameter .*ignored_modules="):
        RiemannianDescent([flat], 0.1)
    net = nn.Module()
    net.register_parameter("flat", flat)
    with pytest.raises(TypeError, match="flat is a FlatParameter"):
        orthogonal_optimizer(net, 0.1)
