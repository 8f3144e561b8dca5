"""Importance sampling of matchings: unbiased, and the variance of Lemma 9.7 with each edge counted twice."""

import pytest
import torch

from nearkin.linalg.skew import random_skew
from nearkin.orthogonal.matching import round_robin
from nearkin.orthogonal.stochastic_flow import draw_matching, optimal_probabilities


def skew(d: int) -> torch.Tensor:
    return random_skew(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)


def estimate(Omega: torch.Tensor, pairs: torch.Tensor, scale: float) -> torch.Tensor:
    result = torch.zeros_like(Omega)
    i, j = pairs.unbind(-1)
    result[i, j], result[j, i] = scale * Omega[i, j], scale * Omega[j, i]
    return result


@pytest.mark.parametrize("d", [2, 3, 6, 7, 12])
def test_every_edge_stands_in_one_of_the_fewest_matchings(d: int) -> None:
    schedule = round_robin(d)
    assert schedule.shape == (d - 1 + d % 2, d // 2, 2)
    assert sorted(map(tuple, schedule.flatten(0, 1).tolist())) == [(i, j) for i in range(d) for j in range(i + 1, d)]
    for pairs in schedule:
        assert len(pairs.unique()) == pairs.numel() > 0


@pytest.mark.parametrize("d", [6, 7])
def test_unbiased_and_least_variance(d: int) -> None:
    Omega, parts = skew(d), round_robin(d)
    p = optimal_probabilities(Omega, parts)
    estimates = torch.stack([estimate(Omega, pairs, 1 / float(q)) for pairs, q in zip(parts, p, strict=True)])
    torch.testing.assert_close((p[:, None, None] * estimates).sum(0), Omega)

    def variance(q: torch.Tensor) -> float:
        norms = torch.stack([estimate(Omega, pairs, 1.0).square().sum() for pairs in parts])
        return float((norms / q).sum() - Omega.square().sum())

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        other = p * (1 + 0.3 * torch.rand(len(p), generator=generator, dtype=torch.float64))
        assert variance(p) <= variance(other / other.sum())


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_law_does_not_depend_on_the_gradients_unit(size: float) -> None:
    Omega, parts = skew(6), round_robin(6)
    law = optimal_probabilities(Omega, parts)
    assert float(law.max()) > 1.2 * float(law.min()), "a law that is not uniform"
    torch.testing.assert_close(optimal_probabilities(size * Omega, parts), law)
    torch.testing.assert_close(optimal_probabilities(0 * Omega, parts), torch.full_like(law, 1 / 5))


@pytest.mark.parametrize("d", [6, 7])
def test_lemma_9_7_counts_each_edge_twice(d: int) -> None:
    Omega = skew(d)
    parts = round_robin(d)
    weights = torch.stack([Omega[pairs[:, 0], pairs[:, 1]].abs().sum() for pairs in parts])  # K(e) of each matching
    K = float(weights.sum())
    variance = sum(
        float(k) / K * float((estimate(Omega, pairs, K / float(k)) - Omega).square().sum())
        for k, pairs in zip(weights, parts, strict=True)
    )
    edges = sum(
        float(Omega[pairs[:, 0], pairs[:, 1]].square().sum()) / float(k)
        for k, pairs in zip(weights, parts, strict=True)
    )
    norm = float(Omega.square().sum())
    assert variance == pytest.approx(2 * K * edges - norm)
    assert variance != pytest.approx(K * edges - norm, rel=0.1)  # as printed


def test_drawn_with_the_optimal_probabilities() -> None:
    Omega, n = skew(5), 2000
    schedule = round_robin(5)
    p, generator = optimal_probabilities(Omega, schedule), torch.Generator().manual_seed(0)
    counts = torch.zeros(len(p))
    for _ in range(n):
        pairs, scale = draw_matching(Omega, schedule, generator)
        number = next(n for n, part in enumerate(schedule) if torch.equal(part, pairs))
        assert scale == pytest.approx(1 / float(p[number]))
        counts[number] += 1
    torch.testing.assert_close(counts.double() / n, p, rtol=0, atol=0.04)
