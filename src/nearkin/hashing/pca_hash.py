"""The signs of the principal coordinates: the start that ITQ rotates away from."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.hashing.linear import AbstractSpectralHasher
from nearkin.hashing.sign_moments import CentredRows


@dataclass(eq=False, repr=False)
class PCAHash(AbstractSpectralHasher):
    """PCA hashing: bit k is the sign of principal coordinate k.

    It keeps the most variance of all projections, but gives each axis one bit however much variance it has.

    Parameters: `n_bits` L, at most the rank of X. Nothing is random: `random_state` is there for the family's sake.
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Seed = None

    def _columns(
        self, rows: CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        del generator, callback
        return np.eye(self.n_bits), np.zeros(0)
