"""SCQ's two encoders: OnE, with orthonormal columns, and OgE, with orthogonal ones."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass

import numpy as np

from nearkin._check import check_choice
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.hashing import columns
from nearkin.hashing.linear import AbstractSpectralHasher


class AbstractEncoder(AbstractSpectralHasher):
    """One projection that compresses and quantizes at once: its columns are free to leave the top principal axes.

    A subclass has `_step` and the parameters `n_bits`, `scale`, `n_components`, `tol`, `max_iter` and `random_state`.
    """

    scale: str | float
    n_components: int | None
    tol: float
    max_iter: int

    @abstractmethod
    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        """The step of the columns for scaled data whose principal coordinates have variances c (m,)."""

    def _columns(
        self, rows: columns.CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        c = self.scale_**2 * rows.spectrum.variances
        start = columns.random_columns(len(c), self.n_bits, generator)
        return columns.learn_columns(
            lambda V: self.scale_ * rows.sign_moment(V),
            self._step(c),
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )


@dataclass(eq=False, repr=False)
class OnE(AbstractEncoder):
    """Orthonormal Encoder: min |B - s X V|^2 / n over signs B and V^T V = I, d x L (SCQ, eq. 1 and 17).

    Unlike ITQ, V is free to leave the top principal axes: less variance kept, much less quantization loss.

    Parameters
    ----------
    n_bits : code length L.
    scale : the factor s, "eq25" as in the paper, "top-eigenvalue" as in the authors' demo, or a number. It decides what
        the codes are good for; see `nearkin.hashing.search_scale`.
    solver : "columns" is the paper's, one column at a time, each the global optimum given those before it. "stiefel" is
        our own, all columns at once by majorise-minimise, with `n_inner` steps per update of the codes.
    n_components : principal components to learn in (n_bits if that is more), 512 as in the paper; None for all. An
        iteration costs n * n_components * L, so skipping PCA on 4096 columns makes it 8 times dearer.
    tol, max_iter : stop at a relative change of the loss of at most `tol`, or after `max_iter` iterations.
    random_state : of the first, random orthonormal V.
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "eq25"
    solver: str = "columns"
    n_inner: int = 1
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _check_params(self) -> None:
        super()._check_params()
        check_choice(self.solver, "solver", ("columns", "stiefel"))

    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        return columns.OrthonormalColumns(c) if self.solver == "columns" else columns.StiefelColumns(c, self.n_inner)


@dataclass(eq=False, repr=False)
class OgE(AbstractEncoder):
    """Orthogonal Encoder: min |B - s X V|^2 / n + mu |V|^2 over signs B and v_i^T v_j = 0, V d x L (SCQ, eq. 19).

    Only the ridge mu / s^2 matters to the bits: a large one keeps to the top principal axes (and to neighbours), a
    small one flattens the spectrum, which on features of a network buys labels at the price of neighbours; see
    `nearkin.hashing.search_scale`.

    Parameters
    ----------
    n_bits : code length L.
    scale : the factor s, "eq25" as in the paper, "top-eigenvalue" as in the authors' demo, or a number.
    mu : penalty on the length of the columns, 0.02 in the paper.
    ridge : None, or mu / s^2 as a share of the mean variance of the top L principal components: it replaces mu, and
        then the result does not depend on `scale`. With "eq25" the two are the same number.
    n_components : principal components to learn in (n_bits if that is more), 512 as in the paper; None for all.
    tol, max_iter : stop at a relative change of the loss of at most `tol`, or after `max_iter` iterations.
    random_state : of the first, random orthonormal V.
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "eq25"
    mu: float = 0.02
    ridge: float | None = None
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _step(self, c: np.ndarray) -> columns.AbstractColumnStep:
        return columns.OrthogonalColumns(
            c, self.mu if self.ridge is None else self.ridge * float(c[: self.n_bits].mean())
        )
