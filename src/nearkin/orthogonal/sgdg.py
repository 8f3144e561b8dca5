"""SGDG, Cayley SGD with momentum, by the name and the arguments that quantization toolkits use for it."""

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._compile import cached_njit
from nearkin._types import Record
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal.optimizer import PRODUCTS, AbstractOrthogonalOptimizer
from nearkin.orthogonal.retraction import TOLERANCE, inverse_polynomial, left_step, right_step
from nearkin.orthogonal.small_step import combine, correct, move

CONTRACTION = 0.5  # the paper's q: alpha ||W|| / 2 is at most this


class SGDG(AbstractOrthogonalOptimizer):
    """X <- (I - alpha W / 2)^-1 (I + alpha W / 2) X, alpha = min(lr, 2 q / ||W||) (Li, Fuxin & Todorovic 2020).

    Algorithm 1 of "Efficient Riemannian Optimization on the Stiefel Manifold via the Cayley Transform" with q = 0.5
    and ||W|| the largest column sum: V <- momentum V - G, W = H X^T - X H^T with H = V - X X^T V / 2, and V <- W X. A
    drop-in for the optimizer of SpinQuant. That one finds Cayley's curve by five fixed-point steps and takes a QR
    factorisation before one step in a hundred, because its point drifts. Here the curve is exact.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, >= 0.
    momentum: in [0, 1].
    stiefel: must be True, at least in each group; without it, SGDG is torch.optim.SGD.
    dampening, weight_decay, nesterov: accepted, but without effect on orthonormal parameters.
    omega, grad_clip: must be 0 and None; clip gradients by torch.nn.utils.clip_grad_norm_.

    Raises
    ------
    ValueError, TypeError: as in `GivensDescent`; stiefel=False in a group, omega other than 0, a grad_clip.

    References
    ----------
    Li, Fuxin & Todorovic (2020), Efficient Riemannian optimization on the Stiefel manifold via the Cayley transform,
    arXiv:2002.01113.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> R = torch.nn.Parameter(torch.eye(4))
    >>> optimizer = nk.orthogonal.SGDG([R], lr=0.1, momentum=0.9, stiefel=True)
    >>> (R[0] * torch.arange(4.0)).sum().backward()
    >>> optimizer.step()
    >>> nk.orthogonal.is_orthogonal(R, 1e-6)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        stiefel: bool = False,
        omega: float = 0,
        grad_clip: float | None = None,
    ) -> None:
        euclidean = {"dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        own = {"stiefel": stiefel, "omega": omega, "grad_clip": grad_clip, "maximize": False}
        shared = {"lr": lr, "momentum": momentum, "stabilize_every": 0, "layout": "matrix"}
        super().__init__(params, {**shared, **own, **euclidean}, 0, None)

    _squeezed = True

    def _check_group(self, group: Record, X: Tensor) -> None:
        if not group["stiefel"]:
            raise ValueError(
                "stiefel is False; give orthonormal parameters with stiefel=True and all others to torch.optim.SGD "
                "(nearkin.orthogonal.MixedOptimizer makes one optimizer of two)"
            )
        if group["omega"] or group["grad_clip"] is not None:
            raise ValueError(
                f"omega is {group['omega']!r} and grad_clip is {group['grad_clip']!r}; they must be 0 and None, clip "
                "gradients by torch.nn.utils.clip_grad_norm_"
            )

    def _move_compiled(self, X: np.ndarray, G: np.ndarray, group: Record, state: Record) -> bool:
        if len(X) > 1 or X.shape[-2] > X.shape[-1] or X.dtype != np.float32 or X.shape[-1] > PRODUCTS:
            return False
        d = X.shape[-1]
        V = state.get("momentum", torch.zeros(d, d)) if group["momentum"] else torch.zeros(0, d)
        inverse, _ = inverse_polynomial(-4, 5)  # of 1 - u for -q^2 <= u <= 0, to 7e-8
        numbers = np.array((group["lr"], group["momentum"], TOLERANCE[torch.float32], *inverse), np.float32)
        moved = move(X, G, _cayley_step, V.numpy(), numbers)
        if moved and group["momentum"]:
            state["momentum"] = V
        return moved

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        square = X.shape[-2] == X.shape[-1]
        V = state["momentum"] * group["momentum"] - G if "momentum" in state else -G
        H = V / 2 if square else V - X @ (X.mT @ V) / 2
        W = left_skew(X, H)
        if group["momentum"]:
            state["momentum"] = W @ X
        size = W.abs().sum(-2).amax(-1)[..., None, None]
        alpha = (2 * CONTRACTION / (size + 1e-8)).clamp_max(group["lr"])
        if square:  # from the left is from the right for the transpose
            return right_step(X.mT, alpha * W, 1.0, "cayley").mT
        return left_step(X, -alpha * H, 1.0, "cayley")


@cached_njit(fastmath={"reassoc", "contract", "nsz"})  # NaN and infinity propagate
def _cayley_step(Xs: np.ndarray, Gs: np.ndarray, turned: bool, V: np.ndarray, numbers: np.ndarray) -> bool:
    """`SGDG._move` of X (1, d, d), its momentum V (d, d) or (0, d): Y = 2 (I + Q)(I - Q^2)^-1 X - X, Q = alpha W / 2.
    False, and nothing is changed, if G is not finite or Y not on the manifold."""
    X, G = (Xs[0].T.copy(), Gs[0].T.copy()) if turned else (Xs[0], Gs[0])
    d, number = len(X), X.dtype.type
    lr, momentum, tolerance, a0, a1, a2, a3, a4, a5 = numbers
    zero, one, two, size, total = number(0), number(1), number(2), number(0), number(0)
    work = np.empty((7, d, d), X.dtype)
    P, Q, S, T, U, Y, WX = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    combine(momentum, V if len(V) else G, -one, G, T, zero)  # without V the momentum is 0
    np.dot(T, X.T, P)
    for j in range(d):
        column = zero
        for i in range(d):
            Q[j, i] = (P[j, i] - P[i, j]) / two  # W: its rows have the sums of its columns
            column += abs(Q[j, i])
            total += P[j, i]
        size = max(size, column)
    np.dot(Q, X, WX)
    combine(number(min(lr / 2, CONTRACTION / (size + 1e-8))), Q, zero, Q, Q, zero)
    np.dot(Q, Q, U)
    np.dot(U, U, P)
    combine(a5, U, zero, U, T, a4)
    np.dot(P, T, S)
    combine(one, S, a3, U, S, a2)
    np.dot(P, S, T)
    combine(one, T, a1, U, T, a0)
    np.dot(T, X, S)
    np.dot(Q, S, P)
    combine(two, S, two, P, Y, zero)
    combine(one, Y, -one, X, Y, zero)
    if not (np.isfinite(total) and correct(Y, P, S, tolerance)):
        return False
    for i in range(d):
        for j in range(d):
            Xs[0, i, j] = Y[j, i] if turned else Y[i, j]
    combine(one, WX[: len(V)], zero, WX[: len(V)], V, zero)
    return True
