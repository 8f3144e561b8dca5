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
        """What `numpy.asarray` takes. A name, since help() prints NumPy's union in 300 characters."""


Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""What `random_state` may be; None draws another seed each time."""

Chosen: TypeAlias = slice | np.ndarray | Sequence[int]
"""Which rows: a slice, their numbers, or a mask."""
