"""Stochastic flow: one step is eq. 8, its mean is the exact step to first order; subtournaments by enumeration;
unbiased importance sampling, with the variance of Lemma 9.7 where each edge is counted twice."""

import itertools
import math
from collections import Counter

import pytest
import torch
from torch import nn

from nearkin.linalg.skew import left_skew
from nearkin.orthogonal import StochasticFlow
from nearkin.orthogonal.matching import round_robin, uniform_components
from nearkin.orthogonal.stochastic_flow import (
    WEIGHTS,
    direct_components,
    kept_weight,
    optimal_probabilities,
    regular_scale,
    resolve_component_size,
    uniform_scale,
)
from tests.covering import each
from tests.orthogonal.steps import first_draws, problem, stepped
from tests.reference.tangent import random_skew


@each("s", [2, 3, 7])
@each("k", [7, 3])
@each("scale", ["unbiased", "none"])
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


def test_bad_input() -> None:
    for options, error, message in (
        ({"component_size": 1}, ValueError, "component_size is 1"),
        ({"component_size": 6}, ValueError, "component_size is 6; it must be at most 5"),
        ({"component_size": "log d"}, ValueError, "'d/log d'"),
        ({"component_size": 2.5}, TypeError, r"component_size is 2\.5"),
        ({"sampling": "max"}, ValueError, "sampling is 'max'"),
        ({"component_size": 3, "sampling": "importance"}, ValueError, "with sampling='importance'; it must be 2"),
        ({"scale": "mean"}, ValueError, "scale is 'mean'"),
    ):
        with pytest.raises(error, match=message):
            StochasticFlow([nn.Parameter(torch.eye(5))], 0.1, **options)


Member = frozenset[frozenset[int]]


def skew(d: int) -> torch.Tensor:
    return random_skew(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)


def members(d: int, s: int) -> set[Member]:
    """All of T_s: sets of floor(d/s) disjoint components of s vertices."""
    firsts = range(0, d - s + 1, s)
    orders = itertools.permutations(range(d))
    return {frozenset(frozenset(order[first : first + s]) for first in firsts) for order in orders}


def as_member(components: torch.Tensor) -> Member:
    return frozenset(frozenset(row) for row in components.tolist())


def as_components(member: Member) -> torch.Tensor:
    return torch.tensor([sorted(part) for part in member])


