"""Axes dealt to groups: every one once, volumes that balance, and the same deal as by the plain rule."""

import numpy as np
import pytest

from nearkin.linalg.orthonormal import deal_axes


def test_axes_are_dealt_to_equal_products() -> None:
    logs = np.log(np.geomspace(100, 1, 12))
    groups = deal_axes(logs, 3)
    assert sorted(groups.ravel()) == list(range(12))
    assert np.ptp(logs[groups].sum(axis=1)) < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_the_open_group_of_the_smallest_volume_comes_next(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logs, n_groups = np.sort(rng.integers(0, 5, 23))[::-1].astype(float), 4  # ties, and three axes too many
    expected: list[list[int]] = [[] for _ in range(n_groups)]
    for axis in range(20):
        taken = [group for group in expected if len(group) < 5]
        min(taken, key=lambda group: sum(logs[group])).append(axis)
    assert deal_axes(logs, n_groups).tolist() == expected
