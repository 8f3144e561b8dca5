"""One fit of two towers: check `TwoTower`'s parameters, hold out pairs, choose, train; and continue a fit."""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nearkin._check import check_choice, check_integer, check_real, draw_seed
from nearkin._distributed import ALONE, Group
from nearkin._pairs import Features
from nearkin._types import Record, Seed
from nearkin.contracts import Callback, IndexMaker, JointIndex, PhasedIndex, TrainableIndex
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.choice import DEFAULTS as OF_CHOICES
from nearkin.embedding.two_tower.choice import (
    Tables,
    ValidationRanking,
    all_pairs_alone,
    choose_loss,
    choose_regularization,
    hold_out,
    loss_of,
    sweep,
    validation_ranking,
)
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.gradient import Adam, GaussNewton
from nearkin.embedding.two_tower.in_batch_softmax import AbstractSampledLoss, InBatchSoftmax
from nearkin.embedding.two_tower.joint import Joint
from nearkin.embedding.two_tower.objective import AllPairs, Objective, initial_tables
from nearkin.embedding.two_tower.towers import HIDDEN, AbstractSolver, ResidualTower, Side, Tower, TowerPair
from nearkin.records import Interactions
from nearkin.statistics import shared_generator

_PHASED = ("phase", "rotation_parameters", "rotation_optimizer")
Loss: TypeAlias = AllPairs | CosineSoftmax | AbstractSampledLoss

LOSSES: dict[str, Callable[[], Loss]] = {kind.name: kind for kind in (AllPairs, CosineSoftmax, InBatchSoftmax)}
SOLVERS: dict[str, Callable[[], AbstractSolver]] = {
    "als": ALS,
    "ials++": partial(ALS, block_size=16),
    "adam": Adam,
    "joint": Joint,
    "gauss-newton": GaussNewton,
    "sphere": SphereSweeps,
}


@dataclass(frozen=True)
class Settings:
    """The checked settings of a fit, with all defaults filled in; without its pairs."""

    n_components: int
    loss: Loss
    auto_loss: bool  # `loss` is all pairs until one is chosen
    only_all_pairs: str | None  # why "auto" cannot choose another loss
    solver: AbstractSolver  # a copy, which the fit changes
    regularization: float | str  # a number, or "auto"
    towers: tuple[nn.Module | Tower, nn.Module | Tower]
    index: TrainableIndex | None
    validation_fraction: float
    random_state: Seed

    @property
    def from_als(self) -> bool:
        """Whether tables begin with the result of a few sweeps of ALS."""
        custom = any(isinstance(tower, nn.Module) for tower in self.towers)
        return self.solver.start == "als" or (
            self.solver.start == "auto" and isinstance(self.loss, AllPairs) and not custom
        )

    def with_loss(self, loss: Loss) -> "Settings":
        """The settings with the loss that "auto" chose, on id tables; its solver is then "auto", or joint."""
        if isinstance(loss, AllPairs):
            return replace(self, loss=loss)
        given = self.solver if isinstance(self.solver, Joint) else None
        return replace(self, loss=loss, solver=_solver_for(loss, given, False, self.index), regularization=0.0)


