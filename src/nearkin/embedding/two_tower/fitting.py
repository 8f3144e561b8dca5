"""One fit of two towers: held-out pairs, the strength of regularization, the start, training; and its continuation."""

from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._distributed import ALONE, Group
from nearkin._pairs import Features
from nearkin._random import draw_seed
from nearkin._shards import shared_generator
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.data.interactions import split_random
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.choice import (
    ValidationRanking,
    choose_loss,
    choose_regularization,
    loss_of,
    start_tables,
    validation_ranking,
)
from nearkin.embedding.two_tower.objective import AllPairs, Objective, initial_tables
from nearkin.embedding.two_tower.settings import Loss, Settings, with_loss
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side, Tower, TowerPair
from nearkin.embedding.two_tower.training import AbstractSolver, Checkpoint, described, train
from nearkin.records import Interactions

UNWATCHED = ("max_iter", "max_seconds", "patience")  # may differ when an interrupted fit continues


@dataclass(frozen=True)
class Defaults:
    """Numbers of a fit, chosen 2026-11 on ml100k and gowalla without a recorded table, but for those with a figure."""

    # lambda of sampled losses, as a share of the noise level: their scores are logits and must grow large
    sampled: float = 0.005
    update_sweeps: int = 2  # of ALS in `partial_fit`: 97 % of a refit's NDCG@20 and more (docs/two_tower.md)
    update_share: float = 0.25  # of the steps of any other solver in `partial_fit`


DEFAULTS = Defaults()


class Fitted(NamedTuple):
    """A trained solver, its towers, one record a step, and the loss with the records of its choice, if it was one."""

    solver: AbstractSolver
    pair: TowerPair
    history: list[Record]
    loss: Loss
    trials: list[Record]


def fit_towers(
    settings: Settings,
    interactions: Interactions,
    validation: Interactions | None = None,
    *,
    callback: Callback | None = None,
    checkpoint: str | PathLike | None = None,
    group: Group = ALONE,
) -> Fitted:
    """Hold pairs out if something must be chosen, choose it, and train; arguments as in `TwoTower.fit`."""
    saved, seed, trials = None, settings.random_state, list[Record]()
    if checkpoint is not None:
        saved = Checkpoint(Path(checkpoint))
        saved.check(made_from(settings, interactions, validation))
        seed = saved.seed(seed, group)
    if settings.auto_loss:
        trials = [] if saved is None else saved.trials()
        if not trials:
            rng = shared_generator(seed, group)
            trials = choose_loss(settings, interactions, validation, rng, callback=callback, group=group)
        if saved is not None:
            saved.chosen = trials
        settings = with_loss(settings, loss_of(trials))
    rng, solver = shared_generator(seed, group), settings.solver
    generator = torch.Generator().manual_seed(draw_seed(rng))

    pairs, ranking = interactions, None
    if validation is not None:
        ranking = validation_ranking(validation, interactions, rng)
    elif settings.regularization == "auto" or not solver.tables_only:
        parts = split_random(interactions, valid=settings.validation_fraction, test=0, random_state=rng)
        ranking = validation_ranking(parts.valid, parts.train, rng)
        pairs = interactions if ranking is None else parts.train
    objective = settings.loss.objective(pairs)
    start = initial_tables(pairs, settings.n_components, generator)
    strength, start = _strength_and_start(settings, objective, start, ranking, rng, callback, group)
    if solver.tables_only and validation is None:  # the pairs that were held out for the choice are fitted too
        objective, ranking = settings.loss.objective(interactions), None

    pair = make_pair(settings, objective, strength, start, generator, group)
    del start  # its copy is in the towers
    solver.begin(pair, settings.loss)
    history = train(
        solver, evaluate=None if ranking is None else ranking.metric, callback=callback, checkpoint=saved, group=group
    )
    return Fitted(solver, pair, history, settings.loss, trials)


def _strength_and_start(
    settings: Settings,
    objective: Objective,
    random_start: tuple[Tensor, Tensor],
    ranking: ValidationRanking | None,
    rng: np.random.Generator,
    callback: Callback | None,
    group: Group,
) -> tuple[float, tuple[Tensor, Tensor]]:
    strength, start = settings.regularization, random_start
    if not isinstance(settings.loss, AllPairs):
        strength = DEFAULTS.sampled * objective.noise_level(rng) if strength == "auto" else strength
    elif strength == "auto":
        found = choose_regularization(
            objective, *random_start, ranking, noise=objective.noise_level(rng), callback=callback, group=group
        )
        strength, start = found.strength, (found.P, found.Q)
    elif settings.from_als:
        start = start_tables(objective, float(strength), *random_start, group)
    if not settings.from_als:  # a new ALS of few sweeps ranks better than one that has gone through all strengths
        start = random_start
    return float(strength), (start[0], start[1])


def make_pair(
    settings: Settings,
    objective: Objective,
    strength: float,
    start: tuple[Tensor, Tensor],
    generator: torch.Generator,
    group: Group,
) -> TowerPair:
    """The towers, with copies of the user's modules; id tables begin at `start`."""
    pairs, k, sides = objective.interactions, settings.n_components, []
    features = pairs.left_features, pairs.right_features
    for given, size, own, table in zip(settings.towers, pairs.shape, features, start, strict=True):
        tower = given.build(size, k, own, generator) if isinstance(given, Tower) else deepcopy(given)
        if isinstance(tower, ResidualTower):
            tower.table.data.copy_(table)
        sides.append(Side(tower, size, own, group))
    index = settings.index
    options = {} if index is None else {"index": deepcopy(index.module), "distortion_weight": index.distortion_weight}
    left, right = sides
    return TowerPair(left, right, objective, strength, generator, **options)


def made_from(settings: Settings, interactions: Interactions, validation: Interactions | None) -> Record:
    """Everything that decides the result of a fit, by name, except its length."""
    named: Record = {
        "interactions": interactions, "validation": validation, "n_components": settings.n_components,
        "regularization": settings.regularization, "validation_fraction": settings.validation_fraction,
        "random_state": settings.random_state,
    }  # fmt: skip
    if settings.auto_loss and settings.only_all_pairs is None:  # pairs and seed decide the loss, and with it the solver
        named |= {"loss": "auto"} | _parameters("solver", settings.given)
    else:
        named |= _parameters("loss", settings.loss) | _parameters("solver", settings.solver)
    left, right = settings.towers
    for name, given in (("left", left), ("right", right), ("index", settings.index)):
        named |= {part if part == name else f"{name}.{part}": v for part, v in _parameters(name, given).items()}
    return {name: described(value) for name, value in named.items()}


def _parameters(name: str, given: nn.Module | BaseEstimator | None) -> Record:
    """A settings object's parameters by name; a module is one."""
    if given is None or isinstance(given, nn.Module):
        return {name: given}
    own = {part: value for part, value in given.get_params(deep=False).items() if part not in UNWATCHED}
    return {name: type(given).__name__} | own


# ---- continuing a fit with more pairs -------------------------------------------------------------------------------


def continue_fit(
    settings: Settings,
    interactions: Interactions,
    before: Any,
    max_iter: int | None,
    *,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Fitted:
    """Train from the `TwoTower` before, whose ids come first in `interactions`, with the same lambda."""
    rng, solver = shared_generator(settings.random_state, group), settings.solver
    generator = torch.Generator().manual_seed(draw_seed(rng))
    objective = settings.loss.objective(interactions)
    start = initial_tables(interactions, settings.n_components, generator)
    for table, known in zip(start, before.exact_embeddings_, strict=True):
        table[: len(known)] = torch.from_numpy(known)
    pair = make_pair(settings, objective, before.regularization_, start, generator, group)
    for side, encoder in zip(pair.sides, (before.left_encoder_, before.right_encoder_), strict=True):
        tower: Any = side.tower.branch if isinstance(side.tower, ResidualTower) else side.tower
        if tower is not None and encoder is None:
            raise ValueError(
                "a tower of your own that is called with row numbers cannot take more rows; fit again, or give it "
                "features"
            )
        if tower is not None:
            tower.load_state_dict(encoder.state_dict())
    steps = DEFAULTS.update_sweeps if isinstance(solver, ALS) else solver.max_iter or 1
    if not solver.tables_only:
        steps = max(1, round(DEFAULTS.update_share * steps))
        for side in pair.sides:
            if isinstance(side.tower, ResidualTower) and isinstance(side.tower.branch, FeatureBranch):
                with torch.no_grad():  # id embeddings are embeddings less the output of the branch
                    branch = side.tower.branch
                    side.tower.table -= torch.cat([branch(side.feature_rows(rows)) for rows in side.chunks()])
    solver.begin(pair, settings.loss)
    steps = steps if max_iter is None else max_iter
    history = train(solver, callback=callback, group=group, max_iter=steps)
    return Fitted(solver, pair, history, settings.loss, [])


def join_interactions(seen: Interactions, new: Interactions) -> Interactions:
    """The pairs of both, weights added, new ids last; ValueError if only one has features of a side."""
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
    """The ids of both, and a mask of the given ones that are new."""
    if (known.dtype.kind == "U") != (given.dtype.kind == "U"):
        raise TypeError(f"interactions has ids of type {given.dtype}, the model {known.dtype}; use one type for both")
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
    if known.shape[1] != given.shape[1]:  # pyright: ignore[reportOptionalSubscript]
        raise ValueError(
            f"the interactions have {given.shape[1]} features of the {side} side, the model's pairs have "  # pyright: ignore[reportOptionalSubscript]
            f"{known.shape[1]}; give the same features as in fit"  # pyright: ignore[reportOptionalSubscript]
        )
    if sp.issparse(known) or sp.issparse(given):
        return sp.csr_matrix(sp.vstack([sp.csr_matrix(known), sp.csr_matrix(given)[new]]))
    return np.concatenate([np.asarray(known), np.asarray(given)[new]])
