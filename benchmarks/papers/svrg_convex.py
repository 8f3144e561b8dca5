"""The convex baseline of SVRG-SBB ("cvx"): projected gradient on the n x n Gram matrix.

There the losses but t-STE's are convex. One fixed step, as section 5.1 says: eta = 2 of the STE implementation, which
is 2 on our sum per object.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from nearkin.embedding.ordinal.losses import OrdinalLoss, loss_slopes, loss_value, objects
from nearkin.embedding.ordinal.objective import check_terms

STEP = 2.0


@njit
def gram_pass(G, q, w, code, parameter, gradient):
    """sum_q F_q(G), and gradient += its gradient: s_a W_ij - s_b W_lk (SVRG-SBB eqs. 44-45), in float64.

    W_ij has +1 at (i, i) and (j, j) and -1 at (i, j) and (j, i), so that <W_ij, G> = d_ij^2.
    """
    total = 0.0
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a = max(G[i, i] + G[j, j] - G[i, j] - G[j, i], 0.0)
        b = max(G[l, l] + G[k, k] - G[l, k] - G[k, l], 0.0)
        weight = w[t] if len(w) else 1.0
        total += weight * loss_value(code, a, b, parameter)
        s_a, s_b = loss_slopes(code, a, b, parameter)
        s_a, s_b = weight * s_a, weight * s_b
        gradient[i, i] += s_a
        gradient[j, j] += s_a
        gradient[i, j] -= s_a
        gradient[j, i] -= s_a
        gradient[l, l] -= s_b
        gradient[k, k] -= s_b
        gradient[l, k] += s_b
        gradient[k, l] += s_b
    return total


@dataclass
class GramObjective:
    """f(G) = (n / W) sum_q w_q f_q over Gram matrices G (n, n) float64: `OrdinalObjective` without the points."""

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.indices, self._weights = check_terms(self.indices, self.n_objects, self.weights)

    def value_and_gradient(self, G: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.zeros_like(G)
        loss = self.loss
        total = gram_pass(G, self.indices, self._weights, loss.code, loss.parameter, gradient)
        scale = self.n_objects / len(self.indices)
        return total * scale, gradient * scale


def project_gram(G: np.ndarray) -> np.ndarray:
    """The nearest centred positive semidefinite matrix: double centring, then negative eigenvalues to zero (eq. 46)."""
    G = G - G.mean(axis=0)
    G = G - G.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def gram_points(G: np.ndarray, n_components: int) -> np.ndarray:
    """The points (n, p) of the p largest eigenvalues of G (n, n)."""
    values, vectors = np.linalg.eigh(G)
    top = np.argsort(values)[::-1][:n_components]
    X = np.zeros((len(G), n_components))
    X[:, : len(top)] = vectors[:, top] * np.sqrt(np.maximum(values[top], 0.0))
    return X


def projected_gradient(problem: GramObjective, G: np.ndarray, passes: int, step: float = STEP) -> np.ndarray:
    """The Gram matrix after so many steps: no line search, no halving, an eigen-decomposition each."""
    G = project_gram(G)
    for _ in range(passes):
        G = project_gram(G - step * problem.value_and_gradient(G)[1])
    return G
