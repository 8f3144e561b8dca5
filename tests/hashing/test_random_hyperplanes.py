"""Random hyperplanes estimate angles, with any number of bits."""

import numpy as np
import pytest

import nearkin as nk
from tests.covering import each


@each("orthogonal", [False, True])
def test_share_of_different_bits_estimates_the_angle(rng, orthogonal):
    X = rng.standard_normal((40, 16))
    X = np.concatenate([X, -X])  # mean zero: hyperplanes through the origin
    hasher = nk.RandomHyperplanes(4096, orthogonal=orthogonal, random_state=0).fit(X)
    codes = hasher.encode(X)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    angles = np.arccos(np.clip(units @ units.T, -1, 1)) / np.pi
    error = np.abs(np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2) / 4096 - angles).mean()
    assert error < 0.01


def test_orthogonal_normals_in_groups_of_d(rng):
    hasher = nk.RandomHyperplanes(14, orthogonal=True, random_state=0).fit(rng.standard_normal((50, 6)))
    for group in (hasher.projection_[:, :6], hasher.projection_[:, 6:12], hasher.projection_[:, 12:]):
        np.testing.assert_allclose(group.T @ group, np.eye(group.shape[1]), atol=1e-12)


def test_projections_have_about_unit_variance(rng):
    X = rng.standard_normal((500, 30)) * 7
    assert nk.RandomHyperplanes(64, random_state=0).fit(X).project(X).var() == pytest.approx(1, rel=0.1)
