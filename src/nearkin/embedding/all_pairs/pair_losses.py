"""Losses of one observed pair: value, first and second derivative in the prediction (ESL, section 2.2)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus


class AbstractPairLoss(ABC):
    """l(y, z), twice differentiable and convex in the prediction z; all three work entry by entry on (nnz,) tensors."""

    @abstractmethod
    def value(self, y: Tensor, z: Tensor) -> Tensor: ...

    @abstractmethod
    def first(self, y: Tensor, z: Tensor) -> Tensor: ...

    @abstractmethod
    def second(self, y: Tensor, z: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Squared(AbstractPairLoss):
    """l = (y - z)^2 / 2."""

    def value(self, y: Tensor, z: Tensor) -> Tensor:
        return (y - z).square_().mul_(0.5)

    def first(self, y: Tensor, z: Tensor) -> Tensor:
        return z - y

    def second(self, y: Tensor, z: Tensor) -> Tensor:
        return torch.ones_like(z)


@dataclass(frozen=True)
class Logistic(AbstractPairLoss):
    """l = log(1 + exp(-s z)), where s = 1 for y > 0 and -1 otherwise."""

    def value(self, y: Tensor, z: Tensor) -> Tensor:
        return softplus(-_sign(y) * z)

    def first(self, y: Tensor, z: Tensor) -> Tensor:
        s = _sign(y)
        return -s * torch.sigmoid(-s * z)

    def second(self, y: Tensor, z: Tensor) -> Tensor:
        return torch.sigmoid(z) * torch.sigmoid(-z)


@dataclass(frozen=True)
class SquaredHinge(AbstractPairLoss):
    """l = max(0, 1 - s z)^2 / 2, where s = 1 for y > 0 and -1 otherwise."""

    def value(self, y: Tensor, z: Tensor) -> Tensor:
        return (1 - _sign(y) * z).clamp_(min=0).square_().mul_(0.5)

    def first(self, y: Tensor, z: Tensor) -> Tensor:
        s = _sign(y)
        return -s * (1 - s * z).clamp_(min=0)

    def second(self, y: Tensor, z: Tensor) -> Tensor:
        return (_sign(y) * z < 1).to(z.dtype)


@dataclass(frozen=True)
class CustomPairLoss(AbstractPairLoss):
    """A loss of the user's own from three functions of (y, z), each entry by entry; see `check_convex`."""

    value_function: Callable[[Tensor, Tensor], Tensor]
    first_function: Callable[[Tensor, Tensor], Tensor]
    second_function: Callable[[Tensor, Tensor], Tensor]

    def value(self, y: Tensor, z: Tensor) -> Tensor:
        return self.value_function(y, z)

    def first(self, y: Tensor, z: Tensor) -> Tensor:
        return self.first_function(y, z)

    def second(self, y: Tensor, z: Tensor) -> Tensor:
        return self.second_function(y, z)


LOSSES: dict[str, AbstractPairLoss] = {"squared": Squared(), "logistic": Logistic(), "squared-hinge": SquaredHinge()}


def pair_loss(loss: str | AbstractPairLoss) -> AbstractPairLoss:
    """The loss of that name, or `loss` itself if it is one; ValueError or TypeError otherwise."""
    if isinstance(loss, AbstractPairLoss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(
            f"loss is of type {type(loss).__name__}; it must be one of {', '.join(map(repr, LOSSES))} "
            "or a CustomPairLoss(value, first, second)"
        )
    if loss not in LOSSES:
        raise ValueError(f"loss is {loss!r}; it must be one of {', '.join(map(repr, LOSSES))} or a CustomPairLoss")
    return LOSSES[loss]


def check_convex(loss: AbstractPairLoss, labels: Tensor) -> None:
    """ValueError unless l'' >= 0 for the labels' range and predictions on [-L, L], L = 4 (1 + max |label|).

    The Gauss-Newton matrix is positive semi-definite only for convex losses, so this is asked before any training.
    """
    if not len(labels):
        return
    reach = 4 * (1 + float(labels.abs().max()))
    z = torch.linspace(-reach, reach, 257, dtype=torch.float64)
    for y in torch.unique(torch.quantile(labels.double()[:100_000], torch.linspace(0, 1, 5, dtype=torch.float64))):
        second = loss.second(y.expand_as(z), z)
        if not bool((second >= 0).all()):
            at = float(z[torch.argmin(second)])
            raise ValueError(
                f"loss is not convex: its second derivative at label {float(y):g} and prediction {at:g} is "
                f"{float(second.min()):g}; it must be at least 0 everywhere, use 'squared' or 'logistic'"
            )


def _sign(y: Tensor) -> Tensor:
    return torch.where(y > 0, 1.0, -1.0).to(y.dtype)
