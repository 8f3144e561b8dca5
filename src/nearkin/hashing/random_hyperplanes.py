"""Signs of random projections: what any learned code has to beat."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from nearkin._check import check_integer
from nearkin._shards import shared_generator, training_rows
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.column_steps import random_columns
from nearkin.hashing.linear import AbstractLinearHasher
from nearkin.hashing.spectrum import row_blocks
from nearkin.statistics import Mean, SquaredNorm

MOST_BITS = 2**20  # 128 KiB a row; the hyperplanes of more would not fit in memory


@dataclass(eq=False, repr=False)
class RandomHyperplanes(AbstractLinearHasher):
    """Locality-sensitive hashing by random hyperplanes through the mean (Charikar 2002).

    The share of equal bits of two rows estimates 1 - angle / pi. `orthogonal` draws the normals orthonormal in groups
    of d (a random rotation, then signs), which lowers the variance of that estimate (Ji et al. 2012). Any n_bits up
    to 2^20 will do, also more than d.

    Parameters: `n_bits` L; `orthogonal`; `random_state`.
    """

    n_bits: int = 32
    _: KW_ONLY
    orthogonal: bool = False
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Draw the hyperplanes for the width of X (n, d); of the data only mean and total variance are used."""
        del y, callback
        n_bits = check_integer(self.n_bits, "n_bits", low=1, high=MOST_BITS)
        X, shard = training_rows(self, X, min_rows=2)
        d, generator = X.shape[1], shared_generator(self.random_state)
        shard.check_varies(X)
        mean = shard.group.merge(Mean(d).update(X)).finalize()
        spread = SquaredNorm()
        for block in row_blocks(X):
            spread.update(block - mean)
        variance = shard.group.merge(spread).finalize() / d
        if self.orthogonal:
            groups = [random_columns(d, min(d, n_bits - start), generator) for start in range(0, n_bits, d)]
            normals = np.concatenate(groups, axis=1)
        else:
            normals = generator.standard_normal((d, n_bits))
            normals /= np.linalg.norm(normals, axis=0)
        self.mean_ = mean.astype(X.dtype)
        self.projection_ = normals.astype(X.dtype)
        self.scale_ = float(1 / np.sqrt(variance))  # values of unit variance on average, as eq. 25 does for SCQ
        self.intercept_ = np.zeros(n_bits, X.dtype)
        self.history_, self.n_iter_ = np.zeros(0), 0
        return self
