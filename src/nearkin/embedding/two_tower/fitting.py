"""One fit of two towers: from observed pairs and settings to a trained solver."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._distributed import Group
from nearkin._random import draw_seed
from nearkin._shards import shared_generator
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.embedding.two_tower.checkpoint import Checkpoint, described
from nearkin.embedding.two_tower.choice import Choices, Indexed
from nearkin.embedding.two_tower.objective import Objective, initial_tables
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.regularization import SAMPLED, choose_regularization, start_tables
from nearkin.embedding.two_tower.towers import Side, Tower
from nearkin.embedding.two_tower.training import AbstractSolver, train
from nearkin.embedding.two_tower.validation import ValidationRanking, split_for_validation, validation_ranking
from nearkin.records import Interactions

UNWATCHED = ("max_iter", "max_seconds", "patience")  # what may change when an interrupted fit goes on


@dataclass(frozen=True)
class Fit:
    """What a fit needs to know beside its pairs."""

    n_components: int
    regularization: float | str
    validation_fraction: float
    choices: Choices
    random_state: Seed
    callback: Callback | None
    group: Group


@dataclass(frozen=True)
class Fitted:
    """A trained solver, what it was made from, and its history."""

    solver: AbstractSolver
    plan: Plan
    history: list[Record]


def fit_towers(
    fit: Fit, interactions: Interactions, validation: Interactions | None, checkpoint: Checkpoint | None
) -> Fitted:
    """Hold pairs out where something must be chosen, choose it, and train."""
    seed = fit.random_state if checkpoint is None else checkpoint.seed(fit.random_state, fit.group)
    rng = shared_generator(seed, fit.group)
    generator = torch.Generator().manual_seed(draw_seed(rng))
    pairs, ranking = interactions, None
    tables_only = fit.choices.solver.tables_only
    if validation is not None:
        ranking = validation_ranking(validation, interactions, rng)
    elif fit.regularization == "auto" or not tables_only:
        pairs, ranking = split_for_validation(interactions, fit.validation_fraction, rng)
    objective = fit.choices.loss.objective(pairs)
    strength, start = _strength_and_start(fit, objective, ranking, rng, generator)
    if tables_only and validation is None:  # what was held out for the choice is fitted too
        objective, ranking = fit.choices.loss.objective(interactions), None
    plan = make_plan(fit, objective, strength, start, generator)
    solver = fit.choices.solver.from_plan(plan)
    history = train(
        solver, fit.choices.limits, evaluate=None if ranking is None else ranking.metric, callback=fit.callback,
        checkpoint=checkpoint, group=fit.group,
    )  # fmt: skip
    return Fitted(solver, plan, history)


def _strength_and_start(
    fit: Fit,
    objective: Objective,
    ranking: ValidationRanking | None,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> tuple[float, tuple[Tensor, Tensor]]:
    """lambda, and the tables that training begins with."""
    P, Q = random_start = initial_tables(objective.interactions, fit.n_components, generator)
    strength, from_als = fit.regularization, fit.choices.from_als
    if fit.choices.sampled is not None:
        strength = SAMPLED * objective.noise_level(rng) if strength == "auto" else strength
    elif strength == "auto":
        strength, P, Q = choose_regularization(
            objective, P, Q, ranking, random_state=rng, callback=fit.callback, group=fit.group
        )
    elif from_als:
        P, Q = start_tables(objective, float(strength), P, Q, fit.group)
    if not from_als:  # a fresh ALS of few sweeps ranks better than one that has gone down the whole path
        P, Q = random_start
    return float(strength), (P, Q)


def make_plan(
    fit: Fit, objective: Objective, strength: float, start: tuple[Tensor, Tensor], generator: torch.Generator
) -> Plan:
    """The plan with towers of its own: modules that the user gave are copied."""
    pairs, k, choices = objective.interactions, fit.n_components, fit.choices
    left, right = (
        Side(
            tower.build(size, k, features, generator) if isinstance(tower, Tower) else deepcopy(tower),
            *(size, features, fit.group),
        )
        for tower, size, features in zip(
            choices.towers, pairs.shape, (pairs.left_features, pairs.right_features), strict=True
        )
    )
    index = choices.index or Indexed(None)  # pyright: ignore[reportArgumentType]
    return Plan(
        objective, strength, left, right, start, choices.sampled, deepcopy(index.module), index.distortion_weight,
        generator, fit.group,
    )  # fmt: skip


def made_from(fit: Fit, interactions: Interactions, validation: Interactions | None) -> Record:
    """Everything that decides the result of a fit, by name, but for how long it runs."""
    choices = fit.choices
    named: Record = {
        "interactions": interactions, "validation": validation, "n_components": fit.n_components,
        "regularization": fit.regularization, "validation_fraction": fit.validation_fraction,
        "random_state": fit.random_state,
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