def check_settings(model: Any, interactions: Interactions, validation: Interactions | None = None) -> Settings:
    """The parameters of a `TwoTower` on these pairs; ValueError or TypeError for a bad value or combination."""
    check_pairs(interactions, validation)
    k, regularization = check_integer(model.n_components, "n_components", low=1), model.regularization
    check_real(model.validation_fraction, "validation_fraction", above=0, high=0.5)
    if regularization != "auto":
        check_real(regularization, "regularization", low=0)
    auto = isinstance(model.loss, str) and model.loss == "auto"  # all pairs until one is chosen
    loss = cast(Loss, as_object(model.loss, "loss"))
    given = cast("AbstractSolver | None", as_object(model.solver, "solver"))
    index = None if model.index is None else _checked_index(model.index, interactions.shape[1])
    featured = interactions.left_features is not None or interactions.right_features is not None
    towers = _checked_tower(model.left, "left", featured), _checked_tower(model.right, "right", featured)
    custom = any(isinstance(tower, nn.Module) for tower in towers)
    solver = _solver_for(loss, given, custom or (featured and index is not None), index)
    if isinstance(loss, CosineSoftmax):
        if regularization not in ("auto", 0):
            raise ValueError(
                f"regularization is {regularization!r}, but embeddings of norm 1 have no penalty; leave it out, "
                "CosineSoftmax(temperature=...) sets their strength"
            )
        if featured:
            raise ValueError("interactions has features, which loss='cosine-softmax' does not use; fit without them")
        regularization = 0.0
    joint = isinstance(solver, Joint)
    reasons = {
        "features, and towers of your own, are trained by this loss only": custom or featured,
        "a strength of regularization was given, which this loss alone has": regularization != "auto",
        "n_components is 1, and embeddings of norm 1 need two": k < 2,
        f"solver {solver.name!r} was given, which trains this loss only": given is not None and not joint,
        "this index is trained by this loss only": index is not None and not joint,
    }
    only = next((reason for reason, holds in reasons.items() if holds), None)
    return Settings(
        k, loss, auto, only, solver, regularization, towers, index, model.validation_fraction, model.random_state
    )


def check_pairs(interactions: object, validation: object = None) -> None:
    """TypeError unless both are `Interactions`, of which the second may be None."""
    for name, pairs in (("interactions", interactions), ("validation", validation)):
        if not isinstance(pairs, Interactions) and (name == "interactions" or pairs is not None):
            raise TypeError(f"{name} is of type {type(pairs).__name__}; it must be Interactions: nk.read_interactions")


def matched(pairs: Interactions, left_ids: np.ndarray, right_ids: np.ndarray) -> Interactions:
    """The pairs numbered by other catalogues of ids; ValueError for an id of a pair that these lack."""
    if np.array_equal(pairs.left_ids, left_ids) and np.array_equal(pairs.right_ids, right_ids):
        return pairs
    left, right = pairs.left_ids[pairs.rows], pairs.right_ids[pairs.indices]
    return Interactions.from_pairs(left, right, pairs.weights, left_ids=left_ids, right_ids=right_ids)


def as_object(given: object, name: str) -> Loss | AbstractSolver | None:
    """The loss or solver, by `name`, that a string means, or `given` if it is one, also one of your own. "auto" is the
    loss of all pairs where nothing is chosen, and no solver."""
    named, kinds = (LOSSES, Loss) if name == "loss" else (SOLVERS, AbstractSolver)
    if isinstance(given, str) and check_choice(given, name, ("auto", *named)) == "auto":
        return AllPairs() if name == "loss" else None
    if isinstance(given, str):
        return named[given]()
    if not isinstance(given, kinds):
        raise TypeError(
            f"{name} is of type {type(given).__name__}; it must be one of 'auto', {', '.join(map(repr, named))}, or an "
            "object of nearkin.embedding, such as AllPairs() or ALS()"
        )
    return cast("Loss | AbstractSolver", given)


def _solver_for(
    loss: Loss, given: AbstractSolver | None, beyond_tables: bool, index: TrainableIndex | None
) -> AbstractSolver:
    """A checked copy of the solver, None for "auto"; ValueError for towers `beyond_tables` that it cannot fit."""
    on_cosines, can_join = isinstance(loss, CosineSoftmax), isinstance(index, JointIndex) and index.can_descend()
    solver = Adam() if given is None else type(given)(**given.get_params())
    name = "auto" if given is None else given.name
    if given is None and on_cosines:
        solver = SphereSweeps() if index is None else Joint()
    elif given is None and isinstance(loss, AllPairs) and not beyond_tables:
        solver = ALS() if index is None else Joint() if can_join else Adam()
    if on_cosines and beyond_tables:
        raise ValueError(
            "loss is 'cosine-softmax', which trains one vector for each id; leave out features, and towers of your "
            "own, or use loss='all-pairs'"
        )
    if on_cosines != isinstance(solver, SphereSweeps) and not (on_cosines and isinstance(solver, Joint)):
        raise ValueError(
            f"solver is {name!r} and loss={loss.name!r}; 'cosine-softmax' and 'sphere' go only together, or with an "
            "index 'cosine-softmax' and 'joint'"
        )
    if not isinstance(loss, AllPairs | CosineSoftmax) and not isinstance(solver, Adam):
        raise ValueError(f"solver is {name!r}; loss={loss.name!r} is trained by solver='adam' or 'auto'")
    if isinstance(solver, Joint) and not can_join:
        raise ValueError(
            f"solver is 'joint' and index of type {type(index).__name__}; it needs nk.quantization.IndexingLayer(...) "
            "without inverted lists, or a nearkin.contracts.JointIndex; else use loss='all-pairs' and solver='adam'"
        )
    if isinstance(solver, Adam) and isinstance(index, JointIndex) and not list(index.parameters()):
        raise ValueError(
            f"index is trained by solver='joint' only, and solver {name!r} with loss={loss.name!r} is not that; take "
            "loss='auto' and solver='auto', and leave out features and towers of your own"
        )
    if index is not None and not solver.through_index:
        raise ValueError(f"solver is {name!r}, which cannot train through an index; use solver='auto'")
    if solver.tables_only and beyond_tables:
        raise ValueError(f"solver is {name!r}, which cannot train modules of your own; use solver='auto'")
    solver.check(isinstance(loss, AllPairs | CosineSoftmax))
    return solver


