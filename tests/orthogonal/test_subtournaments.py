"""Subtournaments by enumeration at small d: counts, laws, unbiasedness, variances."""

import itertools
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
from tests.reference.subtournaments import count_members, estimate_norm, rejection_components

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


@pytest.fixture
def Omega() -> torch.Tensor:
    return random_skew(6, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


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
        ("rejection", "square", 7),
        ("rejection II", "abs", 6),
    ],
)
def test_samplers_draw_from_the_law(sampler: str, h: str, d: int) -> None:
    s, n = 3, 1500
    Omega = random_skew(d, d, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    Omega = Omega.sign() * (2 + Omega.abs())  # balanced enough for version II
    Omega[0, 1], Omega[1, 0] = 7, -7
    H = WEIGHTS[h](Omega)
    generator = torch.Generator().manual_seed(1)
    draw = {
        "uniform": lambda: uniform_components(d, s, generator),
        "direct": lambda: direct_components(H, s, generator),
        "rejection": lambda: rejection_components(H, s, generator),
        "rejection II": lambda: rejection_components(H, s, generator, alpha=0.9, beta=0.8),
    }[sampler]
    seen = Counter(as_member(draw()) for _ in range(n))
    weights = {m: 1.0 if sampler == "uniform" else float(kept_weight(H, as_components(m))) for m in members(d, s)}
    total = sum(weights.values())
    assert set(seen) <= set(weights)
    distance = sum(abs(seen[m] / n - weight / total) for m, weight in weights.items()) / 2
    noise = 0.4 * sum((w / total / n) ** 0.5 for w in weights.values())  # its mean under the right law
    assert distance < 1.4 * noise, f"total variation {distance:.4f}, noise {noise:.4f}"
    if sampler != "uniform":  # the test can tell the laws apart
        other = sum(abs(1 / len(weights) - weight / total) for weight in weights.values()) / 2
        assert other > 1.4 * noise or h == "abs"


def test_version_two_says_when_omega_is_not_balanced(Omega: torch.Tensor) -> None:
    Omega[0, 1], Omega[1, 0] = 100, -100
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match=r"not \(alpha, beta\)-balanced"):
        [rejection_components(Omega.abs(), 2, generator, alpha=1.0, beta=1.0) for _ in range(50)]
    with pytest.raises(ValueError, match="give both"):
        rejection_components(Omega.abs(), 2, torch.Generator(), alpha=0.5)


def test_a_zero_omega_is_sampled_uniformly() -> None:
    H, generator = torch.zeros(6, 6), torch.Generator().manual_seed(0)
    for sample in (direct_components, rejection_components):
        assert len({as_member(sample(H, 2, generator)) for _ in range(200)}) == 15
    assert regular_scale(H, torch.tensor([[0, 1], [2, 3], [4, 5]])) == pytest.approx(5)


def test_the_norm_from_few_entries_is_unbiased(Omega: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(0)

    def entries(pairs: torch.Tensor) -> torch.Tensor:
        return Omega[pairs[:, 0], pairs[:, 1]].abs()

    estimates = torch.tensor([estimate_norm(entries, 6, 100, generator) for _ in range(400)])
    assert float(estimates.mean()) == pytest.approx(float(Omega.abs().sum()), rel=0.02)


def test_component_sizes() -> None:
    assert resolve_component_size("d/log d", 512) == 83
    assert resolve_component_size("d/log d", 2) == 2
    assert resolve_component_size(5, 5) == 5
    with pytest.raises(ValueError, match="component_size is 1"):
        resolve_component_size(1, 5)
    with pytest.raises(ValueError, match="component_size is 6; it must be at most 5"):
        resolve_component_size(6, 5)
    with pytest.raises(ValueError, match="'d/log d'"):
        resolve_component_size("log d", 5)
    with pytest.raises(TypeError, match=r"component_size is 2\.5"):
        resolve_component_size(2.5, 5)  # type: ignore[arg-type]
