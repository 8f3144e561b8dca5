"""pymanopt's tests of the Stiefel manifold, of rotations and of steepest descent, on `nk.orthogonal`."""

import time
from typing import Any

import numpy as np
import torch

import nearkin as nk
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.skew import drop_normal
from nearkin.orthogonal.retraction import left_step, right_step
from tests.peers.kits import found, load, tests_of

found("pymanopt", "tests")
import pymanopt.manifolds  # noqa: E402
import pymanopt.optimizers  # noqa: E402

OTHERS = {
    "Unitary|complex_cost": "complex matrices",
    "test_euclidean_to_riemannian_hessian|_dim|_dist|inner_product|test_norm|random_tangent": "pymanopt's own formulas",
    r"beta_|optimization_log|test_optimizers\[(?!Steep)": "another algorithm",
}


def torched(function: Any) -> Any:
    """A function of tensors on arrays."""

    def call(*arrays: Any) -> np.ndarray:
        return function(*(torch.from_numpy(np.asarray(each)) for each in arrays)).numpy()

    return call


class Stiefel(pymanopt.manifolds.Stiefel):
    def __init__(self, n: int, p: int, *, k: int = 1, retraction: str = "qr") -> None:
        super().__init__(n, p, k=k, retraction=retraction)
        self._name, self._size = retraction, (n, p) if k == 1 else (k, n, p)
        self.retraction = lambda X, u: self._step(X, u, self._name)

    def random_point(self) -> np.ndarray:
        return haar_orthogonal(*self._size, dtype=torch.float64).numpy()

    projection = staticmethod(torched(drop_normal))

    def exp(self, X: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self._step(X, u, "exp")

    @staticmethod
    def _step(X: np.ndarray, u: np.ndarray, name: str) -> np.ndarray:
        return torched(lambda X, u: left_step(X, X @ (X.mT @ u) / 2 - u, 1.0, name))(X, u)


class SpecialOrthogonalGroup(pymanopt.manifolds.SpecialOrthogonalGroup):
    def __init__(self, n: int, *, k: int = 1, retraction: str = "qr") -> None:
        super().__init__(n, k=k, retraction=retraction)
        self._name, self._size = retraction, (n, n) if k == 1 else (k, n, n)
        self.retraction = lambda X, A: torched(lambda X, A: right_step(X, -A, 1.0, self._name))(X, A)

    def random_point(self) -> np.ndarray:
        return haar_orthogonal(*self._size, special=True, dtype=torch.float64).numpy()

    def exp(self, X: np.ndarray, A: np.ndarray) -> np.ndarray:
        return torched(lambda X, A: right_step(X, -A, 1.0, "exp"))(X, A)


class SteepestDescent(pymanopt.optimizers.SteepestDescent):
    """A point of the sphere is an orthonormal column."""

    def run(self, problem: Any, **settings: Any) -> Any:
        begin = time.time()
        X = torch.nn.Parameter(torch.from_numpy(problem.manifold.random_point()[:, None]))
        optimizer = nk.orthogonal.orthogonal_optimizer([X], lr=0.02)
        for _ in range(self._max_iterations):
            X.grad = torch.from_numpy(problem.euclidean_gradient(X.detach().numpy()[:, 0])[:, None])
            optimizer.step()
        return self._return_result(
            start_time=begin, point=X.detach().numpy()[:, 0], cost=0.0, iterations=self._max_iterations,
            stopping_criterion="iterations", cost_evaluations=0,
        )  # fmt: skip


pymanopt.manifolds.Stiefel, pymanopt.manifolds.SpecialOrthogonalGroup = Stiefel, SpecialOrthogonalGroup
pymanopt.optimizers.SteepestDescent = SteepestDescent
for name in (
    "manifolds/test_stiefel",
    "manifolds/test_group",
    "optimizers/test_optimizers",
    "optimizers/test_conjugate_gradient",
):
    globals().update(tests_of(load("pymanopt", f"tests/{name}.py")))
del tests_of
