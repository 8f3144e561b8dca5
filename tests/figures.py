"""A page shows what its code prints, up to what another processor changes: last digits and the order of ties."""

import re
from collections import Counter

WITHIN = 0.03  # of a figure with a decimal point, or 3 % of it; SIMD kernels moved recalls of 100 queries by .01
WORDS = 0.8  # share of all other words and numbers that must be there: ids of near ties change places
FIGURE = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def assert_printed(found: str, expected: str) -> None:
    """Fail unless both texts hold the same figures within tolerance, the same shape and most of the same words."""
    ours, theirs = (FIGURE.findall(text) for text in (found, expected))
    assert len(ours) == len(theirs), f"{len(ours)} figures, expected {len(theirs)}:\n{found}\n--- expected\n{expected}"
    for one, other in zip(map(float, ours), map(float, theirs), strict=True):
        assert abs(one - other) <= WITHIN * max(1, abs(other)), f"{one} is not {other} within {WITHIN}:\n{found}"
    here, there = (Counter(re.findall(r"\w+", FIGURE.sub("", text))) for text in (found, expected))
    assert here.total() == there.total(), f"{found}\n--- expected\n{expected}"
    assert (here & there).total() >= WORDS * there.total(), f"{found}\n--- expected\n{expected}"
