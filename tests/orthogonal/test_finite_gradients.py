"""How often gradients are looked at: always, every so many steps, never."""

from typing import Any

import pytest
import torch
from torch import nn

from nearkin.orthogonal import SGDG, Adam, GivensDescent, RiemannianDescent, StochasticFlow, orthogonal_optimizer

FAMILIES = {
    "riemannian": lambda p, when: RiemannianDescent(p, 0.1, "newton-schulz", check_finite=when),
    "flow": lambda p, when: StochasticFlow(p, 0.1, 3, scale="none", check_finite=when),
    "givens": lambda p, when: GivensDescent([{"params": p, "check_finite": when}], 0.1),
    "chosen": lambda p, when: orthogonal_optimizer(p, 0.1, check_finite=when),
    "chosen givens": lambda p, when: orthogonal_optimizer(p, 0.1, method="givens", check_finite=when),
}


@pytest.mark.parametrize(("when", "seen"), [(True, 1), ("every 3", 3), ("every 1", 1)])
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_bad_gradient_is_seen_when_it_is_looked_at(name: str, when: Any, seen: int, count: int) -> None:
    params = [nn.Parameter(torch.eye(6)) for _ in range(count)]
    optimizer = FAMILIES[name](params, when)
    for p in params:
        p.grad = torch.ones(6, 6)
    for _ in range(seen - 1):
        optimizer.step()
    before = params[-1].detach().clone()
    params[-1].grad = torch.full((6, 6), torch.nan)
    with pytest.raises(ValueError, match=f"gradient of parameter {count - 1}.*NaN"):
        optimizer.step()
    assert torch.equal(params[-1].detach(), before)


def test_without_looks_a_nan_goes_into_the_parameters_or_is_a_step_that_is_not_finite() -> None:
    p = nn.Parameter(torch.eye(6))
    optimizer = RiemannianDescent([p], 0.1, "newton-schulz", check_finite=False)
    p.grad = torch.full((6, 6), torch.nan)
    with pytest.raises(ValueError, match="step is not finite"):
        optimizer.step()
    assert torch.equal(p.detach(), torch.eye(6))


def test_a_sparse_gradient_is_refused_without_looks_too() -> None:
    p = nn.Parameter(torch.eye(4))
    optimizer = RiemannianDescent([p], 0.1, check_finite=False)
    p.grad = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match=r"parameter 0 is sparse.*dense"):
        optimizer.step()


@pytest.mark.parametrize("value", ["every 0", "every", "every x", "always", 3, None, "every -1"])
def test_what_is_no_option(value: Any) -> None:
    with pytest.raises(ValueError, match=r"check_finite is .*'every 100'"):
        RiemannianDescent([nn.Parameter(torch.eye(3))], 0.1, check_finite=value)


def test_state_of_an_optimizer_without_the_option_loads() -> None:
    p = nn.Parameter(torch.eye(4))
    optimizer = RiemannianDescent([p], 0.1)
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["check_finite"]
    optimizer.load_state_dict(saved)
    p.grad = torch.full((4, 4), torch.nan)
    with pytest.raises(ValueError, match="NaN"):
        optimizer.step()


COMPILED = {
    "givens": lambda p: GivensDescent(p, 0.1, "random"),
    "greedy": lambda p: GivensDescent(p, 0.1, "greedy"),
    "taylor": lambda p: RiemannianDescent(p, 0.1, "auto", momentum=0.5),
    "sgdg": lambda p: SGDG(p, 0.1, 0.9, stiefel=True),
}


@pytest.mark.parametrize("name", [*COMPILED, "taylor, thin"])
@pytest.mark.parametrize("d", [1, 5, 6])
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


@pytest.mark.parametrize("make", [GivensDescent, lambda p, **o: RiemannianDescent(p, retraction="auto", **o)])
def test_training_after_a_refused_gradient_is_training_without_it(make: Any) -> None:
    """The step's number too, which corrects Adam's averages: after a fourth step they are still far from settled."""
    ends = []
    for bad in (False, True):
        p = nn.Parameter(torch.eye(5, dtype=torch.float64))
        optimizer, generator = make([p], lr=0.05, momentum=Adam()), torch.Generator().manual_seed(0)
        for step in range(6):
            if bad and step == 4:
                p.grad = torch.full_like(p, torch.nan)
                with pytest.raises(ValueError, match="NaN"):
                    optimizer.step()
            p.grad = torch.randn(5, 5, generator=generator, dtype=torch.float64)
            optimizer.step()
        ends.append(p.detach())
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("name", COMPILED)
def test_autograd_sees_that_a_compiled_step_has_changed_the_parameter(name: str) -> None:
    p = nn.Parameter(torch.eye(4))
    loss = (p**3).sum()
    loss.backward(retain_graph=True)
    COMPILED[name]([p]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
