"""OgE, the Orthogonal Encoder: columns of any length, orthogonal to each other, in closed form (SCQ, Algorithm 2)."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from nearkin._check import check_real
from nearkin._types import Seed
from nearkin.hashing.alternation import ColumnStep
from nearkin.hashing.column_steps import OrthogonalColumns
from nearkin.hashing.encoder import AbstractEncoder


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

    def _check_params(self) -> None:
        super()._check_params()
        check_real(self.mu, "mu", above=0)
        if self.ridge is not None:
            check_real(self.ridge, "ridge", above=0)

    def _step(self, c: np.ndarray) -> ColumnStep:
        return OrthogonalColumns(c, self.mu if self.ridge is None else self.ridge * float(c[: self.n_bits].mean()))
