"""What all optimizers share: parameters of one shape move as one batch, by the steps of the loop over them; moments
turn with the point; gradients are looked at always, every so many steps, or never."""

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from nearkin.orthogonal import Adam, GivensDescent, RiemannianDescent, StochasticFlow, orthogonal_optimizer
from nearkin.orthogonal.optimizer import as_tall, from_tall
from nearkin.orthogonal.retraction import RETRACTIONS
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point

SHAPES = [(5, 5), (6, 3), (3, 6), (2, 5, 5), (2, 3, 6, 3), (2, 3, 6), (1, 1)]


def network(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    """Three parameters of every shape."""
    return [nn.Parameter(point(shape, 7 * n + 1, dtype)) for n in range(3) for shape in SHAPES]


def train(optimizer: Any, params: list[nn.Parameter], steps: int, first: int = 0) -> None:
    for step in range(first, first + steps):
        for number, p in enumerate(params):
            p.grad = gradient(p.shape, 100 * step + number, p.dtype)
            if step == 1 and number == 0:
                p.grad = None  # one step behind the others from here on
        optimizer.step()


def same(ours: Any, joined: list[nn.Parameter], loop: Any, single: list[nn.Parameter], near: float) -> None:
    """Both hold the same points and moments."""
    for a, b in zip(joined, single, strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=0, atol=near)
        assert ours.state[a].keys() == loop.state[b].keys()
        for name, value in ours.state[a].items():
            torch.testing.assert_close(value, loop.state[b][name], rtol=0, atol=10 * near)


@each(("retraction", "momentum"), zip(RETRACTIONS, itertools.cycle([0.0, 0.7, Adam()]), strict=False))
def test_a_batch_of_parameters_is_the_loop(retraction: str, momentum: Any) -> None:
    joined, single = network(), network()
    options = {"momentum": momentum, "stabilize_every": 3}
    ours = RiemannianDescent(joined, 0.02, retraction, **options)
    loop = RiemannianDescent(single, 0.02, retraction, foreach=False, **options)
    train(ours, joined, 5)
    train(loop, single, 5)
    same(ours, joined, loop, single, 1e-10)


COORDINATES = {
    "givens random": lambda p, **o: GivensDescent(p, 0.02, "random", **o),
    "givens random, 2 matchings": lambda p, **o: GivensDescent(p, 0.02, "random", n_matchings=2, **o),
    "givens greedy": lambda p, **o: GivensDescent(p, 0.02, "greedy", **o),
    "flow pairs": lambda p, **o: StochasticFlow(p, 0.02, 2, scale="none", **o),
    "flow blocks": lambda p, **o: StochasticFlow(p, 0.02, 3, scale="none", **o),
    "flow importance": lambda p, **o: StochasticFlow(p, 0.01, 2, "importance", **o),
}


@each(("name", "shape", "momentum"), covering([*COORDINATES], [(6, 6), (7, 4), (4, 7), (2, 6, 6)], [0.0, 0.7, Adam()]))
def test_coordinate_steps_of_a_batch_are_the_loop(name: str, momentum: Any, shape: tuple[int, ...]) -> None:
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(point(shape, seed)) for seed in range(3)]
        optimizer = COORDINATES[name]([{"params": params, "foreach": foreach}], momentum=momentum, stabilize_every=3)
        for step in range(4):
            for number, p in enumerate(params):
                p.grad = gradient(shape, 100 * step + number)
            optimizer.step()
        ends += [optimizer, params]
    same(*ends, 1e-12)


def test_convolutions_are_joined_too() -> None:
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(point((4, 18), seed).reshape(4, 2, 3, 3)) for seed in range(3)]
        optimizer = RiemannianDescent(params, 0.05, "qr", momentum=0.5, layout="convolution", foreach=foreach)
        train(optimizer, params, 4)
        ends += [optimizer, params]
    same(*ends, 1e-12)


def test_gradients_are_tested_together_and_named_one_by_one() -> None:
    params = [nn.Parameter(torch.eye(3)) for _ in range(4)]
    optimizer, before = RiemannianDescent(params, 0.1), [p.detach().clone() for p in params]
    for bad, message in ((torch.nan, "gradient of parameter 2.*NaN"), (1e38, "gradient of parameter 2.*as large as")):
        for p in params:
            p.grad = torch.ones(3, 3)
        params[2].grad = torch.full((3, 3), bad)
        with pytest.raises(ValueError, match=message):
            optimizer.step()
        assert all(torch.equal(p, b) for p, b in zip(params, before, strict=True))
    for p in params:  # each is fine, only their common norm is not
        p.grad = torch.full((3, 3), 9e18) * torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 0]])
    optimizer.step()


