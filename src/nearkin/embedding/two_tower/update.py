"""A fitted model meets more pairs: ids and features are joined, and training goes on from where it ended."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nearkin._distributed import ALONE, Group
from nearkin._pairs import Features
from nearkin._random import draw_seed
from nearkin._shards import shared_generator
from nearkin.contracts import Callback
from nearkin.embedding.two_tower.choice import Choices
from nearkin.embedding.two_tower.fitting import Fitted, make_plan
from nearkin.embedding.two_tower.objective import initial_tables
from nearkin.embedding.two_tower.solvers.als import ALS
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side
from nearkin.embedding.two_tower.training import train
from nearkin.records import Interactions

SWEEPS = 2  # of alternating least squares, from tables that were good yesterday
SHARE = 0.25  # of the steps of any other solver


class Before(NamedTuple):
    """What a fit left behind."""

    left: np.ndarray  # (m, k) embeddings
    right: np.ndarray  # (n, k), before an index
    encoders: tuple[nn.Module | None, nn.Module | None]
    strength: float  # lambda


def update_towers(
    choices: Choices,
    interactions: Interactions,
    before: Before,
    max_iter: int | None,
    *,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Fitted:
    """Train on from the embeddings `before`, whose ids come first in `interactions`, with the same lambda."""
    rng = shared_generator(choices.random_state, group)
    generator = torch.Generator().manual_seed(draw_seed(rng))
    objective = choices.loss.objective(interactions)
    start = initial_tables(interactions, choices.n_components, generator)
    for table, known in zip(start, (before.left, before.right), strict=True):
        table[: len(known)] = torch.from_numpy(known)
    plan = make_plan(choices, objective, before.strength, start, generator, group)
    for side, encoder in zip((plan.left, plan.right), before.encoders, strict=True):
        _go_on_from(side, encoder)
    steps = SWEEPS if isinstance(choices.solver, ALS) else choices.limits.max_iter
    if not choices.solver.tables_only:
        plan = replace(plan, start=_without_branches(start, (plan.left, plan.right)))
        steps = max(1, round(SHARE * steps))
    solver = choices.solver.from_plan(plan)
    limits = replace(choices.limits, max_iter=steps if max_iter is None else max_iter)
    return Fitted(solver, plan, train(solver, limits, callback=callback, group=group))


def join_interactions(seen: Interactions, new: Interactions) -> Interactions:
    """The pairs of both; ids that only `new` has come after those of `seen`, and a pair of both adds up its weights.

    ValueError if one has features of a side and the other lacks them.
    """
    (left_ids, left_new), (right_ids, right_new) = (
        _joined_ids(seen.left_ids, new.left_ids), _joined_ids(seen.right_ids, new.right_ids)
    )  # fmt: skip
    return Interactions.from_pairs(
        np.concatenate([seen.left_ids[seen.rows], new.left_ids[new.rows]]),
        np.concatenate([seen.right_ids[seen.indices], new.right_ids[new.indices]]),
        np.concatenate([seen.weights, new.weights]),
        left_ids=left_ids, right_ids=right_ids,
        left_features=_joined_features(seen.left_features, new.left_features, left_new, "left"),
        right_features=_joined_features(seen.right_features, new.right_features, right_new, "right"),
    )  # fmt: skip


def _joined_ids(known: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids of both, and a mask of those given that are new."""
    if (known.dtype.kind == "U") != (given.dtype.kind == "U"):
        raise TypeError(
            f"interactions has ids of type {given.dtype}, the model of {known.dtype}; use one type for both"
        )
    new = ~np.isin(given, known)
    return np.concatenate([known, given[new]]), new


def _joined_features(known: Features | None, given: Features | None, new: np.ndarray, side: str) -> Features | None:
    if known is None and given is None:
        return None
    if known is None or (given is None and new.any()):
        lacking = "model's pairs" if known is None else "interactions"
        raise ValueError(
            f"the {lacking} have no features of the {side} side; give features for every id in fit and in partial_fit "
            "(a model that was loaded from a folder has kept none)"
        )
    if given is None:
        return known
    if sp.issparse(known) or sp.issparse(given):
        return sp.csr_matrix(sp.vstack([sp.csr_matrix(known), sp.csr_matrix(given)[new]]))
    return np.concatenate([np.asarray(known), np.asarray(given)[new]])


def _go_on_from(side: Side, encoder: nn.Module | None) -> None:
    """Give the new tower the weights of the old one."""
    tower: Any = side.tower.branch if isinstance(side.tower, ResidualTower) else side.tower
    if tower is None:
        return
    if encoder is None:
        raise ValueError(
            "a tower of your own that is called with row numbers cannot take more rows; fit anew, or give it features"
        )
    tower.load_state_dict(encoder.state_dict())


def _without_branches(start: tuple[Tensor, Tensor], sides: tuple[Side, Side]) -> tuple[Tensor, Tensor]:
    """Id embeddings: the embeddings less what the branches of features say."""
    tables = []
    for table, side in zip(start, sides, strict=True):
        branch = side.tower.branch if isinstance(side.tower, ResidualTower) else None
        if isinstance(branch, FeatureBranch):
            with torch.no_grad():
                table = table - torch.cat([branch(side.feature_rows(rows)) for rows in side.chunks()])
        tables.append(table)
    return tables[0], tables[1]
