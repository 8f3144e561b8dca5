"""What `TwoTower`'s parameters stand for: strings become objects, "auto" a solver; what does not fit is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from sklearn.base import BaseEstimator
from torch import nn

from nearkin._check import check_choice, check_real
from nearkin.contracts import JointIndex, PhasedIndex, TrainableIndex
from nearkin.embedding.two_tower.batch_losses.in_batch_hinge import InBatchHinge
from nearkin.embedding.two_tower.batch_losses.in_batch_softmax import InBatchSoftmax
from nearkin.embedding.two_tower.batch_losses.sampled_bce import SampledBCE
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.solvers.adam import Adam
from nearkin.embedding.two_tower.solvers.als import ALS
from nearkin.embedding.two_tower.solvers.full_batch import LBFGS, GradientDescent
from nearkin.embedding.two_tower.solvers.gauss_newton import GaussNewton
from nearkin.embedding.two_tower.solvers.joint import Joint
from nearkin.embedding.two_tower.solvers.sogram import SOGram
from nearkin.embedding.two_tower.solvers.sub_blocks import SubBlocks
from nearkin.embedding.two_tower.towers import HIDDEN, Tower
from nearkin.embedding.two_tower.training import Limits
from nearkin.records import Interactions

STARTS = ("auto", "als", "random")
_INDEX = ("__call__", "parameters", "state_dict", "load_state_dict", "train", "eval", "training")
_PHASED = ("phase", "rotation_parameters", "rotation_optimizer")
_JOINT = (*_PHASED, "start", "descend", "can_descend")


@dataclass(eq=False, repr=False, kw_only=True)
class Auto(BaseEstimator):
    """`TwoTower(solver=Auto(max_iter=...))`: the solver that "auto" means, with limits of your own.

    That is ALS for the default towers, `Joint` for id tables with an `IndexingLayer`, and otherwise Adam. max_iter:
    steps at most, None for the solver's own number; max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int = 10

    name: ClassVar[str] = "auto"

    def become(self, kind: type) -> Any:
        """A solver of this kind with these limits."""
        steps = {} if self.max_iter is None else {"max_iter": self.max_iter}
        return kind(max_seconds=self.max_seconds, patience=self.patience, **steps)


@dataclass(eq=False, repr=False)
class Indexed(BaseEstimator):
    """`TwoTower(index=Indexed(module, distortion_weight=...))`: what the right side is trained through.

    module: a `nearkin.contracts.TrainableIndex`, such as `nk.quantization.IndexingLayer`; distortion_weight: what its
    distortion is multiplied by, beside the mean loss of an observed pair.
    """

    module: TrainableIndex
    distortion_weight: float = 1.0


LOSSES = {kind.name: kind for kind in (AllPairs, InBatchSoftmax, InBatchHinge, SampledBCE)}
SOLVERS: dict[str, Callable[[], Any]] = {
    "auto": Auto,
    "als": ALS,
    "ials++": partial(ALS, block_size=16),
    "adam": Adam,
    "gd": GradientDescent,
    "l-bfgs": LBFGS,
    "joint": Joint,
    "gauss-newton": GaussNewton,
    "gauss-newton-joint": partial(GaussNewton, alternating=False),
    "sub-blocks": SubBlocks,
    "sogram": SOGram,
}


class Choices(NamedTuple):
    """What a fit is made of, every default filled in."""

    loss: Any  # one of LOSSES
    solver: Any  # what one of SOLVERS makes, but never `Auto`
    limits: Limits
    towers: tuple[nn.Module | Tower, nn.Module | Tower]
    index: Indexed | None
    from_als: bool  # whether tables begin where ALS ends

    @property
    def sampled(self) -> Any:
        """The loss if it is one of batches, else None."""
        return None if isinstance(self.loss, AllPairs) else self.loss


def choose(
    loss: object, solver: object, towers: tuple[object, object], index: object, interactions: Interactions
) -> Choices:
    """The settings that `TwoTower`'s parameters stand for; ValueError or TypeError where they do not go together."""
    loss = settings(loss, "loss", LOSSES)
    wrapped = _checked_index(index)
    featured = [features is not None for features in (interactions.left_features, interactions.right_features)]
    kinds = tuple(_checked_tower(tower, name) for tower, name in zip(towers, ("left", "right"), strict=True))
    _check_widths_are_used(towers, featured)
    own = any(isinstance(tower, nn.Module) for tower in kinds)
    solver = settings(solver, "solver", SOLVERS)
    solver = _choose_solver(loss, solver, own or (any(featured) and wrapped is not None), wrapped)
    limits = solver.limits(not isinstance(loss, AllPairs)) if isinstance(solver, Adam) else solver.limits()
    from_als = False
    if not solver.tables_only:
        start = check_choice(solver.start, "start", STARTS)
        from_als = start == "als" or (start == "auto" and isinstance(loss, AllPairs) and not own)
    return Choices(loss, solver, limits, kinds, wrapped, from_als)  # pyright: ignore[reportArgumentType]


def settings(given: object, name: str, known: Mapping[str, Callable[[], Any]]) -> Any:
    """The object that a string stands for, or the object itself; ValueError or TypeError if it is neither."""
    if isinstance(given, str):
        return known[check_choice(given, name, known)]()
    kinds = tuple(maker.func if isinstance(maker, partial) else maker for maker in known.values())
    if not isinstance(given, kinds):  # pyright: ignore[reportArgumentType]
        raise TypeError(
            f"{name} is of type {type(given).__name__}; it must be one of {', '.join(map(repr, known))}, or one of the "
            f"objects {', '.join(sorted({kind.__name__ for kind in kinds}))} of nearkin.embedding"  # pyright: ignore[reportAttributeAccessIssue]
        )
    return given


def _choose_solver(loss: Any, solver: Any, custom: bool, index: Indexed | None) -> Any:
    """What "auto" becomes; ValueError for a solver that cannot train these towers, this loss or this index.

    `custom`: the towers are more than id tables.
    """
    name, module = solver.name, None if index is None else index.module
    if not isinstance(loss, AllPairs):
        if not isinstance(solver, Auto | Adam):
            raise ValueError(f"solver is {name!r}; loss={loss.name!r} is trained by solver='adam' or 'auto'")
        return solver.become(Adam) if isinstance(solver, Auto) else solver
    if isinstance(solver, Auto):
        joint = isinstance(module, JointIndex) and module.can_descend()
        return solver.become(ALS if module is None and not custom else Joint if joint and not custom else Adam)
    if isinstance(solver, Joint):
        _check_joint(module)
    if module is not None and not solver.through_index:
        raise ValueError(f"solver is {name!r}, which cannot train through an index; use solver='adam' or 'auto'")
    if solver.tables_only and custom:
        raise ValueError(f"solver is {name!r}, which cannot train modules of your own; use solver='adam' or 'auto'")
    return solver


def _check_joint(module: TrainableIndex | None) -> None:
    """ValueError unless the index can be learned block by block."""
    needs = "solver is 'joint', which needs index=nk.quantization.IndexingLayer(...)"
    if module is None:
        raise ValueError(needs)
    if not isinstance(module, JointIndex):
        raise ValueError(f"{needs}; {type(module).__name__} lacks {_lacking(module, _JOINT)}")
    if not module.can_descend():
        raise ValueError(f"{needs} without coarse cells; this one's can_descend() is False, use solver='adam'")


def _checked_index(index: Any) -> Indexed | None:
    """The index as an `Indexed`; TypeError that names what the module lacks."""
    if index is None:
        return None
    wrapped = index if isinstance(index, Indexed) else Indexed(index)
    check_real(wrapped.distortion_weight, "distortion_weight", low=0)
    module, kind = wrapped.module, type(wrapped.module).__name__
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


def _checked_tower(tower: object, side: str) -> nn.Module | Tower:
    if tower is None:
        return Tower()
    if not isinstance(tower, nn.Module | Tower):
        raise TypeError(
            f"{side} is of type {type(tower).__name__}; it must be None, nk.embedding.Tower(hidden=...) or a "
            "torch.nn.Module"
        )
    return tower


def _check_widths_are_used(towers: tuple[object, object], featured: list[bool]) -> None:
    """ValueError for widths of hidden layers that no side has features for."""
    for side, tower in zip(("left", "right"), towers, strict=True):
        if isinstance(tower, Tower) and tuple(tower.hidden) != HIDDEN and not any(featured):
            raise ValueError(
                f"{side} is Tower(hidden={tower.hidden!r}), but the interactions have no features to put through it; "
                "leave it out, or pass interactions.with_features(left=..., right=...)"
            )
