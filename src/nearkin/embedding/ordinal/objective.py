"""The objective of ordinal embedding as a finite sum that the solvers can minimize."""

from dataclasses import dataclass, field

import numpy as np

from nearkin import _check
from nearkin._distributed import ALONE, Group
from nearkin.embedding.ordinal import kernels
from nearkin.embedding.ordinal.losses import OrdinalLoss
from nearkin.records import as_indices
from nearkin.solvers import Plain, RowScaled, Rule, Snapshot, VarianceReduced

BLOCK = 4  # floats per block of a row: `kernels` works on blocks


def pad_rows(X: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """X (n, p) as blocks (n, ceil(p / 4), 4), padded with zeros."""
    n, p = X.shape
    blocks = -(-p // BLOCK)
    x = np.zeros((n, blocks * BLOCK), dtype)
    x[:, :p] = X
    return x.reshape(n, blocks, BLOCK)


def unpad_rows(x: np.ndarray, n_components: int) -> np.ndarray:
    """The inverse of `pad_rows`: a view (n, p)."""
    return x.reshape(len(x), -1)[:, :n_components]


def check_terms(indices: np.ndarray, n_objects: int, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Terms as the kernels read them without looking: uint32 indices below n_objects, and weights of mean 1, float64.

    Without weights these are empty, (0,). Raises ValueError for no terms, an index that is no object, a weight missing.
    """
    indices = as_indices(indices, "comparisons")
    if len(indices) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    if int(indices.max()) >= n_objects:
        row = int((indices >= n_objects).any(axis=1).argmax())
        raise ValueError(f"comparisons row {row} is {indices[row].tolist()}; there are only {n_objects} objects")
    if weights is None:
        return indices, np.empty(0)
    weights = _check.check_row_weights(weights, len(indices))
    return indices, weights / weights.mean()


@dataclass
class OrdinalObjective:
    """f(x) = (n / W) sum_q w_q f_q(x) with W = sum_q w_q: the sum per object, so steps and epsilon are free of sizes.

    indices (m, 3) or (m, 4) uint32, walked in the order given: shuffle them once before. Without weights w_q = 1. The
    points are blocks x (n, c, 4) of `dtype` (see `pad_rows`). As a finite sum its terms are F_q = n m / W w_q f_q.
    Raises ValueError for indices, weights or points that do not fit: the kernels behind it do not look.
    """

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    weights: np.ndarray | None = None
    dtype: type = np.float32
    group: Group = ALONE
    _position: int = field(default=0, init=False)  # where the next SVRG pass goes on

    def __post_init__(self) -> None:
        self.indices, weights = check_terms(self.indices, self.n_objects, self.weights)
        self._weights = weights.astype(self.dtype)
        self._loss = (self.loss.code, self.dtype(self.loss.parameter), self.loss.halves)

    @property
    def n_terms(self) -> int:
        return len(self.indices)

    def value(self, x: np.ndarray) -> float:
        """f(x), summed in float64."""
        self.check_points(x)
        indices, weights, group = self._share()
        total = np.array([kernels.sum_values(x, indices, weights, self.loss.code, self.dtype(self.loss.parameter))])
        group.all_reduce(total)
        return float(total[0]) * self.n_objects / self.n_terms

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x; the processes of a group sum a share of the terms each."""
        self.check_points(x)
        indices, weights, group = self._share()
        gradient = np.zeros_like(x)
        kernels.sum_gradients(x, indices, weights, *self._loss, gradient, np.empty((0, 2), self.dtype))
        group.all_reduce(gradient)
        gradient *= self.dtype(self.n_objects / self.n_terms)
        return gradient

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x, the full gradient and every term's two slopes, so that a pass need not compute them again."""
        self.check_points(x)
        slopes = np.empty((self.n_terms, 2), self.dtype)
        gradient = np.zeros_like(x)
        kernels.sum_gradients(x, self.indices, self._weights, *self._loss, gradient, slopes)
        gradient *= self.dtype(self.n_objects / self.n_terms)
        return Snapshot(x.copy(), gradient, slopes)

    def largest_step(self, batch_size: int) -> float:
        """1 / (12 n w), w the largest weight: what the slopes of a term allow, and a rule of thumb for some losses.

        The slopes' part of a term's Hessian is at most 2 s M with |M| = 3 (SVRG-SBB eqs. 53-57). Slopes are s <= 1 for
        GNMDS, STE and t-STE with alpha >= 1; CKL's reach 1 / mu and SOE's grow without bound where two points coincide,
        so that single terms of these two may overshoot at this step too. It is half of what s = 1 allows: of the steps
        2 / 6, 1 / 6 and 1 / 12 only the last never ran away with five answers per object, and none is felt with
        thirty. A batch adds up the 3 batch_size / n terms that share an object.
        """
        heaviest = float(self._weights.max()) if len(self._weights) else 1.0
        shared = max(1.0, 3.0 * batch_size / self.n_objects)
        return 1.0 / (12.0 * heaviest * shared * self.n_objects)

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        """See `FiniteSum`. Raises ValueError if x, a snapshot or an accumulator does not fit, or a batch is empty."""
        self.check_points(x)
        terms = self.indices, self._weights, *self._loss
        match rule:
            case Plain(step):
                kernels.sgd_pass(x, *terms, self.dtype(step * self.n_objects))
            case RowScaled(step, accumulator):
                if accumulator.shape != (self.n_objects,):
                    raise ValueError(f"accumulator has shape {accumulator.shape}; it must be ({self.n_objects},)")
                kernels.adagrad_pass(x, accumulator, *terms, self.dtype(step))
            case VarianceReduced(step, snapshot, batch_size, n_terms):
                self.check_points(x, snapshot.x, snapshot.gradient)
                for value, name in ((batch_size, "batch_size"), (n_terms, "n_terms")):
                    _check.check_integer(value, name, low=1)  # a batch of none would never end
                start, known = (self._position, n_terms), (snapshot.x, snapshot.gradient, snapshot.memo)
                size, scale = min(batch_size, n_terms), self.dtype(self.n_objects)
                self._position = kernels.svrg_pass(x, *known, *terms, *start, self.dtype(step), scale, size)

    def _share(self) -> tuple[np.ndarray, np.ndarray, Group]:
        """The terms that fall to this process, and their weights."""
        rows = slice(*self.group.share(self.n_terms))
        return self.indices[rows], self._weights[rows], self.group

    def check_points(self, *points: np.ndarray) -> None:
        """ValueError if points are not blocks (n, c, 4): the kernels do not look."""
        for x in points:
            if x.ndim != 3 or x.shape != (self.n_objects, points[0].shape[1], BLOCK):
                raise ValueError(
                    f"x has shape {x.shape}; it must be ({self.n_objects}, blocks, {BLOCK}), made by pad_rows"
                )
