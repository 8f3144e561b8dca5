"""One fit of two towers: from observed pairs and settings to a trained solver."""

from copy import deepcopy
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._distributed import ALONE, Group
from nearkin._random import draw_seed
from nearkin._shards import shared_generator
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.data.interaction_split import split_random
from nearkin.embedding.two_tower.checkpoint import Checkpoint, described
from nearkin.embedding.two_tower.choice import Choices
from nearkin.embedding.two_tower.objective import AllPairs, Objective, initial_tables
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.towers import Side, Tower
from nearkin.embedding.two_tower.training import AbstractSolver, train
from nearkin.embedding.two_tower.validation import (
    SAMPLED,
    ValidationRanking,
    choose_regularization,
    start_tables,
    validation_ranking,
)
from nearkin.records import Interactions

UNWATCHED = ("max_iter", "max_seconds", "patience")  # what may change when an interrupted fit goes on


@dataclass(frozen=True)
class Fitted:
    """A trained solver, what it was made from, and its history."""

    solver: AbstractSolver
    plan: Plan
    history: list[Record]


def fit_towers(
    choices: Choices,
    interactions: Interactions,
    validation: Interactions | None = None,
    *,
    callback: Callback | None = None,
    checkpoint: str | PathLike | None = None,
    group: Group = ALONE,
) -> Fitted:
    """Hold pairs out where something must be chosen, choose it, and train; arguments as in `TwoTower.fit`."""
    saved, seed = None, choices.random_state
    if checkpoint is not None:
        saved = Checkpoint(checkpoint)
        saved.check(made_from(choices, interactions, validation))
        seed = saved.seed(seed, group)
    rng = shared_generator(seed, group)
    generator = torch.Generator().manual_seed(draw_seed(rng))

    pairs, ranking, tables_only = interactions, None, choices.solver.tables_only
    if validation is not None:
        ranking = validation_ranking(validation, interactions, rng)
    elif choices.regularization == "auto" or not tables_only:
        parts = split_random(interactions, valid=choices.validation_fraction, test=0, random_state=rng)
        ranking = validation_ranking(parts.valid, parts.train, rng)
        pairs = interactions if ranking is None else parts.train
    objective = choices.loss.objective(pairs)
    start = initial_tables(pairs, choices.n_components, generator)
    strength, start = _strength_and_start(choices, objective, start, ranking, rng, callback, group)
    if tables_only and validation is None:  # what was held out for the choice is fitted too
        objective, ranking = choices.loss.objective(interactions), None

    plan = make_plan(choices, objective, strength, start, generator, group)
    solver, start = choices.solver.from_plan(plan), ()
    plan = replace(plan, start=(torch.empty(0), torch.empty(0)))  # solvers have copied it
    history = train(
        solver, choices.limits, evaluate=None if ranking is None else ranking.metric, callback=callback,
        checkpoint=saved, group=group,
    )  # fmt: skip
    return Fitted(solver, plan, history)


def _strength_and_start(
    choices: Choices,
    objective: Objective,
    random_start: tuple[Tensor, Tensor],
    ranking: ValidationRanking | None,
    rng: np.random.Generator,
    callback: Callback | None,
    group: Group,
) -> tuple[float, tuple[Tensor, Tensor]]:
    """lambda, and the tables that training begins with."""
    strength, start = choices.regularization, random_start
    if not isinstance(choices.loss, AllPairs):
        strength = SAMPLED * objective.noise_level(rng) if strength == "auto" else strength
    elif strength == "auto":
        strength, *start = choose_regularization(
            objective, *random_start, ranking, random_state=rng, callback=callback, group=group
        )
    elif choices.from_als:
        start = start_tables(objective, float(strength), *random_start, group)
    if not choices.from_als:  # a fresh ALS of few sweeps ranks better than one that has gone down the whole path
        start = random_start
    return float(strength), (start[0], start[1])


def make_plan(
    choices: Choices,
    objective: Objective,
    strength: float,
    start: tuple[Tensor, Tensor],
    generator: torch.Generator,
    group: Group,
) -> Plan:
    """The plan with towers and an index of its own: modules that the user gave are copied."""
    pairs, k = objective.interactions, choices.n_components
    left, right = (
        Side(
            tower.build(size, k, features, generator) if isinstance(tower, Tower) else deepcopy(tower),
            *(size, features, group),
        )
        for tower, size, features in zip(
            choices.towers, pairs.shape, (pairs.left_features, pairs.right_features), strict=True
        )
    )
    module, weight = None, 1.0
    if choices.index is not None:
        module, weight = deepcopy(choices.index.module), choices.index.distortion_weight
    return Plan(objective, strength, left, right, start, choices.loss, module, weight, generator, group)


def made_from(choices: Choices, interactions: Interactions, validation: Interactions | None) -> Record:
    """Everything that decides the result of a fit, by name, but for how long it runs."""
    named: Record = {
        "interactions": interactions, "validation": validation, "n_components": choices.n_components,
        "regularization": choices.regularization, "validation_fraction": choices.validation_fraction,
        "random_state": choices.random_state,
    }  # fmt: skip
    named |= _parameters("loss", choices.loss) | _parameters("solver", choices.solver)
    left, right = choices.towers
    for name, given in (("left", left), ("right", right), ("index", choices.index)):
        named |= {part if part == name else f"{name}.{part}": v for part, v in _parameters(name, given).items()}
    return {name: described(value) for name, value in named.items()}


def _parameters(name: str, given: nn.Module | BaseEstimator | None) -> Record:
    """A settings object's parameters by name; a module is one."""
    if given is None or isinstance(given, nn.Module):
        return {name: given}
    own = {part: value for part, value in given.get_params(deep=False).items() if part not in UNWATCHED}
    return {name: type(given).__name__} | own
