"""Every optimizer, the mix and the parametrization on a GPU if one is there; on the CPU the contract tests do it."""

from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import (
    Adam,
    GivensDescent,
    RiemannianDescent,
    StochasticFlow,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
    orthogonal_parametrization,
)
from tests.contracts.test_optimizers import OPTIMIZERS
from tests.covering import each
from tests.orthogonal.steps import descend_along, point

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")


def descend(net: nn.Module, optimizer: Any) -> list[float]:
    X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0)).cuda()
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(X), X.roll(1, 1))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@cuda
@each("name", OPTIMIZERS)
@each("momentum", [0.0, Adam()])
def test_every_optimizer_descends_on_the_manifold(name: str, momentum: Any) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)).cuda()
    weights = [orthogonal_(layer, "weight", random_state=n) for n, layer in enumerate(net)]
    losses = descend(net, OPTIMIZERS[name](weights, 0.05, momentum=momentum))
    assert losses[-1] < losses[0]
    assert all(is_orthogonal(weight, 1e-4) for weight in weights)
    assert all(weight.device.type == "cuda" for weight in weights)


@cuda
def test_the_mix_and_the_parametrization() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6)).cuda()
    orthogonal_(net[0], "weight", random_state=0)
    orthogonal_parametrization(net[2])
    optimizer = orthogonal_optimizer(net, 0.05, others=lambda rest: torch.optim.AdamW(rest, lr=1e-2))
    losses = descend(net, optimizer)
    assert losses[-1] < losses[0]
    assert is_orthogonal(net[0].weight, 1e-4)
    assert is_orthogonal(net[2].weight, 1e-5)


UNSEEN = {
    "newton-schulz": lambda p: RiemannianDescent(p, 0.05, "newton-schulz", capturable=True, momentum=0.9),
    "givens random": lambda p: GivensDescent(p, 0.05, "random"),
    "givens random, 3 matchings": lambda p: GivensDescent(p, 0.05, "random", n_matchings=3, momentum=0.5),
    "givens random, Adam": lambda p: GivensDescent(p, 0.05, "random", momentum=Adam()),
    "flow pairs": lambda p: StochasticFlow(p, 0.01, 2, scale="none", momentum=Adam()),
}


@each("name", UNSEEN)
def test_steps_that_never_wait_for_the_device(name: str) -> None:
    """torch's simulated CUDA device, which knows shapes and devices but no values: to read a number is an error."""
    optimizer = UNSEEN[name]([nn.Parameter(torch.eye(6))])
    with FakeTensorMode(allow_non_fake_inputs=True):
        X, G = (torch.empty(3, 6, 6, device="cuda") for _ in range(2))
        for step in range(1, 3):
            optimizer._steps = step
            moved = optimizer._move(X, G, optimizer.param_groups[0], {"step": step})
            assert moved.device.type == "cuda"
            assert moved.shape == X.shape


@each("shape", [(6, 6), (9, 4), (3, 6, 6), (40, 40)])
@each("dtype", [torch.float32, torch.float64])
def test_capturable_steps_are_the_usual_ones_while_they_are_short(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    ends = []
    for capturable in (True, False):
        p = nn.Parameter(point(shape, 1, dtype))
        optimizer = RiemannianDescent([p], 0.01, "newton-schulz", momentum=0.5, capturable=capturable)
        descend_along(optimizer, [p], 5)
        ends.append(p.detach())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-4 if dtype == torch.float32 else 1e-9)


@each("lr", [1.0, 1e3, 1e10])
@each("shape", [(6, 6), (9, 4), (64, 64)])
def test_capturable_steps_stay_on_the_manifold_and_descend(shape: tuple[int, ...], lr: float) -> None:
    p, target = (nn.Parameter(haar_orthogonal(*shape, random_state=seed)) for seed in (1, 2))
    optimizer = RiemannianDescent([p], lr, "newton-schulz", capturable=True, check_finite=False)
    for _ in range(5):
        p.grad = (p - target).detach()
        optimizer.step()
        assert orthogonality_error(p) < 3e-5


def test_what_is_not_capturable() -> None:
    p = nn.Parameter(torch.eye(4))
    with pytest.raises(ValueError, match=r"capturable is True with retraction='qr'"):
        RiemannianDescent([p], 0.1, "qr", capturable=True)
    with pytest.raises(ValueError, match=r"capturable is True.*betas"):
        RiemannianDescent([p], 0.1, "newton-schulz", capturable=True, momentum=Adam())
