"""Non-intersecting families: every edge once, unbiased, and the variance of Lemma 9.7 with each edge counted twice."""

import pytest
import torch

from nearkin.linalg.skew import random_skew
from nearkin.orthogonal.matching import greedy_matching, max_weight_matching, round_robin
from nearkin.orthogonal.stochastic_flow import colouring, draw_matching, heavy_colouring, optimal_probabilities


def skew(d: int) -> torch.Tensor:
    return random_skew(d, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)


def matchings(colour: torch.Tensor) -> list[torch.Tensor]:
    return [(colour == number).triu(1).nonzero() for number in range(int(colour.max()) + 1)]


def estimate(Omega: torch.Tensor, pairs: torch.Tensor, scale: float) -> torch.Tensor:
    result = torch.zeros_like(Omega)
    i, j = pairs.unbind(-1)
    result[i, j], result[j, i] = scale * Omega[i, j], scale * Omega[j, i]
    return result


def families(Omega: torch.Tensor) -> dict[str, torch.Tensor]:
    W = Omega.abs()
    return {
        "round-robin": colouring(round_robin(len(W)), len(W)),
        "greedy": heavy_colouring(W),
        "max-weight": heavy_colouring(W, "max-weight"),
    }


@pytest.mark.parametrize("d", [2, 3, 6, 7, 12])
@pytest.mark.parametrize("family", ["round-robin", "greedy", "max-weight"])
def test_every_edge_has_one_colour_and_colours_are_matchings(d: int, family: str) -> None:
    colour = families(skew(d))[family]
    assert torch.equal(colour, colour.T)
    assert (colour.diagonal() == -1).all()
    assert int((colour >= 0).sum()) == d * (d - 1)
    for pairs in matchings(colour):
        assert len(pairs.unique()) == pairs.numel() > 0


@pytest.mark.parametrize("d", [2, 3, 8, 9])
def test_round_robin_has_the_fewest_rounds(d: int) -> None:
    schedule = round_robin(d)
    assert schedule.shape == (d - 1 + d % 2, d // 2, 2)


def test_the_first_heavy_matching_is_the_heaviest() -> None:
    W = skew(8).abs()
    for method, matching in (("greedy", greedy_matching), ("max-weight", max_weight_matching)):
        assert torch.equal(matchings(heavy_colouring(W, method))[0], matching(W))


@pytest.mark.parametrize("family", ["round-robin", "greedy", "max-weight"])
@pytest.mark.parametrize("d", [6, 7])
def test_unbiased_and_least_variance(family: str, d: int) -> None:
    Omega = skew(d)
    colour = families(Omega)[family]
    p = optimal_probabilities(Omega, colour)
    parts = matchings(colour)
    estimates = torch.stack([estimate(Omega, pairs, 1 / float(q)) for pairs, q in zip(parts, p, strict=True)])
    torch.testing.assert_close((p[:, None, None] * estimates).sum(0), Omega)

    def variance(q: torch.Tensor) -> float:
        norms = torch.stack([estimate(Omega, pairs, 1.0).square().sum() for pairs in parts])
        return float((norms / q).sum() - Omega.square().sum())

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        other = p * (1 + 0.3 * torch.rand(len(p), generator=generator, dtype=torch.float64))
        assert variance(p) <= variance(other / other.sum())


@pytest.mark.parametrize("d", [6, 7])
def test_lemma_9_7_counts_each_edge_twice(d: int) -> None:
    Omega = skew(d)
    parts = matchings(colouring(round_robin(d), d))
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
    colour = colouring(round_robin(5), 5)
    p, generator = optimal_probabilities(Omega, colour), torch.Generator().manual_seed(0)
    counts = torch.zeros(len(p))
    for _ in range(n):
        pairs, scale = draw_matching(Omega, colour, generator)
        number = int(colour[pairs[0, 0], pairs[0, 1]])
        assert scale == pytest.approx(1 / float(p[number]))
        counts[number] += 1
    torch.testing.assert_close(counts.double() / n, p, rtol=0, atol=0.04)


def test_bad_method() -> None:
    with pytest.raises(ValueError, match="method is 'best'"):
        heavy_colouring(skew(4).abs(), "best")
