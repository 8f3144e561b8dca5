"""OnE, the Orthonormal Encoder: one projection that compresses and quantizes at once (SCQ, Algorithm 1)."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from nearkin._check import check_choice, check_integer
from nearkin._types import Seed
from nearkin.hashing.alternation import ColumnStep
from nearkin.hashing.column_steps import OrthonormalColumns, StiefelColumns
from nearkin.hashing.encoder import AbstractEncoder


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
        check_integer(self.n_inner, "n_inner", low=1)

    def _step(self, c: np.ndarray) -> ColumnStep:
        return OrthonormalColumns(c) if self.solver == "columns" else StiefelColumns(c, self.n_inner)
