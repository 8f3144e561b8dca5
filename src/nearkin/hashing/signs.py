"""The bits that text encoders call "binary": the sign of every column."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from nearkin._check import check_integer, validate_vectors
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.linear import AbstractLinearHasher


@dataclass(eq=False, repr=False)
class Signs(AbstractLinearHasher):
    """Bit k is the sign of column k; nothing is learned.

    sentence-transformers' precisions "binary" and "ubinary", but for entries of exactly 0, which are 1 here and 0
    there. Packed bits in a file, opened as `codes.npy@ubinary`, come back unchanged.

    Parameters: `n_bits` L, the first L columns. Nothing is random: `random_state` is there for the family's sake.
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Note the width of X (n, d); ValueError for more bits than columns."""
        X = validate_vectors(self, X, reset=True)
        d = X.shape[1]
        if check_integer(self.n_bits, "n_bits", low=1) > d:
            raise ValueError(f"n_bits is {self.n_bits}, and X has n_features = {d}, a bit for each; type n_bits={d}")
        self.projection_ = np.eye(d, self.n_bits, dtype=X.dtype)
        self.mean_, self.intercept_ = np.zeros(d, X.dtype), np.zeros(self.n_bits, X.dtype)
        self.scale_, self.history_, self.n_iter_ = 1.0, np.zeros(0), 0
        return self

    def _project(self, X: np.ndarray) -> np.ndarray:
        return X[:, : self.n_bits]
