"""What OnE and OgE share: their parameters' checks, and the loop over codes and columns of the scaled data (SCQ)."""

from abc import abstractmethod

import numpy as np

from nearkin._check import check_choice, check_integer, check_real
from nearkin.contracts import Callback
from nearkin.hashing.alternation import ColumnStep, learn_columns
from nearkin.hashing.column_steps import random_columns
from nearkin.hashing.linear import AbstractSpectralHasher
from nearkin.hashing.sign_moments import CentredRows
from nearkin.hashing.spectrum import SCALES


class AbstractEncoder(AbstractSpectralHasher):
    """One projection that compresses and quantizes at once: its columns are free to leave the top principal axes.

    A subclass has `_step` and the parameters `n_bits`, `scale`, `n_components`, `tol`, `max_iter` and `random_state`.
    """

    scale: str | float
    n_components: int | None
    tol: float
    max_iter: int

    def _check_params(self) -> None:
        super()._check_params()
        if isinstance(self.scale, str):
            check_choice(self.scale, "scale", SCALES)
        else:
            check_real(self.scale, "scale", above=0)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        check_real(self.tol, "tol", low=0)
        check_integer(self.max_iter, "max_iter", low=1)

    def _n_components(self) -> int | None:
        return None if self.n_components is None else max(self.n_components, self.n_bits)

    def _scale(self) -> str | float:
        return self.scale

    @abstractmethod
    def _step(self, c: np.ndarray) -> ColumnStep:
        """The step of the columns for scaled data whose principal coordinates have variances c (m,)."""

    def _columns(
        self, rows: CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        c = self.scale_**2 * rows.spectrum.variances
        start = random_columns(len(c), self.n_bits, generator)
        return learn_columns(
            lambda V: self.scale_ * rows.sign_moment(V),
            self._step(c),
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )
