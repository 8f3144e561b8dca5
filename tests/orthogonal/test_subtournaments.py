"""Subtournaments by enumeration at small d: counts, laws, unbiasedness, variances."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from nearkin.linalg.skew import random_skew
from nearkin.orthogonal.matching import uniform_components
from nearkin.orthogonal.stochastic_flow import (
    WEIGHTS,
    direct_components,
    kept_weight,
    regular_scale,
    resolve_component_size,
    uniform_scale,
)

Member = frozenset[frozenset[int]]


def members(d: int, s: int) -> list[Member]:
    """All of T_s, in no order: sets of floor(d/s) disjoint components of s vertices."""

    def deal(rest: tuple[int, ...], left: int) -> Iterator[list[frozenset[int]]]:
        if left == 0:
            yield []
            return
        for component in itertools.combinations(rest, s):
            # components are listed by their least vertex, so that each set of them comes once; smaller ones rest
            later = tuple(v for v in rest if v not in component and v > component[0])
            for others in deal(later, left - 1):
                yield [frozenset(component), *others]

    return [frozenset(parts) for parts in deal(tuple(range(d)), d // s)]


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


@pytest.mark.parametrize(("d", "s"), [(4, 2), (6, 2), (6, 3), (6, 6), (7, 2), (7, 3), (5, 4), (8, 4)])
def test_counts_are_those_of_lemma_9_3(d: int, s: int) -> None:
    family = members(d, s)
    total, holding = count_members(d, s)
    assert len(set(family)) == len(family) == total
    assert sum(any({0, 1} <= part for part in member) for member in family) == holding
    assert uniform_scale(d, s) == pytest.approx(total / holding)
    if d % s == 0:
        assert uniform_scale(d, s) == pytest.approx((d - 1) / (s - 1))


@pytest.mark.parametrize(("d", "s"), [(6, 2), (6, 3), (7, 3), (6, 6)])
def test_uniform_estimate_by_enumeration(d: int, s: int) -> None:
    Omega = random_skew(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    estimates = torch.stack([uniform_scale(d, s) * kept(Omega, as_components(m)) for m in members(d, s)])
    torch.testing.assert_close(estimates.mean(0), Omega)
    variance = float((estimates - Omega).square().sum((1, 2)).mean())
    expected = (uniform_scale(d, s) - 1) * float(Omega.square().sum())  # (d - s) / (s - 1) ||Omega||^2 if s divides d
    assert variance == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("h", WEIGHTS)
@pytest.mark.parametrize(("d", "s"), [(6, 2), (6, 3), (7, 3)])
def test_regular_estimate_by_enumeration(h: str, d: int, s: int) -> None:
    Omega = random_skew(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
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


@pytest.mark.parametrize(
    ("sampler", "h", "d"),
    [
        ("uniform", "abs", 6),
        ("uniform", "abs", 7),
        ("direct", "abs", 7),
        ("direct", "square", 6),
    ],
)
def test_samplers_draw_from_the_law(sampler: str, h: str, d: int) -> None:
    s, n = 3, 1500
    Omega = random_skew(d, d, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    Omega = Omega.sign() * (2 + Omega.abs())
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
