"""The settings of a fit: `TwoTower`'s parameters as objects, "auto" as a solver, checked against pairs and index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

from sklearn.base import BaseEstimator
from torch import nn

from nearkin._check import check_choice, check_integer, check_real
from nearkin._types import Seed
from nearkin.contracts import IndexMaker, JointIndex, PhasedIndex, TrainableIndex
from nearkin.embedding.two_tower.als import ALS
from nearkin.embedding.two_tower.baselines import InBatchHinge, InBatchSoftmax, SampledBCE, SOGram
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.gradient import LBFGS, Adam, GaussNewton
from nearkin.embedding.two_tower.joint import Joint
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import HIDDEN, Tower
from nearkin.embedding.two_tower.training import AbstractSolver
from nearkin.records import Interactions

Made = TypeVar("Made")
_INDEX = ("__call__", "parameters", "state_dict", "load_state_dict", "train", "eval", "training")
_PHASED = ("phase", "rotation_parameters", "rotation_optimizer")
_JOINT = ("start", "descend", "can_descend")


@dataclass(eq=False, repr=False, kw_only=True)
class Auto(BaseEstimator):
    """`TwoTower(solver=Auto(max_iter=...))`: the solver that "auto" means, with other limits.

    That is ALS for the default towers, `Joint` for id tables with an `IndexingLayer`, and otherwise Adam. max_iter:
    steps at most, None for the solver's own number; max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int = 10

    name: ClassVar[str] = "auto"


@dataclass(eq=False, repr=False)
class Indexed(BaseEstimator):
    """`TwoTower(index=Indexed(module, distortion_weight=...))`: the index through which the right side is trained.

    module: a `nearkin.contracts.TrainableIndex`, such as `nk.quantization.IndexingLayer`, or `nk.SemanticIds`;
    distortion_weight: weight of its distortion, in units of the mean loss of an observed pair.
    """

    module: TrainableIndex | IndexMaker
    distortion_weight: float = 1.0


Loss: TypeAlias = AllPairs | CosineSoftmax | InBatchSoftmax | InBatchHinge | SampledBCE

LOSSES: dict[str, Callable[[], Loss]] = {  # "auto" is all pairs where nothing is chosen
    "auto": AllPairs,
    **{kind.name: kind for kind in (AllPairs, CosineSoftmax, InBatchSoftmax, InBatchHinge, SampledBCE)},
}
SOLVERS: dict[str, Callable[[], AbstractSolver | Auto]] = {
    "auto": Auto,
    "als": ALS,
    "ials++": partial(ALS, block_size=16),
    "adam": Adam,
    "l-bfgs": LBFGS,
    "joint": Joint,
    "gauss-newton": GaussNewton,
    "gauss-newton-joint": partial(GaussNewton, alternating=False),
    "sogram": SOGram,
    "sphere": SphereSweeps,
}


@dataclass(frozen=True)
class Settings:
    """The settings of a fit except its pairs: every parameter checked, every default filled in."""

    n_components: int
    loss: Loss
    auto_loss: bool  # `loss` is all pairs until one is chosen
    only_all_pairs: str | None  # why "auto" cannot choose another loss
    given: AbstractSolver | Auto
    solver: AbstractSolver  # a copy, which the fit changes
    regularization: float | str  # a number, or "auto"
    towers: tuple[nn.Module | Tower, nn.Module | Tower]
    index: Indexed | None
    from_als: bool  # whether tables begin with the result of a few sweeps of ALS
    validation_fraction: float
    random_state: Seed


