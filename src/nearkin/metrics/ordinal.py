"""The error of an embedding: the share of comparisons that it violates."""

import numpy as np

from nearkin import _check
from nearkin._fields import counted
from nearkin._types import ArrayLike
from nearkin.records import Answers, Comparisons, as_indices, nearer


def triplet_error(X: ArrayLike, comparisons: Answers) -> float:
    """The share of comparisons that points violate: those without d(i, j) < d(l, k); ties and NaN are violations.

    Parameters
    ----------
    X: (n, p) points.
    comparisons: `Comparisons` whose object r is vector r of X, or integers (m, 3) / (m, 4). Votes weigh.

    Returns
    -------
    error: float in [0, 1].

    Examples
    --------
    >>> nk.metrics.triplet_error([[0.0], [1.0], [3.0]], [[0, 1, 2], [2, 0, 1]])
    0.5
    """
    good = satisfied(X, comparisons)
    if len(good) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    weights = comparisons.weights if isinstance(comparisons, Comparisons) else None
    return float(1.0 - (good.mean() if weights is None else np.average(good, weights=weights)))


def satisfied(X: ArrayLike, comparisons: Answers) -> np.ndarray:
    """(m,) bool: whether X (n, p) satisfies each comparison, in float64; arguments as in `triplet_error`."""
    points = _check.check_vectors(X, finite=False, exact=True).astype(np.float64, copy=False)
    names = comparisons.objects if isinstance(comparisons, Comparisons) else np.arange(0)
    if len(names) != len(points) and not np.array_equal(names, np.arange(len(names))):
        raise ValueError(
            f"comparisons has {counted(len(names), 'object')}, X {counted(len(points), 'vector')}; vector r is "
            "object r: nk.OrdinalEmbedding's score matches their names"
        )
    indices = as_indices(comparisons.indices if isinstance(comparisons, Comparisons) else comparisons, "comparisons")
    if len(indices):
        _check.check_integer(int(indices.max()), "the largest index in comparisons", high=len(points) - 1)
    return nearer(points, indices)
