"""Contracts between packages: progress, how a solver runs, quantizers, codecs, trainable indexes.

Nothing here computes. A package that receives an object from another uses only the members of its type here. An
optional ability is a second type, checked by `isinstance` before any work starts."""

from __future__ import annotations  # the types of torch and FAISS are named, not loaded

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from nearkin._fields import StrPath
from nearkin._types import ArrayLike, Fields, Record

if TYPE_CHECKING:
    import faiss
    import torch
    from torch import Tensor

    from nearkin.records import RowForms


class Callback(Protocol):
    """`callback(step, record)`: called after each step of long work; its result is not used.

    `step` counts what is done, from 1. The record holds

    - "total": the number of steps at most, where it is known;
    - "objective": the minimized value at this step, if there is one, as a mean: of a vector, of an observed pair (by
      weight, with the penalties), of a comparison;
    - "seconds": time spent so far, where it is measured;
    - other values, named in the docstring of the function that takes the callback.

    A fitted estimator keeps the same records as `history_`, a list of dicts in the order of the steps.
    """

    def __call__(self, step: int, record: Fields, /) -> object: ...


def ignore(step: int, record: Fields) -> None:
    """A callback that does nothing."""


@dataclass(frozen=True)
class Run:
    """Limits and callback of an iterative solver.

    max_iter: maximum number of steps, in the solver's unit (epochs, sweeps, iterations).
    tol: stop when a step lowers the objective by less than this share of it, or of `floor` if that is larger; 0 for
        never.
    callback: called after every step.
    validate: a function of the point, smaller is better; the solver then returns the best point visited.
    """

    max_iter: int
    tol: float = 0.0
    callback: Callback | None = None
    validate: Callable[[np.ndarray], float] | None = None
    floor: float = 0.0


@runtime_checkable
class Codec(Protocol):
    """Vectors to codes and back: the codec for which `nk.Rotation` trains a rotation."""

    def encode(self, X: np.ndarray, /) -> np.ndarray:
        """Codes (n, bytes) of vectors X (n, d)."""
        ...

    def decode(self, codes: np.ndarray, /) -> np.ndarray:
        """Vectors (n, d) decoded from the codes."""
        ...


@runtime_checkable
class Quantizer(Protocol):
    """What `nearkin.Index` needs of a quantizer: all product quantizers, residual quantizers and hashers have it."""

    n_features_in_: int

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback = ignore) -> Self:
        """Train on vectors X (n, d); `callback` is called after each step."""
        ...

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) of vectors X (n, d); a vector's code does not depend on its batch."""
        ...

    def save(self, path: StrPath) -> None:
        """Write a folder; it appears whole or not at all."""
        ...


@runtime_checkable
class VectorCodes(Quantizer, Protocol):
    """A quantizer to bytes, whose codes FAISS compares with queries: metrics "l2", "ip" and "cosine"."""

    normalized_: bool | None
    """Whether it was fitted on rows of length 1; None where that is not known."""

    @property
    def ranks_by(self) -> tuple[str, ...]:
        """Metrics by which FAISS's scores of decoded vectors stand even if all vectors of the index have one norm: of
        codes that are trained for the order by that metric, or are finer than the vectors' norms differ."""
        ...

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty FAISS index for its codes; `metric` is "l2" or "ip"."""
        ...

    def faiss_codes(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) uint8 of vectors X (n, d) as that index stores them."""
        ...

    def add_to(self, index: faiss.Index, X: ArrayLike) -> None:
        """Add vectors X (n, d) to that index, with the codes of `encode`."""
        ...

    def distortion(self, X: ArrayLike) -> float:
        """The mean squared distance of vectors X (n, d) from their decoded codes."""
        ...


@runtime_checkable
class BitCodes(Quantizer, Protocol):
    """A quantizer to packed bits, compared by Hamming distance: the metric "hamming"."""

    n_bits: int

    def project(self, X: ArrayLike) -> np.ndarray:
        """Real values (n, n_bits) whose signs are the bits."""
        ...


@runtime_checkable
class LinearBits(BitCodes, Protocol):
    """Bits that are the signs of a linear map, so that queries may stay real-valued."""

    projection_: np.ndarray  # (d, n_bits)

    def search(
        self, Q: ArrayLike, codes: np.ndarray, k: int = 10, *, asymmetric: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """(scores, ids) (q, k) of the nearest codes (n, bytes); with `asymmetric` by inner products with the signs."""
        ...


@runtime_checkable
class TrainableIndex(Protocol):
    """What `TwoTower(index=...)` needs: a torch module that quantizes the right side while the towers train.

    A plain `torch.nn.Module` with `forward(Q (n, k)) -> (quantized Q, distortion)` is one, if gradients reach Q.
    """

    training: bool

    def __call__(self, Q: Tensor, /) -> tuple[Tensor, Tensor]: ...

    def parameters(self) -> Iterable[torch.nn.Parameter]: ...

    def state_dict(self) -> Record: ...

    def load_state_dict(self, state: Fields, /) -> object: ...

    def train(self, mode: bool = True, /) -> Self: ...

    def eval(self) -> Self: ...


@runtime_checkable
class PhasedIndex(TrainableIndex, Protocol):
    """A trainable index that passes vectors through at first, and whose rotation is optimized on its manifold."""

    @property
    def phase(self) -> str:
        """ "pass", "collect" or "train"; only in "train" vectors are quantized."""
        ...

    def rotation_parameters(self) -> list[torch.nn.Parameter]:
        """Parameters that need an optimizer on the manifold; may be empty."""
        ...

    def rotation_optimizer(self) -> torch.optim.Optimizer | None:
        """The optimizer of these parameters, None if there are none."""
        ...


@runtime_checkable
class JointIndex(TrainableIndex, Protocol):
    """A trainable index that is also trained block by block with id tables (`TwoTower(solver="joint")`)."""

    def start(self, X: ArrayLike, weights: ArrayLike | None = None) -> bool:
        """Train codebooks from vectors X (n, k) now; False if there are too few vectors."""
        ...

    def descend(self, rows: Tensor, targets: Tensor, forms: RowForms) -> tuple[Tensor, float]:
        """Improve codes and codebooks under each vector's curvature; return the quantized vectors and the loss."""
        ...

    def can_descend(self) -> bool:
        """Whether `descend` works for this index (it does not with inverted lists)."""
        ...


@runtime_checkable
class IndexMaker(Protocol):
    """An argument of `TwoTower(index=...)` that makes a `JointIndex`, instead of a trainable index."""

    def trainable(self, n: int) -> JointIndex:
        """A new index of these settings for n vectors; ValueError if they cannot have it."""
        ...
