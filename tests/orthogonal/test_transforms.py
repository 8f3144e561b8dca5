"""Parametrized weights take part in what torch does with functions and programs, as torch's own `orthogonal` does."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd, jacrev, vmap

import nearkin as nk
from nearkin.linalg.orthonormal import orthogonality_error


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
        for one, other in zip(found.values(), expected, strict=True):
            torch.testing.assert_close(one, other)


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
    for one, other in zip(
        torch.autograd.grad(found.pow(3).sum(), weights),
        torch.autograd.grad(expected.pow(3).sum(), list(module.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_a_weight_off_the_manifold_is_projected_under_a_transform() -> None:
    layer = nn.Linear(4, 7).double()
    nk.orthogonal.orthogonal_parametrization(layer)
    P = layer.parametrizations["weight"].original.detach().clone() + 0.05  # type: ignore[index]
    found = vmap(lambda w: layer.parametrizations["weight"][0](w))(P[None])[0]  # type: ignore[index]
    assert orthogonality_error(found) < 1e-12
    torch.testing.assert_close(found.mT @ P, (found.mT @ P).mT)  # the polar factor: what is left is symmetric
