"""Axes dealt to groups whose volumes balance: the eigenvalue allocation of OPQ (Ge et al. 2013, section 3.2)."""

import numpy as np


def deal_axes(logs: np.ndarray, n_groups: int) -> np.ndarray:
    """Deal axes (m,) with the logarithms of their variances, none below 0, largest first, to groups (M, m // M).

    An axis goes to the open group of the smallest volume, the product of its variances; of equal ones, to the first.
    The last m - M (m // M) axes are left out.

    >>> deal_axes(np.array([3.0, 2.0, 1.0, 0.5]), 2).tolist()
    [[0, 3], [1, 2]]
    """
    size = len(logs) // n_groups
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    volumes = np.zeros(n_groups)
    for axis in range(size * n_groups):
        chosen = int(np.argmin(np.where([len(group) < size for group in groups], volumes, np.inf)))
        groups[chosen].append(axis)
        volumes[chosen] += logs[axis]
    return np.array(groups)
