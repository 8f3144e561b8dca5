"""Every way to move an orthogonal matrix that the benchmarks compare: ours and the peers', each as an optimizer.

Peers that are packages (geoopt, geotorch, pymanopt) are used if they can be imported, here or from the site-packages of
the peers' environment. POGO and Landing are written out here from their
papers.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow, orthogonal_optimizer

NORM = 0.1  # of a step's skew matrix, spectral; a Gaussian one turns columns by half of it (root mean square)
LOOPS = 5  # of SGDG; the paper: s = 2
CONTRACTION = 0.5  # its q
QR_SHARE = 0.01  # of its steps


class PogoRule(torch.optim.Optimizer):
    """POGO (Javaloy & Vergari, arXiv 2602.14656): a Riemannian step, then Newton-Schulz; six products.

    Written for tall matrices, with the authors' order of products and lambda = 1/2. Their gradient carries 1/2, which
    is left out here, so that lr means what it means in the other rules. Momentum acts on the Euclidean gradient. With
    `beta2` it is their VAdam: Adam on the Euclidean gradient with one second moment, the mean square, for each matrix.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, beta2: float | None = None) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "beta2": beta2})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                X, G = tall(p), tall(_direction(p, group, self.state[p]))
                M = X - group["lr"] * (G @ (X.mT @ X) - X @ (G.mT @ X))
                new = M + 0.5 * (M - M @ (M.mT @ M))
                p.copy_(new if p.shape[-2] >= p.shape[-1] else new.mT)


def _direction(p: nn.Parameter, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
    """The gradient, its heavy-ball sum, or VAdam's direction."""
    grad = p.grad if p.grad is not None else torch.zeros_like(p)
    if group["beta2"] is None:
        return _with_momentum(p, grad, group["momentum"], state)
    beta1, beta2 = group["momentum"], group["beta2"]
    if not state:
        state |= {"step": 0, "first": torch.zeros_like(grad), "second": grad.new_zeros((*grad.shape[:-2], 1, 1))}
    state["step"] += 1
    first = state["first"].mul_(beta1).add_(grad, alpha=1 - beta1) / (1 - beta1 ** state["step"])
    mean_square = grad.square().mean((-2, -1), keepdim=True)
    second = state["second"].mul_(beta2).add_(mean_square, alpha=1 - beta2) / (1 - beta2 ** state["step"])
    return first / (second.sqrt() + 1e-8)


class LandingRule(torch.optim.Optimizer):
    """Landing (Ablin & Peyre 2022): X - lr (Omega X + lambda X (X^T X - I)); no retraction, near the manifold only.

    Momentum acts on the Euclidean gradient, as in POGO's rule.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, attraction: float = 1.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "attraction": attraction})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                X, G = tall(p), tall(_with_momentum(p, p.grad, group["momentum"], self.state[p]))
                gram = X.mT @ X
                field = G @ gram - X @ (G.mT @ X) + group["attraction"] * (X @ gram - X)
                new = X - group["lr"] * field
                p.copy_(new if p.shape[-2] >= p.shape[-1] else new.mT)


class PymanoptRule(torch.optim.Optimizer):
    """Stochastic descent by pymanopt's Stiefel geometry in NumPy: its projection and its QR retraction.

    pymanopt's own optimizers are full-batch with line searches; its manifolds are what a streaming task can use.
    Momentum acts on the Euclidean gradient.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})
        stiefel = importlib.import_module("pymanopt.manifolds").Stiefel
        self.geometry = {p: stiefel(*tall(p).shape, retraction="qr") for g in self.param_groups for p in g["params"]}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                manifold, X = self.geometry[p], tall(p.detach()).numpy()
                G = tall(_with_momentum(p, p.grad, group["momentum"], self.state[p])).numpy()
                tangent = manifold.euclidean_to_riemannian_gradient(X, G)
                new = torch.from_numpy(manifold.retraction(X, -group["lr"] * tangent))
                p.copy_(new if p.shape[-2] >= p.shape[-1] else new.mT)


