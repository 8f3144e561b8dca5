"""Type names for signatures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nearkin._fields import Fields as Fields
from nearkin._fields import Record as Record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
else:

    class ArrayLike:
        """Input of `numpy.asarray`. A short name, because help() prints NumPy's union in 300 characters."""


Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""Types of `random_state`; None draws a new seed each time."""

Chosen: TypeAlias = slice | np.ndarray | Sequence[int]
"""A selection of rows: a slice, their numbers, or a mask."""
