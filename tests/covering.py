"""Few cases that still put every two settings together: few faults need three of them at once."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def covering(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The full product of the first two axes; each further axis takes the value that met the row's first, and then
    its others, least.

    So every pair of values of two axes occurs, as far as the number of rows allows, and each value about equally often.
    """
    met: Counter[tuple[tuple[int, int], ...]] = Counter()  # pairs of (axis, number of the value)
    rows = []
    for row in product(*(range(len(axis)) for axis in axes[:2])):
        for axis, values in enumerate(axes[2:], 2):
            counts = [[met[(i, part), (axis, new)] for i, part in enumerate(row)] for new in range(len(values))]
            row += (min(range(len(values)), key=lambda new: (counts[new][0], sum(counts[new]))),)
        met.update(combinations(enumerate(row), 2))
        rows.append(tuple(axis[number] for axis, number in zip(axes, row, strict=True)))
    return rows