@each("shape", [(5, 2), (2, 5), (4, 4), (2, 4, 4), (3, 5, 2), (3, 2, 5), (2, 3, 2, 5)])
def test_a_matrix_or_a_batch_is_seen_tall_and_written_back(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p)
    assert X.shape[-2:] == ((4, 4) if shape[-1] == 4 else (5, 2))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() + 1, p, "matrix"), kept + 1)


@each("shape", [(4, 2, 3, 3), (20, 2, 3, 3)])
def test_a_kernel_is_its_window_times_channels(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p, "convolution")
    assert X.shape == (1, max(shape[0], 18), min(shape[0], 18))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() * 2, p, "convolution"), kept * 2)


TURNING = {
    "flow, s = 2": lambda p, **kw: StochasticFlow(p, 0.1, 2, scale="none", **kw),
    "flow, s = 3": lambda p, **kw: StochasticFlow(p, 0.1, 3, scale="none", **kw),
    "givens, rows": lambda p, **kw: GivensDescent(p, 0.1, "random", **kw),
    "givens, columns": lambda p, **kw: GivensDescent(p, 0.1, "greedy", **kw),
}


@each("moments", [{"momentum": 0.7}, {"momentum": Adam((0.7, 0.9))}])
@each("name", TURNING)
def test_the_buffer_turns_with_the_point(name: str, moments: dict) -> None:
    """X <- T X (X T for columns) and M <- T (0.7 M + G): a buffer left behind would point along old axes."""
    generator, M = torch.Generator().manual_seed(1), torch.zeros(6, 6, dtype=torch.float64)
    p = torch.nn.Parameter(torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))[0])
    optimizer = TURNING[name]([p], **moments)
    share = 1.0 if moments["momentum"] == 0.7 else 1 - 0.7
    for _ in range(4):
        before = p.detach().clone()
        p.grad = torch.randn(6, 6, generator=generator, dtype=torch.float64)
        optimizer.step()
        turn = p.detach() @ before.T if "columns" not in name else before.T @ p.detach()
        assert float((turn - torch.eye(6)).norm()) > 0.05, "a step that turns something"
        M = 0.7 * M + share * p.grad
        M = turn @ M if "columns" not in name else M @ turn
        torch.testing.assert_close(optimizer.state[p]["momentum"].reshape(6, 6), M, rtol=1e-9, atol=1e-12)


FAMILIES = {
    "riemannian": lambda p, when: RiemannianDescent(p, 0.1, "newton-schulz", check_finite=when),
    "flow": lambda p, when: StochasticFlow(p, 0.1, 3, scale="none", check_finite=when),
    "givens": lambda p, when: GivensDescent([{"params": p, "check_finite": when}], 0.1),
    "chosen": lambda p, when: orthogonal_optimizer(p, 0.1, check_finite=when),
    "chosen givens": lambda p, when: orthogonal_optimizer(p, 0.1, method="givens", check_finite=when),
}


@each(("when", "seen"), [(True, 1), ("every 3", 3), ("every 1", 1)])
@each("name", FAMILIES)
@each("count", [1, 2])
def test_a_bad_gradient_is_seen_when_it_is_looked_at(name: str, when: Any, seen: int, count: int) -> None:
    params = [nn.Parameter(torch.eye(6)) for _ in range(count)]
    optimizer = FAMILIES[name](params, when)
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


COMPILED = {
    "givens": lambda p: GivensDescent(p, 0.1, "random"),
    "greedy": lambda p: GivensDescent(p, 0.1, "greedy"),
    "taylor": lambda p: RiemannianDescent(p, 0.1, "auto", momentum=0.5),
}


@each("name", [*COMPILED, "taylor, thin"])
@each("d", [1, 5, 6])
def test_a_compiled_step_finds_one_bad_entry_of_its_gradient_before_it_changes_anything(name: str, d: int) -> None:
    for row in range(d):
        p = nn.Parameter(torch.eye(d + ("thin" in name), d))
        optimizer = COMPILED[name.split(",")[0]]([p])
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
    COMPILED[name]([p]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
