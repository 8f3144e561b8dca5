"""One optimizer for a whole network: the same steps as its parts, and everything that trainers ask of an optimizer."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, lr_scheduler

from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.orthogonal import (
    Adam,
    GivensDescent,
    MixedOptimizer,
    RiemannianDescent,
    StochasticFlow,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
)
from tests.covering import each
from tests.orthogonal.steps import gradient, point
from tests.refusals import each_refused


def network() -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(9, 6), nn.Tanh(), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 1)
    )
    for number in (0, 2, 4):
        orthogonal_(net[number], "weight", random_state=number)
    return net


def data(step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(20, 2, 4, generator=generator), torch.randn(20, 1, generator=generator)


def mixed(net: nn.Sequential, **options: Any) -> MixedOptimizer:
    optimizer = orthogonal_optimizer(
        net, 0.05, others=lambda rest: AdamW(rest, lr=1e-2), **{"momentum": 0.5, **options}
    )
    assert isinstance(optimizer, MixedOptimizer)
    return optimizer


def train(net: nn.Module, optimizers: list[Any], steps: int, first: int = 0, scheduler: Any = None) -> None:
    for step in range(first, first + steps):
        X, y = data(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        nn.functional.mse_loss(net(X), y).backward()
        for optimizer in optimizers:
            optimizer.step()
        if scheduler is not None:
            scheduler.step()


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def on_manifold(net: nn.Sequential) -> bool:
    return is_orthogonal(net[0].weight.flatten(1), 1e-4) and all(is_orthogonal(net[i].weight, 1e-4) for i in (2, 4))


def test_it_takes_the_steps_of_its_parts() -> None:
    one, parts = network(), network()
    optimizer = mixed(one)
    convolution, matrices = [parts[0].weight], [parts[2].weight, parts[4].weight]
    rest = [p for p in parts.parameters() if not any(p is q for q in convolution + matrices)]
    groups = [{"params": convolution, "layout": "convolution"}, {"params": matrices}]
    train(one, [optimizer], 6)
    train(
        parts,
        [
            RiemannianDescent([{**group, "by_angle": True} for group in groups], 0.05, "auto", momentum=0.5),
            AdamW(rest, lr=1e-2),
        ],
        6,
    )
    assert same(one, parts)
    assert on_manifold(one)
    assert not same(one, network())


def test_a_saved_one_and_copies_go_on_bit_for_bit() -> None:
    net, other = network(), network()
    optimizer, resumed = (mixed(of, method="givens", random_state=3) for of in (net, other))
    train(net, [optimizer], 3)
    other.load_state_dict(copy.deepcopy(net.state_dict()))
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    copies = [copy.deepcopy((net, optimizer)), pickle.loads(pickle.dumps((net, optimizer))), (other, resumed)]
    train(net, [optimizer], 3, 3)
    for twin, its_optimizer in copies:
        train(twin, [its_optimizer], 3, 3)
        assert same(net, twin)
    assert [group["lr"] for group in resumed.param_groups] == [0.05, 0.05, 1e-2]
    assert len(resumed.state) == len(list(net.parameters()))


@each("momentum", [0.5, Adam()])
def test_a_schedule_reaches_every_part_and_a_cycled_momentum_becomes_the_first_beta(momentum: Any) -> None:
    net = network()
    optimizer = mixed(net, momentum=momentum)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=9, base_momentum=0.6, max_momentum=0.8)
    train(net, [optimizer], 4, scheduler=scheduler)
    scheduled = optimizer.param_groups[0]["betas" if isinstance(momentum, Adam) else "momentum"]
    inside = [group["lr"] for part in optimizer.optimizers for group in part.param_groups]
    assert inside == [group["lr"] for group in optimizer.param_groups]
    assert len({*inside} | {0.05, 1e-2}) == 3
    optimizer.step()
    beta = optimizer.param_groups[-1]["betas"][0]
    assert 0.6 <= beta < 0.8
    assert beta == pytest.approx(scheduled[0] if isinstance(momentum, Adam) else scheduled)
    assert optimizer.param_groups[-1]["betas"][1] == 0.999


def test_a_refused_gradient_changes_nothing() -> None:
    net = network()
    weight = net[4].weight
    rest = [p for p in net.parameters() if p is not weight]
    optimizer = MixedOptimizer(AdamW(rest, lr=0.1), GivensDescent([weight], 0.1))  # the plain one is named first
    before = copy.deepcopy(net)
    for p in net.parameters():
        p.grad = torch.full_like(p, torch.nan if p is weight else 1.0)
    with pytest.raises(ValueError, match="NaN"):
        optimizer.step()
    assert same(net, before)


def test_grad_scaler_skips_what_overflows_and_goes_on() -> None:
    net = network()
    optimizer, scaler = mixed(net), torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(3):
        before = copy.deepcopy(net)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(data(step)[0]), data(step)[1])
        scaler.scale(loss * (float("inf") if step == 1 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
        assert same(net, before) == (step == 1)
    assert on_manifold(net)


def test_bad_input() -> None:
    net = network()
    optimizer, eye = mixed(net), [nn.Parameter(torch.eye(2))]
    plain, part = SGD(net.parameters(), 0.1), SGD(net[2].parameters(), 0.1)
    made = orthogonal_optimizer
    each_refused([
        (MixedOptimizer, ValueError, r"optimizers is empty.*RiemannianDescent"),
        (lambda: MixedOptimizer(torch.optim.LBFGS(net.parameters())), TypeError, r"optimizers\[0\] is a LBFGS"),
        (lambda: MixedOptimizer(plain, part), ValueError, "more than one parameter group"),
        (lambda: optimizer.load_state_dict(plain.state_dict()), ValueError,
         r"has 1 group; it must come from state_dict\(\) of a MixedOptimizer with 3"),
        (lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3))]}), ValueError,
         r"none of the optimizers inside.*inner.add_param_group"),
        (lambda: made(nn.Linear(5, 5), 0.1, others=AdamW), ValueError,
         r"none of the 1 trained matrices of the Linear is orthonormal.*orthogonal_"),
        (lambda: made(net, 0.1, others=plain), TypeError, "others is a SGD; type others=lambda rest"),
        (lambda: made(nn.Tanh(), 0.1), ValueError, "Tanh without matrices"),
        (lambda: made(torch.eye(3), 0.1), TypeError, "params is a Tensor; it must be a module or a list"),
        (lambda: made(eye, 0.1, method="adam"), ValueError, "method is 'adam'"),
        (lambda: made([net[6].weight], 0.1), ValueError, r"shape \(6, 1\), is not orthogonal"),
        (lambda: made([{"params": eye, "weight_decay": 1}], 0.1), TypeError, "weight_decay is no option .*: orth"),
        (lambda: made(eye, 0.1, betas=(0.9, 0.99)), TypeError, r"momentum=nk.orthogonal.Adam\(betas="),
        (lambda: made(eye, 0.1, method="flow", retraction="qr"), TypeError, "options are component_size"),
        (lambda: made(eye, 0.1, others=AdamW), TypeError, r"params is a list; with others= it must be the module"),
    ])  # fmt: skip


def test_choice() -> None:
    small = nn.Parameter(torch.eye(4))
    assert isinstance(orthogonal_optimizer([small], 0.1), RiemannianDescent)
    assert isinstance(orthogonal_optimizer([small], 0.1, method="givens", momentum=0.9), GivensDescent)
    flow = orthogonal_optimizer([small], 0.1, method="flow", component_size=3)
    assert isinstance(flow, StochasticFlow)
    assert flow.param_groups[0]["component_size"] == 3
    groups = [{"params": [nn.Parameter(torch.eye(3))], "lr": 0.5}, {"params": [small]}]
    assert [group["lr"] for group in orthogonal_optimizer(groups, 0.1).param_groups] == [0.5, 0.1]


@each(("shape", "momentum"), [((6, 6), 0.0), ((7, 3), 0.5), ((2, 4, 4), 0.9)])
def test_the_scale_of_the_objective_changes_no_step(shape: tuple[int, ...], momentum: float) -> None:
    ends = []
    for scale in (1.0, 1024.0, 1 / 1024):
        p = nn.Parameter(point(shape, 1))
        optimizer = orthogonal_optimizer([p], 0.1, momentum=momentum)
        for seed in range(4):
            p.grad = scale * gradient(p.shape, seed, p.dtype)
            before = p.detach().clone()
            optimizer.step()
            if seed == 0:  # the first step turns the columns by 0.1 radians, root mean square
                turned = float((p.detach() - before).square().sum(-2).mean()) ** 0.5
                assert turned == pytest.approx(0.1 * (1 - momentum), rel=0.02)
        ends.append(p.detach())
    assert torch.equal(ends[0], ends[1])
    assert torch.equal(ends[0], ends[2])


@each("shape", [(6, 6), (7, 3), (2, 80, 70)])
def test_one_spike_of_the_gradient_does_not_stop_training(shape: tuple[int, ...]) -> None:
    target = point(shape, 1)
    p = nn.Parameter(nearest_orthogonal(target + 0.02 * gradient(shape, 2)))
    optimizer, before = orthogonal_optimizer([p], 0.02), float((p.detach() - target).norm())
    for step in range(60):
        p.grad = (p.detach() - target) * (1e6 if step == 10 else 1)
        optimizer.step()
    assert float((p.detach() - target).norm()) < before / 100


def test_a_module_alone_trains_its_matrices_which_all_must_be_orthonormal() -> None:
    net = network()
    with pytest.warns(UserWarning, match=r"0.bias, 2.bias, 4.bias will not be trained; type others="):
        optimizer = orthogonal_optimizer(net[:5], 0.1)
    before = [p.detach().clone() for p in net[:5].parameters()]
    for step in range(3):
        optimizer.zero_grad()
        net[:5](data(step)[0])[:, 0].exp().mean().backward()
        optimizer.step()
    moved = [name for (name, p), b in zip(net[:5].named_parameters(), before, strict=True) if not torch.equal(p, b)]
    assert moved == ["0.weight", "2.weight", "4.weight"]
    assert on_manifold(net)
