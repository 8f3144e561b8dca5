"""Ratings of pairs as comparisons: of two pairs that one person rated differently, one is the nearer."""

import numpy as np

_MOST = 40  # comparisons of one rated pair at most


def rated_quadruplets(
    pairs: np.ndarray, ratings: np.ndarray, raters: np.ndarray | None, *, high_is_near: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, 4) of ids (i, j, l, k), and for each the number of the rating (of the nearer pair) it comes from.

    pairs (n, 2), ratings (n,). Two ratings are compared if one rater gave both and they differ. Each is compared with
    at most 40 others, evenly spaced among the rater's ratings; the rows are the same in every run.
    """
    nearness = ratings if high_is_near else -ratings
    groups = np.zeros(len(pairs), np.int64) if raters is None else np.unique(raters, return_inverse=True)[1].reshape(-1)
    near, far = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        rows = rows[np.argsort(nearness[rows], kind="stable")]
        strides = (
            np.unique(np.linspace(1, len(rows) - 1, min(_MOST, len(rows) - 1)).astype(np.int64))
            if len(rows) > 1
            else ()
        )
        for stride in strides:
            low, high = rows[:-stride], rows[stride:]
            differ = nearness[high] > nearness[low]
            near.append(high[differ])
            far.append(low[differ])
    first, second = np.concatenate(near), np.concatenate(far)
    swapped = (pairs[first] == pairs[second][:, ::-1]).all(axis=1)
    apart = ~swapped & (pairs[first] != pairs[second]).any(axis=1)  # a pair rated twice says nothing of another
    first, second = first[apart], second[apart]
    return np.concatenate([pairs[first], pairs[second]], axis=1), first