def check_settings(model: Any, interactions: Interactions, validation: Interactions | None = None) -> Settings:
    """The parameters of a `TwoTower` on these pairs; ValueError or TypeError for a bad value or combination."""
    check_pairs(interactions, validation)
    k, regularization = check_integer(model.n_components, "n_components", low=1), model.regularization
    check_real(model.validation_fraction, "validation_fraction", above=0, high=0.5)
    if regularization != "auto":
        check_real(regularization, "regularization", low=0)
    loss = as_object(model.loss, "loss", LOSSES)
    through = None if model.index is None else _checked_index(model.index, interactions.shape[1])
    featured = interactions.left_features is not None or interactions.right_features is not None
    towers = _checked_tower(model.left, "left", featured), _checked_tower(model.right, "right", featured)
    custom = any(isinstance(tower, nn.Module) for tower in towers)
    given = as_object(model.solver, "solver", SOLVERS)
    chosen = _solver_for(loss, given, custom or (featured and through is not None), through)
    if isinstance(loss, CosineSoftmax):
        if regularization not in ("auto", 0):
            raise ValueError(
                f"regularization is {regularization!r}, but rows of length 1 have no penalty; leave it out, "
                "CosineSoftmax(temperature=...) sets their strength"
            )
        if featured:
            raise ValueError("interactions has features, which loss='cosine-softmax' does not use; fit without them")
        regularization = 0.0
    only = None
    if custom or featured:
        only = "features, and towers of your own, are trained by this loss only"
    elif regularization != "auto":
        only = "a strength of regularization was given, which this loss alone has"
    elif k < 2:
        only = "n_components is 1, and rows of length 1 need two"
    elif not isinstance(given, Auto) and not isinstance(chosen, Joint):
        only = f"solver {given.name!r} was given, which trains this loss only"
    elif through is not None and not isinstance(chosen, Joint):
        only = "this index is trained by this loss only"
    from_als = chosen.start == "als" or (chosen.start == "auto" and isinstance(loss, AllPairs) and not custom)
    return Settings(
        k, loss, isinstance(model.loss, str) and model.loss == "auto", only, given, chosen, regularization, towers,
        through, from_als, model.validation_fraction, model.random_state,
    )  # fmt: skip


def with_loss(settings: Settings, loss: Loss) -> Settings:
    """The settings with the loss that "auto" chose, on id tables."""
    if isinstance(loss, AllPairs):
        return replace(settings, loss=loss)
    solver = _solver_for(loss, settings.given, False, settings.index)
    return replace(settings, loss=loss, solver=solver, from_als=False, regularization=0.0)


def check_pairs(interactions: object, validation: object = None) -> None:
    """TypeError unless both are `Interactions`, of which the second may be None; ValueError unless of one shape."""
    for name, pairs in (("interactions", interactions), ("validation", validation)):
        if not isinstance(pairs, Interactions) and (name == "interactions" or pairs is not None):
            raise TypeError(
                f"{name} is of type {type(pairs).__name__}; it must be Interactions, "
                "use nk.read_interactions(path) or Interactions.from_matrix(matrix)"
            )
    if validation is not None and validation.shape != interactions.shape:
        raise ValueError(
            f"validation has shape {validation.shape}; it must be {interactions.shape}, as interactions. "
            "Split one record, for example with nk.data.split_random"
        )


def as_object(given: object, name: str, known: Mapping[str, Callable[[], Made]]) -> Made:
    """The object of that name, or `given` if it is one, or a solver of your own; ValueError or TypeError otherwise."""
    if isinstance(given, str):
        return known[check_choice(given, name, known)]()
    kinds = tuple(maker.func if isinstance(maker, partial) else maker for maker in known.values())
    if not isinstance(given, (*kinds, AbstractSolver) if known is SOLVERS else kinds):  # pyright: ignore[reportArgumentType]
        names = sorted({kind.__name__ for kind in kinds})  # pyright: ignore[reportAttributeAccessIssue]
        raise TypeError(
            f"{name} is of type {type(given).__name__}; it must be one of {', '.join(map(repr, known))}, or one of the "
            f"objects {', '.join(names)} of nearkin.embedding"
        )
    return given  # pyright: ignore[reportReturnType]


