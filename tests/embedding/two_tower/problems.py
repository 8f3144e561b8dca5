"""Towers on a small table of pairs, whose costs and penalties are given."""

import numpy as np
import scipy.sparse as sp
import torch

from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.towers import Side, TowerPair
from nearkin.records import Interactions


def observed(m: int, n: int, density: float = 0.3) -> Interactions:
    return Interactions.from_matrix(sp.random(m, n, density=density, random_state=0, format="csr"))


def tower_pair(
    left: Side, right: Side, pairs: Interactions, ridge: tuple, loss: str = "squared", **options: object
) -> TowerPair:
    """`ridge` are the penalties of the rows, numbers or arrays; `options` those of `Objective`."""
    m, n = pairs.shape
    known = {"omega": 0.3, "labels": pairs.weights, "weights": np.ones(len(pairs)), "a": np.ones(m), "b": np.ones(n)}
    rows = tuple(np.broadcast_to(np.asarray(r, float), size).copy() for r, size in zip(ridge, (m, n), strict=True))
    objective = Objective(interactions=pairs, pair_loss=loss, ridge=rows, **{"prior": None} | known | options)
    return TowerPair(left, right, objective, 1.0, torch.Generator().manual_seed(0))