def _checked_index(index: object, n_rights: int) -> TrainableIndex:
    """The index to train; TypeError for what is none."""
    if isinstance(index, IndexMaker):
        return index.trainable(n_rights)
    if not isinstance(index, TrainableIndex):
        raise TypeError(
            f"index is of type {type(index).__name__}; it must be a torch.nn.Module with forward(Q) -> (quantized Q, "
            "distortion), such as nk.quantization.IndexingLayer, or nk.SemanticIds"
        )
    if not isinstance(index, PhasedIndex) and set(_PHASED) & set(dir(index)):
        raise TypeError(
            f"index is of type {type(index).__name__}, which has some of {', '.join(_PHASED)}; give it all of them or "
            "none, see nearkin.contracts.PhasedIndex"
        )
    return index


def _checked_tower(tower: object, side: str, featured: bool) -> nn.Module | Tower:
    """The tower of a side; ValueError for widths of hidden layers where no side is `featured`."""
    if tower is None:
        return Tower()
    if not isinstance(tower, nn.Module | Tower):
        raise TypeError(
            f"{side} is of type {type(tower).__name__}; it must be None, nk.embedding.Tower(hidden=...) or a "
            "torch.nn.Module"
        )
    if isinstance(tower, Tower) and tuple(tower.hidden) != HIDDEN and not featured:
        raise ValueError(
            f"{side} is Tower(hidden={tower.hidden!r}), but the interactions have no features to put through it; "
            "leave it out, or pass interactions.with_features(left=..., right=...)"
        )
    return tower


# ---- fitting ----


@dataclass(frozen=True)
class Defaults:
    """Numbers of a fit, chosen 2026-11 on ml100k and gowalla without a recorded table, but for those with a figure."""

    update_sweeps: int = 2  # of ALS in `partial_fit`: 97 % of a refit's NDCG@20 and more (docs/two_tower.md)


DEFAULTS = Defaults()


class Fitted(NamedTuple):
    """A trained solver, its towers, one record a step, the loss with the records of its choice, if it was one, and the
    pairs with their weights in the fit."""

    solver: AbstractSolver
    pair: TowerPair
    history: list[Record]
    loss: Loss
    trials: list[Record]
    interactions: Interactions


