"""The paper's ablations and its convex baseline (SVRG-SBB): SBB_0, the loss printed as CKL, and projected gradient.

The projected gradient works on the n x n Gram matrix, where the losses but t-STE's are convex (the paper's "cvx").
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from nearkin import _check
from nearkin.contracts import Run
from nearkin.data.comparisons import as_comparisons
from nearkin.embedding.ordinal import losses
from nearkin.embedding.ordinal.losses import OrdinalLoss, loss_slopes, loss_value, objects
from nearkin.embedding.ordinal.objective import check_terms
from nearkin.records import Answers
from nearkin.solvers import SVRG, Solution
from nearkin.solvers.finite_sum import Monitor, sbb_step

LOSSES = ("gnmds", "ckl-printed", "ckl", "ste", "t-ste")  # of Table I
SBB_0 = SVRG(epsilon=0.0, capped=False)  # without epsilon and without the cap
MAX_OBJECTS = 5000  # an eigen-decomposition per step: 5000 objects are 200 MB and minutes per step


def get_loss(name: str, n_components: int) -> OrdinalLoss:
    """The loss of that name; "ckl-printed" is eq. 47, which is STE's eq. 48."""
    printed = name == "ckl-printed"
    return replace(losses.get_loss("ste" if printed else name, n_components), name=name)


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
        """ValueError if G is not (n, n): the kernel does not look."""
        if G.shape != (self.n_objects, self.n_objects):
            raise ValueError(f"G has shape {G.shape}; it must be ({self.n_objects}, {self.n_objects})")
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


@dataclass(frozen=True)
class ProjectedGram:
    """G <- P(G - eta grad f(G)), P the projection onto centred positive semidefinite matrices.

    eta begins as the SBB step and is halved until f falls by the usual sufficient decrease, so the objective never
    rises; with a loss that is convex in G the limit is the global minimum. One eigen-decomposition per trial.
    """

    epsilon: float = 0.1

    def minimize(self, problem: GramObjective, G: np.ndarray, run: Run) -> Solution:
        """Minimize from G (n, n). Raises ValueError for more than `MAX_OBJECTS` objects."""
        _check.check_integer(len(G), "the number of objects of a Gram matrix", high=MAX_OBJECTS)
        G = project_gram(G)
        value, gradient = problem.value_and_gradient(G)
        monitor = Monitor(lambda M: problem.value_and_gradient(M)[0], run, G)
        eta = 1.0
        for epoch in range(1, run.max_iter + 1):
            old, old_value, old_gradient = G, value, gradient
            for _ in range(40):
                G = project_gram(old - eta * old_gradient)
                value, gradient = problem.value_and_gradient(G)
                move = G - old
                if value <= old_value + np.vdot(old_gradient, move) + np.vdot(move, move) / (2 * eta):
                    break
                eta /= 2
            if monitor.stop(epoch, G, eta):
                break
            eta = sbb_step(G - old, gradient - old_gradient, self.epsilon) or eta
        return monitor.finish(G)


def convex_embedding(answers: Answers, n_components: int, loss: OrdinalLoss, run: Run) -> np.ndarray:
    """(n, p) points of the Gram matrix that projected gradient finds from a random start."""
    comparisons = as_comparisons(answers)
    n = comparisons.n_objects
    start = np.random.default_rng(1).normal(0, 0.1, (n, n_components))
    problem = GramObjective(comparisons.indices, n, loss, comparisons.weights)
    return gram_points(ProjectedGram().minimize(problem, start @ start.T, run).x, n_components)
