"""Names for what signatures take and give, so that each names what is meant."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike as ArrayLike

from nearkin._fields import Fields as Fields
from nearkin._fields import Record as Record

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""What `random_state` may be; None draws another seed each time."""

Chosen: TypeAlias = slice | np.ndarray | Sequence[int]
"""Which rows: a slice, their numbers, or a mask."""
