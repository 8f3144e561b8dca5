"""OgE, the Orthogonal Encoder: columns of any length, orthogonal to each other, in closed form (SCQ, Algorithm 2)."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from nearkin._check import check_real
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.hashing.alternation import learn_columns
from nearkin.hashing.column_steps import OrthogonalColumns, random_columns
from nearkin.hashing.linear import AbstractSpectralHasher
from nearkin.hashing.one import check_encoder
from nearkin.hashing.sign_moments import CentredRows


@dataclass(eq=False, repr=False)
class OgE(AbstractSpectralHasher):
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
        check_encoder(self)
        check_real(self.mu, "mu", above=0)
        if self.ridge is not None:
            check_real(self.ridge, "ridge", above=0)

    def _n_components(self) -> int | None:
        return None if self.n_components is None else max(self.n_components, self.n_bits)

    def _columns(
        self, rows: CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        c = self.scale_**2 * rows.spectrum.variances
        mu = self.mu if self.ridge is None else self.ridge * float(c[: self.n_bits].mean())
        start = random_columns(len(c), self.n_bits, generator)
        scaled = lambda V: self.scale_ * rows.sign_moment(V)  # noqa: E731
        step = OrthogonalColumns(c, mu)
        return learn_columns(scaled, step, start, tol=self.tol, max_iter=self.max_iter, callback=callback)