def fit_towers(
    settings: Settings,
    interactions: Interactions,
    validation: Interactions | None = None,
    *,
    before: Any = None,
    max_iter: int | None = None,
    callback: Callback | None = None,
    group: Group = ALONE,
) -> Fitted:
    """Hold out pairs and choose if necessary, then train; arguments as in `TwoTower.fit`. From a `TwoTower` `before`,
    whose ids come first in `interactions`, train further with its loss and its lambda."""
    trials, continued = list[Record]() if before is None else before.trials_, None
    if settings.auto_loss and before is not None:
        settings = settings.with_loss(before.loss_)
    elif settings.auto_loss:
        if settings.only_all_pairs is not None:
            trials = all_pairs_alone(settings.only_all_pairs)
        else:
            trials, continued = choose_loss(
                settings.n_components, interactions, validation, shared_generator(settings.random_state, group),
                fraction=settings.validation_fraction, callback=callback, group=group,
            )  # fmt: skip
        settings = settings.with_loss(loss_of(trials))
    rng, solver = shared_generator(settings.random_state, group), settings.solver
    generator = torch.Generator().manual_seed(draw_seed(rng))

    pairs, ranking = interactions, None
    if validation is not None:
        ranking = validation_ranking(validation, interactions, rng)
    elif before is None and (settings.regularization == "auto" or not solver.tables_only):
        parts = hold_out(interactions, settings.validation_fraction, rng)
        ranking = validation_ranking(parts.valid, parts.train, rng)
        pairs = interactions if ranking is None else parts.train
    objective = settings.loss.objective(pairs)
    start = continued or initial_tables(pairs, settings.n_components, generator)
    if before is None:
        strength, start = _strength_and_start(settings, objective, start, ranking, rng, callback, group)
    else:
        strength = before.regularization_
        for table, known in zip(start, before.exact_embeddings_, strict=True):
            table[: len(known)] = torch.from_numpy(known)
    if solver.tables_only and pairs is not interactions:  # the held-out pairs of the choice are fitted too
        objective, ranking = settings.loss.objective(interactions), None

    pair = make_pair(settings, objective, strength, start, generator, group)
    del start  # its copy is in the towers
    if before is not None:
        _continue_encoders(pair, (before.left_encoder_, before.right_encoder_), solver.tables_only)
        max_iter = _steps_of_update(solver) if max_iter is None else max_iter
    solver.begin(pair, settings.loss)
    evaluate = None if ranking is None else ranking.metric
    history = train(solver, evaluate=evaluate, callback=callback, group=group, max_iter=max_iter)
    return Fitted(solver, pair, history, settings.loss, trials, interactions)


def _strength_and_start(
    settings: Settings,
    objective: Objective,
    random_start: Tables,
    ranking: ValidationRanking | None,
    rng: np.random.Generator,
    callback: Callback | None,
    group: Group,
) -> tuple[float, Tables]:
    strength, start = settings.regularization, random_start
    if not isinstance(settings.loss, AllPairs):
        # a small share of the noise level: scores of sampled losses are logits and must grow large
        strength = 0.005 * objective.noise_level(rng) if strength == "auto" else strength
    elif strength == "auto":
        noise = objective.noise_level(rng)
        found = choose_regularization(objective, start, ranking, noise=noise, callback=callback, group=group)
        strength, start = found.strength, found.tables
    elif settings.from_als:
        start = sweep(objective.loss(float(strength)), start, OF_CHOICES.start_sweeps, group)
    # a new ALS of few sweeps ranks better than one that has gone through all strengths
    return float(strength), start if settings.from_als else random_start


def make_pair(
    settings: Settings, objective: Objective, strength: float, start: Tables, generator: torch.Generator, group: Group
) -> TowerPair:
    """The towers, with copies of the user's modules, all on one device; id tables begin at `start`."""
    pairs, k, sides = objective.interactions, settings.n_components, []
    index = deepcopy(settings.index)
    device = _device_of(*settings.towers, index)
    features = pairs.left_features, pairs.right_features
    for given, size, own, table in zip(settings.towers, pairs.shape, features, start, strict=True):
        tower = given.build(size, k, own, generator) if isinstance(given, Tower) else deepcopy(given)
        if isinstance(tower, ResidualTower):
            tower.table.data.copy_(table)
        sides.append(Side(tower.to(device), size, own, group))
    left, right = sides
    index = index.to(device) if isinstance(index, nn.Module) else index
    return TowerPair(left, right, objective, strength, generator, index)


def _device_of(*parts: object) -> torch.device:
    """Where the given modules train: the CPU, or the one other device that any of them is on."""
    modules = [part for part in parts if isinstance(part, nn.Module)]
    found = {p.device for module in modules for p in module.parameters() if p.device.type != "cpu"}
    if len(found) > 1:
        raise ValueError(f"left, right and index are on {sorted(map(str, found))}; move them to one device")
    return found.pop() if found else torch.device("cpu")


