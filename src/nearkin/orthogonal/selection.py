"""Which pairs of axes a Givens step turns: k edge-disjoint matchings from one gradient."""

from itertools import islice

import torch
from torch import Tensor

from nearkin.orthogonal.colouring import round_robin
from nearkin.orthogonal.matching import (
    Matching,
    greedy_matching,
    max_weight_matching,
    peel,
    random_matching,
    two_opt_matching,
)
from nearkin.orthogonal.names import SELECTIONS

WEIGHTED: dict[str, Matching] = dict(
    zip(SELECTIONS[1:], (greedy_matching, two_opt_matching, max_weight_matching), strict=True)
)


def most_matchings(d: int) -> int:
    """Return how many edge-disjoint matchings cover the complete graph: d - 1 for even d, d for odd."""
    return d - 1 + d % 2


def random_matchings(d: int, count: int, generator: torch.Generator) -> list[Tensor]:
    """Return `count` edge-disjoint matchings (floor(d/2), 2): rounds of a round-robin of shuffled players."""
    if count == 1:
        return [random_matching(d, generator)]
    players = torch.randperm(d, generator=generator, device=generator.device)
    schedule = round_robin(d)
    rounds = torch.randperm(len(schedule), generator=generator, device=generator.device)[:count]
    return list(players[schedule[rounds.cpu()].to(players.device)])


def heavy_matchings(
    W: Tensor,  # (d, d) weights, symmetric
    count: int,
    selection: str,
) -> list[Tensor]:
    """Return `count` edge-disjoint matchings by weight: the first by `selection`, the next from the edges left."""
    return list(islice(peel(W, WEIGHTED[selection]), count))
