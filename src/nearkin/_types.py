"""Names for what signatures take and give, so that each says what is meant."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as ArrayLike

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""What `random_state` may be; None draws another seed each time."""

Record: TypeAlias = dict[str, Any]
"""Named values of any kind: what a callback hears, what a file of JSON holds, a function's options by name."""

Fields: TypeAlias = Mapping[str, Any]
"""A record that is only read."""

Chosen: TypeAlias = slice | np.ndarray | Sequence[int]
"""Which rows: a slice, their numbers, or a mask."""
