"""How well the answers determine each place, and what an answer would teach: a Gaussian approximation, in closed form.

Everything here takes STE's model, P(d_ij < d_lk) = 1 / (1 + exp(-z)) with the margin z = d_lk^2 - d_ij^2.
"""

import numpy as np
from scipy.special import expit, ndtr, xlogy

_PROBIT = 1.702  # the logistic curve is that of a normal distribution of this standard deviation, to within 0.01


def margins(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z (m,) of rows (m, 4), and its gradient (m, 4, p) by the place of each of the four objects.

    Where an object stands in a row twice, its whole gradient is at the first place and zeros are at the second.
    """
    i, j, l, k = rows.T  # noqa: E741  the paper's letters
    near, far = X[i] - X[j], X[l] - X[k]
    gradient = 2.0 * np.stack([-near, near, far, -far], axis=1)
    for first in range(4):
        for second in range(first + 1, 4):
            twice = rows[:, first] == rows[:, second]
            gradient[twice, first] += gradient[twice, second]
            gradient[twice, second] = 0.0
    return (far**2).sum(axis=1) - (near**2).sum(axis=1), gradient


def place_covariances(X: np.ndarray, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """(n, p, p) the covariance of each place of X (n, p), given answers rows (m, 4) and all other places.

    It is the inverse of the answers' Fisher information and a prior as wide as the embedding itself.
    """
    n, p = X.shape
    z, gradient = margins(X, rows)
    share = expit(z) * expit(-z) * (1.0 if weights is None else weights)
    objects, heights = rows.ravel(), np.repeat(share, 4)
    flat = gradient.reshape(-1, p)
    information = np.empty((n, p, p))
    for a in range(p):
        for b in range(a + 1):
            sums = np.bincount(objects, heights * flat[:, a] * flat[:, b], minlength=n)
            information[:, a, b] = information[:, b, a] = sums
    variance = max(float(X.var(axis=0).mean()), 1e-12)
    return np.linalg.inv(information + np.eye(p) / variance)


def answer_information(X: np.ndarray, covariances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(q,) nats that the answer to each question rows (q, 4) is expected to tell about the places.

    The mutual information of answer and margin, the margin being normal with the variance that the places' covariances
    (n, p, p) give it: high where the places are uncertain, low where the answer is a coin's whatever the places are
    (Houlsby et al. 2011, "Bayesian active learning for classification and preference learning", eq. 3).
    """
    z, gradient = margins(X, rows)
    variance = sum(np.einsum("qp,qpr,qr->q", gradient[:, a], covariances[rows[:, a]], gradient[:, a]) for a in range(4))
    mean, variance = z / _PROBIT, variance / _PROBIT**2
    width = np.pi * np.log(2) / 2
    doubt = coin_entropy(ndtr(mean / np.sqrt(1 + variance)))
    noise = np.log(2) * np.sqrt(width / (variance + width)) * np.exp(-(mean**2) / (2 * (variance + width)))
    return doubt - noise


def coin_entropy(p: np.ndarray) -> np.ndarray:
    """The entropy, in nats, of coins that fall on one side with probability p."""
    return -(xlogy(p, p) + xlogy(1.0 - p, 1.0 - p))
