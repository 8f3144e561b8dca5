"""Generated interactions whose best ranking is known."""

from typing import NamedTuple

import numpy as np

from nearkin._check import check_integer, check_real
from nearkin._random import numpy_generator
from nearkin._types import Seed
from nearkin.records import Interactions


class PlantedInteractions(NamedTuple):
    """Observed pairs, and the affinities (m, n) that drew them: sorting a row gives the best ranking there is."""

    interactions: Interactions
    affinities: np.ndarray  # (m, n)


def planted_interactions(
    m: int = 300,
    n: int = 200,
    *,
    rank: int = 8,
    pairs_per_row: int = 20,
    n_features: int = 16,
    sharpness: float = 4.0,
    random_state: Seed = None,
) -> PlantedInteractions:
    """Draw pairs from planted affinities that are nonlinear in the features of both sides.

    Features are standard normal; hidden vectors are tanh of a random linear map of them, and the affinity is their
    scaled product plus a popularity of the right side. Each row draws `pairs_per_row` distinct rights with
    probabilities softmax(affinities), by the Gumbel trick.
    """
    m, n = check_integer(m, "m", low=1), check_integer(n, "n", low=1)
    pairs_per_row = check_integer(pairs_per_row, "pairs_per_row", low=1, high=n)
    sharpness = check_real(sharpness, "sharpness", low=0)
    rng = numpy_generator(random_state)
    left_features = rng.standard_normal((m, n_features), dtype=np.float32)
    right_features = rng.standard_normal((n, n_features), dtype=np.float32)
    maps = rng.standard_normal((2, n_features, rank)) * (2 / np.sqrt(n_features))
    hidden_left, hidden_right = np.tanh(left_features @ maps[0]), np.tanh(right_features @ maps[1])
    affinities = sharpness * hidden_left @ hidden_right.T / np.sqrt(rank) + 0.5 * rng.standard_normal(n)
    keys = affinities + rng.gumbel(size=(m, n))
    chosen = np.argpartition(-keys, pairs_per_row - 1, axis=1)[:, :pairs_per_row]
    interactions = Interactions.from_pairs(
        np.repeat(np.arange(m), pairs_per_row),
        chosen.ravel(),
        left_ids=np.arange(m),
        right_ids=np.arange(n),
        left_features=left_features,
        right_features=right_features,
    )
    return PlantedInteractions(interactions, affinities)
