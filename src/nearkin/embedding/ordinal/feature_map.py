"""From features to an embedding: regularised least squares with an RBF kernel (SVRG-SBB section 5.4)."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from nearkin._random import numpy_generator
from nearkin._types import Seed


@dataclass(frozen=True)
class FeatureMap:
    """x = mean + k(features, landmarks) @ coefficients, with k(u, v) = exp(-gamma |u - v|^2)."""

    landmarks: np.ndarray  # (r, d)
    coefficients: np.ndarray  # (r, p)
    mean: np.ndarray  # (p,)
    gamma: float
    alpha: float

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(m, d) -> (m, p) float32, in pieces of rows so that no (m, r) array is held whole."""
        out = np.empty((len(features), len(self.mean)), np.float32)
        for start in range(0, len(features), 4096):
            part = features[start : start + 4096]
            out[start : start + 4096] = self.mean + rbf_kernel(part, self.landmarks, self.gamma) @ self.coefficients
        return out


def rbf_kernel(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |a - b|^2) for all rows: (n, d), (m, d) -> (n, m) float64."""
    A, B = A.astype(np.float64), B.astype(np.float64)
    squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
    return np.exp(-gamma * np.maximum(squared, 0.0))


def fit_feature_map(
    features: np.ndarray,  # (n, d)
    X: np.ndarray,  # (n, p)
    *,
    gamma: float | None = None,
    alpha: float | None = None,
    n_landmarks: int = 1000,
    random_state: Seed = None,
) -> FeatureMap:
    """Fit X by min_C |K C - (X - mean)|^2 + alpha tr(C' K_rr C), K the kernel between rows and landmarks.

    With n <= n_landmarks every row is a landmark and this is kernel ridge regression; above, a random subset stands
    for all, so that no n x n array is made. gamma None is 1 / median |u - v|^2 times a factor of {1/2, 1, 2, 4}, alpha
    None one of 1e-4 ... 10; both are chosen by the error on a fifth of the rows held out.
    """
    rng = numpy_generator(random_state)
    n = len(features)
    order = rng.permutation(n)
    landmarks = features[order[:n_landmarks]]
    sample = landmarks[:500].astype(np.float64)
    squared = (sample**2).sum(1)[:, None] + (sample**2).sum(1) - 2 * sample @ sample.T
    scale = float(np.median(squared[np.triu_indices(len(sample), 1)])) if len(sample) > 1 else 1.0
    gammas = [gamma] if gamma is not None else [factor / (scale or 1.0) for factor in (0.5, 1.0, 2.0, 4.0)]
    alphas = [alpha] if alpha is not None else [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
    if len(gammas) * len(alphas) > 1 and n >= 10:
        held, kept = order[: n // 5], order[n // 5 :]
        marks = features[kept[:n_landmarks]]
        errors = {}
        for g in gammas:
            solve = _Ridge(features[kept], X[kept], marks, g)
            test = rbf_kernel(features[held], marks, g)
            for a in alphas:
                errors[g, a] = float(((test @ solve(a) + solve.mean - X[held]) ** 2).sum())
        gamma, alpha = min(errors, key=lambda pair: errors[pair])
    gamma = gammas[0] if gamma is None else gamma
    alpha = alphas[0] if alpha is None else alpha
    solve = _Ridge(features, X, landmarks, gamma)
    return FeatureMap(landmarks, solve(alpha), solve.mean, gamma, alpha)


class _Ridge:
    """The normal equations of one kernel width, to be solved for several alphas."""

    def __init__(self, features: np.ndarray, X: np.ndarray, landmarks: np.ndarray, gamma: float) -> None:
        self.mean = X.mean(axis=0, dtype=np.float64)
        self._within = rbf_kernel(landmarks, landmarks, gamma)
        r = len(landmarks)
        self._normal = np.zeros((r, r))
        self._right = np.zeros((r, X.shape[1]))
        for start in range(0, len(features), 4096):
            K = rbf_kernel(features[start : start + 4096], landmarks, gamma)
            self._normal += K.T @ K
            self._right += K.T @ (X[start : start + 4096] - self.mean)

    def __call__(self, alpha: float) -> np.ndarray:
        r = len(self._normal)
        jitter = 1e-8 * np.trace(self._normal) / r  # equal rows of features make the equations singular
        return cho_solve(cho_factor(self._normal + alpha * self._within + jitter * np.eye(r)), self._right)