def _solver_for(
    loss: Loss, solver: AbstractSolver | Auto, beyond_tables: bool, index: Indexed | None
) -> AbstractSolver:
    """A checked copy of `solver` or of what "auto" means; ValueError for towers `beyond_tables` that it cannot fit."""
    name, module = solver.name, None if index is None else index.module
    on_cosines = isinstance(loss, CosineSoftmax)
    if isinstance(solver, Auto):
        kind: type[AbstractSolver] = Adam
        if on_cosines:
            kind = SphereSweeps if module is None else Joint
        elif isinstance(loss, AllPairs) and not beyond_tables:
            joint = isinstance(module, JointIndex) and module.can_descend()
            kind = ALS if module is None else Joint if joint else Adam
        limits = {"max_seconds": solver.max_seconds, "patience": solver.patience}
        solver = kind(**limits) if solver.max_iter is None else kind(max_iter=solver.max_iter, **limits)
    if on_cosines != isinstance(solver, SphereSweeps) and not (on_cosines and isinstance(solver, Joint)):
        raise ValueError(
            f"solver is {name!r} and loss={loss.name!r}; 'cosine-softmax' and 'sphere' go only together, or with an "
            "index 'cosine-softmax' and 'joint'"
        )
    if not isinstance(loss, AllPairs | CosineSoftmax) and not isinstance(solver, Adam):
        raise ValueError(f"solver is {name!r}; loss={loss.name!r} is trained by solver='adam' or 'auto'")
    if isinstance(solver, Joint):
        needs = "solver is 'joint', which needs index=nk.quantization.IndexingLayer(...)"
        if module is None:
            raise ValueError(needs)
        if not isinstance(module, JointIndex):
            raise ValueError(f"{needs}; {type(module).__name__} lacks {_lacking(module, _JOINT)}")
        if not module.can_descend():
            raise ValueError(f"{needs} without coarse cells; this one's can_descend() is False, use solver='adam'")
    if isinstance(solver, Adam) and isinstance(module, JointIndex) and not list(module.parameters()):
        raise ValueError(
            f"index is learned by solver='joint' alone, and solver {name!r} with loss={loss.name!r} is not that; take "
            "loss='auto' and solver='auto', and leave out features and towers of your own"
        )
    if module is not None and not solver.through_index:
        raise ValueError(f"solver is {name!r}, which cannot train through an index; use solver='adam' or 'auto'")
    if solver.tables_only and beyond_tables:
        raise ValueError(f"solver is {name!r}, which cannot train modules of your own; use solver='adam' or 'auto'")
    solver = type(solver)(**solver.get_params())
    solver.check(isinstance(loss, AllPairs | CosineSoftmax))
    return solver


def _checked_index(index: object, n_rights: int) -> Indexed:
    """The index as an `Indexed`; TypeError that names the methods that the module lacks."""
    wrapped = index if isinstance(index, Indexed) else Indexed(index)  # pyright: ignore[reportArgumentType]
    check_real(wrapped.distortion_weight, "distortion_weight", low=0)
    module, kind = wrapped.module, type(wrapped.module).__name__
    if isinstance(module, IndexMaker):
        return Indexed(module.trainable(n_rights), wrapped.distortion_weight)
    if not isinstance(module, TrainableIndex):
        raise TypeError(
            f"index is of type {kind}, which lacks {_lacking(module, _INDEX)}; it must be a torch.nn.Module with "
            "forward(Q) -> (quantized Q, distortion), such as nk.quantization.IndexingLayer"
        )
    if not isinstance(module, PhasedIndex) and set(_PHASED) & set(dir(module)):
        raise TypeError(
            f"index is of type {kind}, which has some of {', '.join(_PHASED)} but lacks {_lacking(module, _PHASED)}; "
            "give it all of them or none, see nearkin.contracts.PhasedIndex"
        )
    return wrapped


def _lacking(thing: object, names: tuple[str, ...]) -> str:
    present = set(dir(thing))
    return ", ".join(name for name in names if name not in present)


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
