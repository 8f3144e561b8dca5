"""The objective of ordinal embedding as a finite sum that the solvers can minimize."""

from dataclasses import dataclass, field

import numpy as np

from nearkin._distributed import Group, current
from nearkin.embedding.ordinal import kernels as kernels
from nearkin.embedding.ordinal.losses import OrdinalLoss
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


@dataclass
class OrdinalObjective:
    """f(x) = (n / W) sum_q w_q f_q(x) with W = sum_q w_q: the sum per object, so steps and epsilon are free of sizes.

    indices (m, 3) or (m, 4) uint32, walked in the order given: shuffle them once before. Without weights w_q = 1. The
    points are blocks x (n, c, 4) of `dtype` (see `pad_rows`). As a finite sum its terms are F_q = n m / W w_q f_q.
    """

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    weights: np.ndarray | None = None
    dtype: type = np.float32
    _position: int = field(default=0, init=False)  # where the next SVRG pass goes on

    def __post_init__(self) -> None:
        self.indices = np.ascontiguousarray(self.indices, np.uint32)
        self._weights = np.empty(0, self.dtype)
        if self.weights is not None:
            self._weights = np.ascontiguousarray(self.weights / np.mean(self.weights, dtype=np.float64), self.dtype)
        self._loss = (self.loss.code, self.dtype(self.loss.parameter), self.loss.halves)

    @property
    def n_terms(self) -> int:
        return len(self.indices)

    def value(self, x: np.ndarray) -> float:
        """f(x), summed in float64."""
        indices, weights, group = self._share()
        total = np.array([kernels.sum_values(x, indices, weights, self.loss.code, self.dtype(self.loss.parameter))])
        group.all_reduce(total)
        return float(total[0]) * self.n_objects / self.n_terms

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x; the processes of a group sum a share of the terms each."""
        indices, weights, group = self._share()
        gradient = np.zeros_like(x)
        kernels.sum_gradients(x, indices, weights, *self._loss, gradient, np.empty((0, 2), self.dtype))
        group.all_reduce(gradient)
        gradient *= self.dtype(self.n_objects / self.n_terms)
        return gradient

    def _share(self) -> tuple[np.ndarray, np.ndarray, Group]:
        """The terms that fall to this process, and their weights."""
        group = current()
        rows = slice(*group.share(self.n_terms))
        return self.indices[rows], self._weights[rows], group

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x, the full gradient and every term's two slopes, so that a pass need not compute them again."""
        slopes = np.empty((self.n_terms, 2), self.dtype)
        gradient = np.zeros_like(x)
        kernels.sum_gradients(x, self.indices, self._weights, *self._loss, gradient, slopes)
        gradient *= self.dtype(self.n_objects / self.n_terms)
        return Snapshot(x.copy(), gradient, slopes)

    def largest_step(self, batch_size: int) -> float:
        """1 / (12 n w): a term's Hessian is at most 2 s M with a slope s <= 1 and |M| = 3 (SVRG-SBB eqs. 53-57).

        Half of what that allows, because of the steps 2 / 6, 1 / 6 and 1 / 12 only the last never ran away with five
        answers per object, and none is felt with thirty. A batch adds up the 3 batch_size / n terms that share an
        object.
        """
        heaviest = float(self._weights.max()) if len(self._weights) else 1.0
        shared = max(1.0, 3.0 * batch_size / self.n_objects)
        return 1.0 / (12.0 * heaviest * shared * self.n_objects)

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        """See `FiniteSum`."""
        match rule:
            case Plain(step):
                self.sgd_pass(x, step=step)
            case RowScaled(step, accumulator):
                self.adagrad_pass(x, accumulator, step=step)
            case VarianceReduced(step, snapshot, batch_size, n_terms):
                self.svrg_pass(x, snapshot, step=step, batch_size=batch_size, n_terms=n_terms)

    def svrg_pass(self, x: np.ndarray, snapshot: Snapshot, *, step: float, batch_size: int, n_terms: int) -> None:
        self._position = kernels.svrg_pass(
            x,
            snapshot.x,
            snapshot.gradient,
            snapshot.memo,
            self.indices,
            self._weights,
            *self._loss,
            self._position,
            n_terms,
            self.dtype(step),
            self.dtype(self.n_objects),
            min(batch_size, n_terms),
        )

    def sgd_pass(self, x: np.ndarray, *, step: float) -> None:
        kernels.sgd_pass(x, self.indices, self._weights, *self._loss, self.dtype(step * self.n_objects))

    def adagrad_pass(self, x: np.ndarray, accumulator: np.ndarray, *, step: float) -> None:
        kernels.adagrad_pass(x, accumulator, self.indices, self._weights, *self._loss, self.dtype(step))