class FiveLoops(torch.optim.Optimizer):
    """SGDG (Li, Fuxin & Todorovic 2020, Algorithm 1) as SpinQuant runs it: Cayley SGD with momentum, square X.

    X <- Y, Y = X + a/2 W (X + Y) by fixed-point steps, a = min(lr, 2 q / ||W||), W from the momentum. The authors' code
    differs from the algorithm in three things, which are followed here: five fixed-point steps for two, ||W|| as the
    largest column sum, and a QR factorisation before about one step in a hundred, since the point drifts.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, seed: int = 0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group["lr"], group["momentum"])

    def _move(self, X: Tensor, lr: float, momentum: float) -> None:
        if torch.rand((), generator=self.generator) < QR_SHARE:
            Q, R = torch.linalg.qr(X)
            X.copy_(Q * R.diagonal(dim1=-2, dim2=-1).sign()[..., None, :])
        M = self.state[X].get("momentum")
        M = -X.grad if M is None else momentum * M - X.grad  # type: ignore[operator]
        MXt = M @ X.mT
        half = MXt - 0.5 * X @ (X.mT @ MXt)
        W = half - half.mT
        M = self.state[X]["momentum"] = W @ X
        size = W.abs().sum(-2).amax(-1)[..., None, None]
        a = (2 * CONTRACTION / (size + 1e-8)).clamp_max(lr)
        Y = X + a * M
        for _ in range(LOOPS):
            Y = X + (a / 2) * (W @ (X + Y))
        X.copy_(Y)


def tall(X: Tensor) -> Tensor:
    return X if X.shape[-2] >= X.shape[-1] else X.mT


def _with_momentum(p: Tensor, G: Tensor, momentum: float, state: dict) -> Tensor:
    if not momentum:
        return G
    if "momentum" not in state:
        state["momentum"] = torch.zeros_like(p)
    return state["momentum"].mul_(momentum).add_(G)


class Parametrized:
    """A peer that trains free parameters of an orthogonal weight: forward, backward through the map, SGD."""

    def __init__(self, X: Tensor, register: Callable[[nn.Module], None], lr: float, momentum: float = 0.0) -> None:
        self.layer = nn.Linear(X.shape[1], X.shape[0], bias=False)
        self.layer.weight.data.copy_(X)
        register(self.layer)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=lr, momentum=momentum)

    def step_from(self, G: Tensor) -> None:
        self.optimizer.zero_grad()
        self.layer.weight.backward(G)
        self.optimizer.step()


def add_peers(folder: Path | None) -> list[str]:
    """Put `folder` last on the search path; return which of geoopt, geotorch and pymanopt can be imported."""
    if folder is not None:
        sys.path.append(str(folder))
    found = []
    for name in ("geoopt", "geotorch", "pymanopt"):
        try:
            importlib.import_module(name)
            found.append(name)
        except ImportError:
            pass
    return found


Step = Callable[[], None]
Maker = Callable[[Tensor, Tensor], Step]  # from X and its gradient


def from_gradient(build: Callable[[list[nn.Parameter]], Any]) -> Maker:
    """One step of an optimizer from a given gradient, uphill and downhill in turn: always the same one would arrive."""

    def make(X: Tensor, G: Tensor) -> Step:
        p, gradients = nn.Parameter(X.clone()), [G, -G]
        optimizer = build([p])

        def step() -> None:
            gradients.reverse()
            p.grad = gradients[0]
            optimizer.step()

        return step

    return make


def our_steps(lr: float) -> dict[str, Maker]:
    """Our methods by name, as makers of steps from (X, gradient); first the defaults, by their plain calls."""
    steps = {
        "riemannian auto": from_gradient(lambda p: orthogonal_optimizer(p, NORM / 2)),
        "givens greedy": from_gradient(lambda p: GivensDescent(p, lr)),
        "givens random": from_gradient(lambda p: GivensDescent(p, lr, "random")),
        "givens random, columns": from_gradient(lambda p: GivensDescent(p, lr, "random", side="right")),
        "flow s=2": from_gradient(lambda p: StochasticFlow(p, lr, scale="none")),
        "flow s=8": from_gradient(lambda p: StochasticFlow(p, lr, 8, scale="none")),
        "flow s=d/log d": from_gradient(lambda p: StochasticFlow(p, lr, "d/log d", scale="none")),
    }
    for name in ("exp", "cayley", "qr", "polar", "newton-schulz", "taylor"):
        steps[name] = from_gradient(lambda p, name=name: RiemannianDescent(p, lr, name))
    return steps


def peer_steps(lr: float, packages: list[str]) -> dict[str, Maker]:
    """The peers by name, as makers of steps from (X, gradient)."""
    steps = {
        "POGO's rule": from_gradient(lambda p: PogoRule(p, lr)),
        "Landing": from_gradient(lambda p: LandingRule(p, lr)),
        "SGDG, five loops": from_gradient(lambda p: FiveLoops(p, lr)),
    }
    for mode in ("cayley", "matrix_exp"):
        steps[f"torch parametrization, {mode}"] = _parametrized(torch_orthogonal(mode), lr)
    if "geoopt" in packages:
        steps["geoopt SGD, euclidean"] = geoopt_step("EuclideanStiefel", lr)
        steps["geoopt SGD, canonical"] = geoopt_step("CanonicalStiefel", lr)
    if "pymanopt" in packages:
        steps["pymanopt, qr"] = from_gradient(lambda p: PymanoptRule(p, lr))
    if "geotorch" in packages:
        steps["geotorch"] = _parametrized(geotorch_orthogonal, lr)
    return steps


def geoopt_step(manifold: str, lr: float) -> Maker:
    return from_gradient(lambda p: geoopt_sgd(p, lr, 0.0, manifold))


def geoopt_sgd(params: list[nn.Parameter], lr: float, momentum: float, manifold: str = "EuclideanStiefel") -> Any:
    """geoopt's Riemannian SGD on parameters that are ordinary for everyone else."""
    geoopt = importlib.import_module("geoopt")
    for p in params:  # a ManifoldParameter is a Parameter with this attribute, and the loss holds the parameter already
        p.__class__, p.manifold = geoopt.ManifoldParameter, getattr(geoopt, manifold)()  # type: ignore[attr-defined]
    return geoopt.optim.RiemannianSGD(params, lr=lr, momentum=momentum)


def torch_orthogonal(mode: str) -> Callable[[nn.Module], None]:
    def register(layer: nn.Module) -> None:
        nn.utils.parametrizations.orthogonal(layer, orthogonal_map=mode, use_trivialization=True)

    return register


def geotorch_orthogonal(layer: nn.Module) -> None:
    importlib.import_module("geotorch").orthogonal(layer, "weight")


def _parametrized(register: Callable[[nn.Module], None], lr: float) -> Maker:
    def make(X: Tensor, G: Tensor) -> Step:
        peer, gradients = Parametrized(X, register, lr), [G, -G]

        def step() -> None:
            gradients.reverse()
            peer.step_from(gradients[0])

        return step

    return make
