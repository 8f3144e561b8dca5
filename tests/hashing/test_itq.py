"""ITQ is the Procrustes alternation, or is left out."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.metrics.hamming import hamming_histograms
from tests.covering import each


def test_equals_the_published_loop(rng):
    X = rng.standard_normal((300, 10)) * np.geomspace(3, 1, 10)
    itq = nk.ITQ(4, max_iter=20, random_state=0).fit(X)
    centred = X - X.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:4].T
    first = nk.ITQ(4, max_iter=1, random_state=0).fit(X)
    Z, R = centred @ axes, axes.T @ first.projection_
    for _ in range(19):
        left, _, right = np.linalg.svd(Z.T @ np.where(Z @ R >= 0, 1.0, -1.0))
        R = left @ right
    np.testing.assert_allclose(axes @ R, itq.projection_, atol=1e-8)


@each("power", [0.0, 0.5, 1.0])
def test_whitening_is_itq_of_divided_coordinates(rng, power):
    X = rng.standard_normal((500, 10)) * np.geomspace(5, 0.5, 10)
    itq = nk.ITQ(6, whitening=power, random_state=0).fit(X)
    centred = X - X.mean(axis=0)
    spread = np.linalg.svd(centred, full_matrices=False)
    Z = centred @ spread.Vh[:6].T / (spread.S[:6] ** power)
    right = np.linalg.lstsq(Z, itq.project(X))[0]  # project = Z times a rotation, up to one factor
    np.testing.assert_allclose(right.T @ right / (right.T @ right)[0, 0], np.eye(6), atol=1e-8)
    assert itq.history_[-1] / 6 == pytest.approx(itq.quantization_error(X), rel=1e-2)
    assert (itq.project(X) ** 2).sum() / 500 == pytest.approx(6)


@each(("tails", "n_features", "gain"), [("far", 12, 0.17), ("light", 20, 0.1), ("heavy", 12, -0.02)])
def test_it_is_not_behind_random_hyperplanes(rng, tails, n_features, gain):
    """Where one axis holds most of the variance the published rotation makes all bits nearly alike, and none has more
    bits than columns. Thresholds along the axes keep far more, but not under heavy tails; three far rows take none."""
    widths = np.geomspace(1, 1e-4, n_features)
    points = rng.standard_normal((1800, n_features)) * widths if tails != "heavy" else rng.standard_t(2, (1800, 12))
    Q, X = points[:300], points[300:]
    X[::500, 6] *= 1000 if tails == "far" else 1
    near, scores = ((Q[:, None] - X) ** 2).sum(2).argsort(axis=1)[:, :10], {}
    for hasher in nk.ITQ(16, random_state=0).fit(X), nk.RandomHyperplanes(16, random_state=0).fit(X):
        found = hamming_histograms(hasher.encode(Q), hasher.encode(X), neighbours=near)
        scores[type(hasher).__name__] = found.average_precision().mean()
    assert scores["ITQ"] > scores["RandomHyperplanes"] + gain, scores