def kept(Omega: torch.Tensor, components: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros_like(Omega)
    for part in components:
        mask[part[:, None], part[None, :]] = 1
    return Omega * mask


def count_members(d: int, s: int) -> tuple[int, int]:
    """|T_s| and how many members hold a given edge (Lemma 9.3; here also for s that does not divide d)."""
    components, rest = divmod(d, s)
    members = math.factorial(d) // (math.factorial(s) ** components * math.factorial(components) * math.factorial(rest))
    return members, members * components * s * (s - 1) // (d * (d - 1))


@each(("d", "s"), [(4, 2), (6, 2), (6, 3), (6, 6), (7, 2), (7, 3), (5, 4)])
def test_counts_are_those_of_lemma_9_3(d: int, s: int) -> None:
    family = members(d, s)
    total, holding = count_members(d, s)
    assert len(family) == total
    assert sum(any({0, 1} <= part for part in member) for member in family) == holding
    assert uniform_scale(d, s) == pytest.approx(total / holding)
    if d % s == 0:
        assert uniform_scale(d, s) == pytest.approx((d - 1) / (s - 1))


@each("h", WEIGHTS)
@each(("d", "s"), [(6, 2), (6, 3), (7, 3)])
def test_regular_estimate_by_enumeration(h: str, d: int, s: int) -> None:
    Omega = skew(d)
    H = WEIGHTS[h](Omega)
    _, W = count_members(d, s)
    mean, variance, total = torch.zeros_like(Omega), 0.0, 0.0
    for member in members(d, s):
        components = as_components(member)
        p = 2 * float(kept_weight(H, components)) / (W * float(H.sum()))  # Lemma 3.5
        estimate = regular_scale(H, components) * kept(Omega, components)
        mean, variance, total = mean + p * estimate, variance + p * float((estimate - Omega).square().sum()), total + p
    assert total == pytest.approx(1)
    torch.testing.assert_close(mean, Omega)
    uniform = (uniform_scale(d, s) - 1) * float(Omega.square().sum())
    if h == "square":  # Lemma 9.5: nothing is gained
        assert variance == pytest.approx(uniform)
    else:
        assert variance != pytest.approx(uniform, rel=1e-3)


@each(
    ("sampler", "h", "d"), [("uniform", "abs", 6), ("uniform", "abs", 7), ("direct", "abs", 7), ("direct", "square", 6)]
)
def test_samplers_draw_from_the_law(sampler: str, h: str, d: int) -> None:
    s, n = 3, 800
    Omega = skew(d).sign() * (2 + skew(d).abs())
    Omega[0, 1], Omega[1, 0] = 7, -7
    H = WEIGHTS[h](Omega)
    generator = torch.Generator().manual_seed(1)
    uniform = sampler == "uniform"
    draws = (uniform_components(d, s, generator) if uniform else direct_components(H, s, generator) for _ in range(n))
    seen = Counter(as_member(drawn) for drawn in draws)
    weights = {m: 1.0 if uniform else float(kept_weight(H, as_components(m))) for m in members(d, s)}
    total = sum(weights.values())
    assert set(seen) <= set(weights)
    distance = sum(abs(seen[m] / n - weight / total) for m, weight in weights.items()) / 2
    noise = 0.4 * sum((w / total / n) ** 0.5 for w in weights.values())  # its mean under the right law
    assert distance < 1.4 * noise, f"total variation {distance:.4f}, noise {noise:.4f}"
    if not uniform:  # the test can tell the laws apart
        other = sum(abs(1 / len(weights) - weight / total) for weight in weights.values()) / 2
        assert other > 1.4 * noise or h == "abs"


def test_a_zero_omega_is_sampled_uniformly() -> None:
    H, generator = torch.zeros(6, 6), torch.Generator().manual_seed(0)
    assert len({as_member(direct_components(H, 2, generator)) for _ in range(200)}) == 15
    assert regular_scale(H, torch.tensor([[0, 1], [2, 3], [4, 5]])) == pytest.approx(5)


def test_component_sizes() -> None:
    assert resolve_component_size("d/log d", 512) == 83
    assert resolve_component_size("d/log d", 2) == 2
    assert resolve_component_size(5, 5) == 5


@each("d", [2, 3, 6, 7, 12])
def test_every_edge_stands_in_one_of_the_fewest_matchings(d: int) -> None:
    schedule = round_robin(d)
    assert schedule.shape == (d - 1 + d % 2, d // 2, 2)
    assert sorted(map(tuple, schedule.flatten(0, 1).tolist())) == [(i, j) for i in range(d) for j in range(i + 1, d)]
    for pairs in schedule:
        assert len(pairs.unique()) == pairs.numel() > 0


@each("d", [6, 7])
def test_unbiased_and_least_variance(d: int) -> None:
    Omega, parts = skew(d), round_robin(d)
    p = optimal_probabilities(Omega, parts)
    estimates = torch.stack([kept(Omega, pairs) / float(q) for pairs, q in zip(parts, p, strict=True)])
    torch.testing.assert_close((p[:, None, None] * estimates).sum(0), Omega)

    def variance(q: torch.Tensor) -> float:
        norms = torch.stack([kept(Omega, pairs).square().sum() for pairs in parts])
        return float((norms / q).sum() - Omega.square().sum())

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        other = p * (1 + 0.3 * torch.rand(len(p), generator=generator, dtype=torch.float64))
        assert variance(p) <= variance(other / other.sum())


@each("size", [1e-12, 1e12])
def test_the_law_does_not_depend_on_the_gradients_unit(size: float) -> None:
    Omega, parts = skew(6), round_robin(6)
    law = optimal_probabilities(Omega, parts)
    assert float(law.max()) > 1.2 * float(law.min()), "a law that is not uniform"
    torch.testing.assert_close(optimal_probabilities(size * Omega, parts), law)
    torch.testing.assert_close(optimal_probabilities(0 * Omega, parts), torch.full_like(law, 1 / 5))


@each("d", [6, 7])
def test_lemma_9_7_counts_each_edge_twice(d: int) -> None:
    Omega = skew(d)
    parts = round_robin(d)
    values = Omega[parts[..., 0], parts[..., 1]]  # of each matching
    weights = values.abs().sum(1)  # K(e)
    K, norm = float(weights.sum()), float(Omega.square().sum())
    errors = torch.stack([K / k * kept(Omega, pairs) - Omega for k, pairs in zip(weights, parts, strict=True)])
    variance = float((weights / K * errors.square().sum((1, 2))).sum())
    edges = float((values.square().sum(1) / weights).sum())
    assert variance == pytest.approx(2 * K * edges - norm)
    assert variance != pytest.approx(K * edges - norm, rel=0.1)  # as printed