def train(
    solver: AbstractSolver,
    *,
    evaluate: Callable[[Tensor, Tensor], float] | None = None,
    callback: Callback | None = None,
    group: Group = ALONE,
    max_iter: int | None = None,
) -> list[Record]:
    """Run `solver` and leave it at its best evaluated step; return one record a step.

    A record has `step` (from 1), `total`, `seconds` (without evaluation), `objective` and, with `evaluate`, `metric`,
    of which larger is better. `max_iter` replaces the solver's.
    """
    total, patience = max_iter or solver.max_iter or 1, solver.patience
    history, best, best_step, result = list[Record](), -np.inf, 0, None
    while len(history) < total:
        if patience is not None and result is not None and len(history) - best_step >= patience:
            break
        if solver.max_seconds is not None and history and history[-1]["seconds"] >= solver.max_seconds:
            break
        number, start = len(history) + 1, time.perf_counter()
        objective = solver.step()
        took = group.exchange(time.perf_counter() - start)[0]  # one clock for all processes, as it decides when to stop
        seconds = (history[-1]["seconds"] if history else 0.0) + took
        if not np.isfinite(objective):
            raise ValueError(
                f"the objective became {objective} at step {number}; lower learning_rate or raise regularization"
            )
        record = {"step": number, "total": total, "seconds": seconds, "objective": objective} | solver.notes()
        if evaluate is not None:
            record["metric"] = evaluate(*solver.ranked())
            if solver.ready() and (result is None or record["metric"] > best):
                result = None  # frees the old copy before the next one is made
                best, best_step, result = record["metric"], number, solver.result()
        history.append(record)
        if callback is not None:
            callback(number, record)
    if result is not None:
        solver.restore(result)
    return history


# ---- continuing a fit with more pairs -------------------------------------------------------------------------------


def _continue_encoders(pair: TowerPair, encoders: tuple[nn.Module | None, ...], tables_only: bool) -> None:
    """Load the fitted encoders of both sides, whose id tables hold embeddings."""
    for side, encoder in zip(pair.sides, encoders, strict=True):
        if side.encoder is None:
            continue
        if encoder is None:
            raise ValueError("a tower called with row numbers takes no more rows; fit again, or give it features")
        side.encoder.load_state_dict(encoder.state_dict())
        if isinstance(side.tower, ResidualTower) and not tables_only:
            with torch.no_grad():  # id embeddings are embeddings less the output of the branch
                side.tower.table -= side.encoded()


def _steps_of_update(solver: AbstractSolver) -> int | None:
    """The steps of a fit that continues, by default: a quarter of a fit's where towers are modules."""
    if solver.tables_only:
        return DEFAULTS.update_sweeps if isinstance(solver, ALS) else solver.max_iter
    return max(1, round(0.25 * (solver.max_iter or 1)))


def join_interactions(seen: Interactions, new: Interactions) -> Interactions:
    """The pairs of both, weights added, new ids last; ValueError if only one has features of a side."""
    (left_ids, left_new), (right_ids, right_new) = (
        _joined_ids(seen.left_ids, new.left_ids), _joined_ids(seen.right_ids, new.right_ids)
    )  # fmt: skip
    times = None
    if seen.timestamps is not None and new.timestamps is not None:
        times = np.concatenate([seen.timestamps, new.timestamps])
    return Interactions.from_pairs(
        np.concatenate([seen.left_ids[seen.rows], new.left_ids[new.rows]]),
        np.concatenate([seen.right_ids[seen.indices], new.right_ids[new.indices]]),
        np.concatenate([seen.weights, new.weights]), times,
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
        raise ValueError(f"the {lacking} have no {side} features; give fit and partial_fit all (a folder keeps none)")
    if given is None:
        return known
    if given.shape[1:] != known.shape[1:]:  # pyright: ignore[reportOptionalSubscript]
        raise ValueError(f"the {side} features have shape {given.shape}; in fit it was {known.shape}, give as many")
    if sp.issparse(known) or sp.issparse(given):
        return sp.csr_matrix(sp.vstack([sp.csr_matrix(known), sp.csr_matrix(given)[new]]))
    return np.concatenate([np.asarray(known), np.asarray(given)[new]])
