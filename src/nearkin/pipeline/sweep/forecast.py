"""What a code would keep, before it is trained: from codes that were learned from few rows, and those trained whole."""

import math
from dataclasses import dataclass, field

import numpy as np

_EDGE = 1e-3  # recalls nearer to 0 and 1 than this are taken for this


def logit(share: float) -> float:
    """log(p / (1 - p)), held to what recalls of a thousand queries can tell."""
    share = min(max(share, _EDGE), 1 - _EDGE)
    return math.log(share / (1 - share))


@dataclass
class Forecast:
    """Recall by size, as logit(recall) over log(bytes), linear between sizes.

    `light` and `whole` hold {method: {bytes: recall}} of codes learned from few rows and trained whole. The first
    method of `light` gives the shape; another method, and the whole training, move it up or down by what was measured
    nearest.
    """

    light: dict[str, dict[int, float]] = field(default_factory=dict)
    whole: dict[str, dict[int, float]] = field(default_factory=dict)

    def recall(self, method: str, n_bytes: int) -> float:
        """The recall expected of a method at a size; 0 where nothing is known of it."""
        if method not in self.light and method not in self.whole:
            return 0.0
        value = self._shape(n_bytes)
        if method in self.whole:
            value += self._moved(self.whole[method], n_bytes)
        else:
            value += self._moved(self.light[method], n_bytes)
            first = next(iter(self.light))
            value += self._moved(self.whole.get(first, {}), n_bytes)
        return 1 / (1 + math.exp(-value))

    def _shape(self, n_bytes: int) -> float:
        """The first method's curve, beyond its last size as steep as before it."""
        points = next(iter((self.light or self.whole).values()))
        sizes = sorted(points)
        x, y = np.log(sizes), [logit(points[size]) for size in sizes]
        where = math.log(n_bytes)
        if len(sizes) > 1 and where > x[-1]:
            return y[-1] + (where - x[-1]) * (y[-1] - y[-2]) / (x[-1] - x[-2])
        return float(np.interp(where, x, y))

    def _moved(self, points: dict[int, float], n_bytes: int) -> float:
        """How far measured recalls lie above the shape, at a size."""
        if not points:
            return 0.0
        sizes = sorted(points)
        above = [logit(points[size]) - self._shape(size) for size in sizes]
        return float(np.interp(math.log(n_bytes), np.log(sizes), above))
