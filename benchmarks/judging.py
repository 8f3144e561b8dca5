"""One rule for all verdicts: differences over paired seeds with a 95 % interval, judged in words.

*ahead*, *behind*: the interval leaves 0 out. *level*: it has 0 in it, so that nothing is shown either way. *similar*:
the whole interval lies within a margin on both sides. A comparison of one run has no interval and is not judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t as student

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Gap:
    """The mean of the first less the second, half the width of its interval, and over how many pairs."""

    mean: float
    half: float
    pairs: int

    @property
    def ahead(self) -> bool:
        return self.mean - self.half > 0

    @property
    def behind(self) -> bool:
        return self.mean + self.half < 0

    @property
    def level(self) -> bool:
        return not (self.ahead or self.behind)

    def within(self, margin: float) -> bool:
        """Whether all of the interval lies within the margin, on both sides."""
        return abs(self.mean) + self.half <= margin

    def above(self, least: float) -> bool:
        """Whether all of the interval lies above a number."""
        return self.mean - self.half > least


def paired(first: Sequence[float], second: Sequence[float]) -> Gap:
    """Seed by seed: first less second."""
    return interval([a - b for a, b in zip(first, second, strict=True)])


def relative(first: Sequence[float], second: Sequence[float]) -> Gap:
    """The same in per cent of the mean of the second."""
    gap, whole = paired(first, second), abs(mean(second)) / 100
    return Gap(gap.mean / whole, gap.half / whole, gap.pairs)


def interval(values: Sequence[float]) -> Gap:
    """The mean of some numbers and its interval; infinitely wide for one of them."""
    n = len(values)
    if n < 2:
        return Gap(mean(values), math.inf, n)
    return Gap(mean(values), float(student.ppf(0.5 + CONFIDENCE / 2, n - 1)) * stdev(values) / n**0.5, n)


def unpaired(first: tuple[float, float], second: tuple[float, float], n: int, unit: float = 1.0) -> Gap:
    """From means and standard deviations (of the n runs themselves) alone: Welch's interval."""
    squares = [deviation**2 / (n - 1) for _, deviation in (first, second)]
    error, freedom = sum(squares) ** 0.5, sum(squares) ** 2 / max(sum(v**2 for v in squares), 1e-300) * (n - 1)
    half = float(student.ppf(0.5 + CONFIDENCE / 2, max(freedom, 1))) * error
    return Gap(unit * (first[0] - second[0]), unit * half, n)


def told(gap: Gap, more: str = "more", less: str = "less", unit: str = " %", digits: int | None = None) -> str:
    """A gap in words: "4.4 % worse (4.2 to 4.5)", "level: 0.1 % better (0.3 better to 0.1 worse)"."""

    digits = digits or (1 if abs(gap.mean) >= 0.95 else 2)

    def size(value: float) -> str:
        return f"{abs(value):.{digits}f}"

    def side(value: float) -> str:
        return more if value > 0 else less

    if abs(gap.mean) + gap.half < 0.5 * 10.0**-digits:
        return "equal"
    text = f"{size(gap.mean)}{unit} {side(gap.mean)}"
    if not math.isfinite(gap.half):
        return f"{text}, one run"
    low, high = gap.mean - gap.half, gap.mean + gap.half
    if gap.level:
        return f"level: {text} ({size(low)} {side(low)} to {size(high)} {side(high)})"
    near, far = sorted((abs(low), abs(high)))
    return f"{text} ({size(near)} to {size(far)})"
