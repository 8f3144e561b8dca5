"""Non-intersecting families of matchings: edge colourings of the complete graph on d axes (flows, 3.2, 9.7).

A family is a matrix `colour` (d, d), symmetric: the number of the matching that holds the pair (i, j), -1 on the
diagonal. Every pair has one colour, so the estimate of Omega from matching m is Omega[m] / p_m.

Lemma 9.7 as printed, Var = K sum_e w_e^2 / K(e) - ||Omega||_F^2, counts each edge once in its sum and twice in the
norm. With both counted twice it is 2 K sum_e w_e^2 / K(e) - ||Omega||_F^2, K the sum of |w_e| and K(e) that of
e's matching.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin._check import check_choice
from nearkin._types import Record
from nearkin.orthogonal.matching import greedy_matching, max_weight_matching, peel
from nearkin.orthogonal.tournament import draw_index

FAMILIES = ("round-robin", "greedy", "max-weight")


@dataclass(frozen=True)
class Importance:
    """Importance sampling of matchings, for `sampling=` of `StochasticFlow`.

    family: "round-robin", or heavy matchings by "greedy" or "max-weight" (`heavy_colouring`).
    rebuild_every: for heavy matchings: after how many steps of a parameter its family is built anew from |Omega|.
    """

    family: str = "round-robin"
    rebuild_every: int = 50

    def group_options(self) -> Record:
        """As flat entries of a parameter group, which `state_dict` saves."""
        return {"sampling": "importance", "family": self.family, "rebuild_every": self.rebuild_every}


def round_robin(d: int) -> Tensor:
    """Return the schedule of a round-robin tournament: matchings (d - 1, d / 2, 2), for odd d (d, (d - 1) / 2, 2).

    The circle method: in round r the players whose numbers sum to 2 r modulo an odd n meet, and r meets the last one.
    """
    n = d - 1 + d % 2  # odd: the number of rounds
    rounds, offsets = torch.arange(n)[:, None], torch.arange(1, (n + 1) // 2)[None, :]
    pairs = torch.stack([(rounds - offsets) % n, (rounds + offsets) % n], -1)
    if d % 2 == 0:
        last = torch.stack([rounds, torch.full_like(rounds, d - 1)], -1)
        pairs = torch.cat([pairs, last], 1)
    return pairs.sort(-1).values


def round_robin_colouring(d: int) -> Tensor:
    """Return the colouring (d, d) of `round_robin`."""
    return _colour_of(list(round_robin(d)), d)


def heavy_colouring(W: Tensor, method: str = "greedy") -> Tensor:
    """Return a colouring (d, d) into heavy matchings: the heaviest, then the heaviest of the rest, and so on.

    W (d, d) holds the weights |Omega|. `method` is "greedy" or "max-weight" (O(d^4) in all). Few heavy matchings mean a
    low variance (flows, section 9.7.1), but the best family is NP-hard to find (Lemma 9.8) and this is not it.
    """
    matching = {"greedy": greedy_matching, "max-weight": max_weight_matching}[
        check_choice(method, "method", ("greedy", "max-weight"))
    ]
    weights = W.detach().cpu().double().clone().fill_diagonal_(0)
    return _colour_of(list(peel(weights, matching)), len(W))


def _colour_of(matchings: list[Tensor], d: int) -> Tensor:
    colour = torch.full((d, d), -1)
    for number, pairs in enumerate(matchings):
        i, j = pairs.unbind(-1)
        colour[i, j] = colour[j, i] = number
    return colour


def optimal_probabilities(Omega: Tensor, colour: Tensor) -> Tensor:
    """Return p (n_colours,) proportional to sqrt(sum of w_e^2 over each matching): the least variance (Lemma 3.2)."""
    index = colour.reshape(-1)
    inside = index >= 0
    squares = torch.zeros(int(index.max()) + 1, dtype=torch.float64, device=Omega.device)
    squares.index_add_(0, index[inside], Omega.reshape(-1)[inside].double().square())
    weights = squares.sqrt()
    total = weights.sum()
    return weights / total if float(total) > 0 else torch.full_like(weights, 1 / len(weights))


def draw_matching(Omega: Tensor, colour: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
    """Return pairs (m, 2) of a matching drawn with the optimal probabilities, and the scale 1 / p_m."""
    probabilities = optimal_probabilities(Omega, colour)
    number = draw_index(probabilities, generator)
    return (colour == number).triu(1).nonzero(), 1 / float(probabilities[number])
