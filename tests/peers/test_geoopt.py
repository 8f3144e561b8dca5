"""geoopt's tests of the Stiefel manifold and of its optimizers, on the functions and optimizers of `nk.orthogonal`."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import nearkin as nk
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.linalg.skew import drop_normal
from nearkin.orthogonal.retraction import left_step
from tests.peers.kits import found, load, tests_of

FILES = (
    "test_manifold_basic",
    "test_rsgd",
    "test_adam",
    "test_adam_numerical_stability",
    "test_random",
    "test_rlinesearch",
)
OTHERS = {
    r"\[(?!EuclideanStiefel|CanonicalStiefel)\w+-(Not)?Scaled": "another manifold",
    "(?i)spd|poincare|lorentz|product|complex_m|sphere|birkhoff|_R$|euclidean$|boundary|multiple|off_manifold|domain|upper"
    "|stabilize_param": "another manifold",
    "CanonicalStiefel": "another metric",
    "test_logmap|test_dist|test_reversibility": "geoopt does not have it on this manifold either",
    "rwolfe": "nearkin has no line search",
    r"rsgd_stiefel\[params[23]": "nearkin has neither Nesterov's momentum nor dampening",
    r"adam_stiefel\[params1": "nearkin has no AMSGrad",
    "fails": "geoopt's own errors",
    "init_manifold": "a parameter without a manifold needs `others=`",
}
found("geoopt", "tests")

import geoopt  # noqa: E402


def retract(X: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """X + u to first order: the direction of `left_step` is that of a gradient."""
    return left_step(X, X @ (X.mT @ u) / 2 - u, 1.0, "newton-schulz")


class Descent(nk.orthogonal.RiemannianDescent):
    """geoopt's arguments."""

    def __init__(
        self, params: Any, lr: float, momentum: Any = 0.0, stabilize: int | None = None, **settings: Any
    ) -> None:
        groups = [dict(one) if isinstance(one, dict) else {"params": [one]} for one in params]
        for group in groups:
            group["stabilize"] = group.get("stabilize", stabilize)
            group["stabilize_every"] = group["stabilize"] or 0
        super().__init__(groups, lr, momentum=momentum)


def adam(params: Any, lr: float, **settings: Any) -> Descent:
    return Descent(params, lr, nk.orthogonal.Adam(betas=(0.9, 0.999)), **settings)


for stiefel in (geoopt.manifolds.EuclideanStiefel, geoopt.manifolds.EuclideanStiefelExact):
    stiefel.projx = lambda self, x: nearest_orthogonal(x)
    stiefel.proju = stiefel.egrad2rgrad = lambda self, x, u: drop_normal(x, u)
    stiefel.retr = lambda self, x, u: retract(x, u)
    stiefel.transp = lambda self, x, y, v: drop_normal(y, v)
    stiefel.transp_follow_retr = lambda self, x, u, v: drop_normal(retract(x, u), v)
    stiefel.retr_transp = lambda self, x, u, v: (retract(x, u), drop_normal(retract(x, u), v))
geoopt.manifolds.EuclideanStiefel.random_naive = lambda self, *size, **settings: geoopt.ManifoldTensor(
    haar_orthogonal(*size), manifold=self
)
geoopt.optim.RiemannianSGD, geoopt.optim.RiemannianAdam = Descent, adam
for name in FILES:
    globals().update(tests_of(load("geoopt", f"tests/{name}.py")))
del tests_of


@pytest.fixture(autouse=True)
def seed() -> None:
    """One of geoopt's five."""
    torch.manual_seed(1)


@pytest.fixture(autouse=True)
def use_floatX(request: pytest.FixtureRequest) -> Iterator[None]:
    torch.set_default_dtype(torch.float64 if "unary_case" in request.fixturenames else torch.float32)
    yield
    torch.set_default_dtype(torch.float32)
