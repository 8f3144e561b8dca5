"""Stochastic flow: one step is eq. 8, its mean is the exact step to first order, and families live and are rebuilt."""

import pytest
import torch
from torch import nn

from nearkin.linalg.skew import left_skew
from nearkin.orthogonal import RiemannianDescent, StochasticFlow
from nearkin.orthogonal.matching import uniform_components
from nearkin.orthogonal.stochastic_flow import uniform_scale
from tests.orthogonal.steps import first_draws, problem, stepped


@pytest.mark.parametrize("s", [2, 3, 7])
@pytest.mark.parametrize("k", [7, 3])
@pytest.mark.parametrize("scale", ["unbiased", "none"])
def test_one_step_is_the_exponential_of_the_sampled_blocks(s: int, k: int, scale: str) -> None:
    X, G = problem(7, k)
    components = uniform_components(7, s, first_draws(4))
    Omega, kept = left_skew(X, G), torch.zeros(7, 7, dtype=torch.float64)
    for part in components:
        kept[part[:, None], part[None, :]] = Omega[part[:, None], part[None, :]]
    factor = uniform_scale(7, s) if scale == "unbiased" else 1.0
    expected = torch.matrix_exp(-0.01 * factor * kept) @ X
    found = stepped(StochasticFlow, X, G, 0.01, component_size=s, scale=scale, random_state=4)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)  # torch.matrix_exp is good to 3e-11


def test_one_component_is_the_exact_method() -> None:
    X, G = problem(6, 6)
    p = nn.Parameter(X.clone())
    p.grad = G
    RiemannianDescent([p], 0.05, "exp").step()
    torch.testing.assert_close(stepped(StochasticFlow, X, G, 0.05, component_size=6), p.detach(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"component_size": 2},
        {"component_size": 3},
        {"component_size": 3, "sampling": "abs"},
        {"component_size": 2, "sampling": "square"},
        {"component_size": 2, "sampling": "importance"},
    ],
    ids=str,
)
def test_the_mean_step_is_the_exact_one(options: dict) -> None:
    X, G = problem(6, 6)
    lr, n = 1e-5, 800  # matrices of one batch; each has its own draw
    mean = stepped(StochasticFlow, X.expand(n, 6, 6), G.expand(n, 6, 6), lr, **options).mean(0)
    exact = -lr * left_skew(X, G) @ X
    assert float((mean - X - exact).norm()) < 0.2 * float(exact.norm())


def test_bad_input() -> None:
    params = [nn.Parameter(torch.eye(5))]
    for size, kind, message in (
        (1, ValueError, "component_size is 1"),
        (6, ValueError, "component_size is 6; it must be at most 5"),
        ("log d", ValueError, "'d/log d'"),
        (2.5, TypeError, r"component_size is 2\.5"),
    ):
        with pytest.raises(kind, match=message):
            StochasticFlow(params, 0.1, size)
    with pytest.raises(ValueError, match="sampling is 'max'"):
        StochasticFlow(params, 0.1, sampling="max")
    with pytest.raises(ValueError, match="with sampling='importance'; it must be 2"):
        StochasticFlow(params, 0.1, 3, "importance")
    with pytest.raises(ValueError, match="scale is 'mean'"):
        StochasticFlow(params, 0.1, scale="mean")
