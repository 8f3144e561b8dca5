"""Regularised least squares with an RBF kernel: scikit-learn's kernel ridge where every row is a landmark."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from nearkin.embedding.ordinal.estimator import fit_feature_map


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 10.0])
def test_it_is_scikit_learns_kernel_ridge(rng: np.random.Generator, alpha: float) -> None:
    """The penalty is alpha tr(C' K C); with alpha |C|^2 the map at alpha = 1 would be another one."""
    features, X = rng.standard_normal((40, 6)), rng.standard_normal((40, 3)) + 5
    fresh = rng.standard_normal((15, 6))
    found = fit_feature_map(features, X, gamma=0.2, alpha=alpha, random_state=0)
    centred = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.2).fit(features, X - X.mean(axis=0))
    np.testing.assert_allclose(found(fresh), centred.predict(fresh) + X.mean(axis=0), rtol=1e-4, atol=1e-4)


def test_fewer_landmarks_solve_the_normal_equations(rng: np.random.Generator) -> None:
    """C = (K' K + alpha K_rr)^-1 K' (X - mean) on a subset of rows."""
    features, X = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    found = fit_feature_map(features, X, gamma=0.3, alpha=0.5, n_landmarks=20, random_state=0)
    K, within = (np.exp(-0.3 * ((A[:, None] - found.landmarks) ** 2).sum(2)) for A in (features, found.landmarks))
    wanted = np.linalg.solve(K.T @ K + 0.5 * within, K.T @ (X - X.mean(axis=0)))
    assert found.landmarks.shape == (20, 4)
    np.testing.assert_allclose(found(features), X.mean(axis=0) + K @ wanted, rtol=1e-4, atol=1e-4)


def test_width_and_strength_are_chosen_by_held_out_rows(rng: np.random.Generator) -> None:
    """A smooth function without noise asks for little regularization, pure noise for much."""
    features = rng.uniform(-1, 1, (120, 2))
    smooth = np.stack([np.sin(2 * features[:, 0]), features[:, 1] ** 2], axis=1)
    noise = rng.standard_normal((120, 2))
    chosen = [fit_feature_map(features, X, random_state=0).alpha for X in (smooth, noise)]
    assert chosen[0] <= 1e-3 < chosen[1], chosen
