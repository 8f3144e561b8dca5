"""Riemannian gradient descent: the whole skew gradient in every step, five retractions."""

# pyright: reportConstantRedefinition=false

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._check import check_choice
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.linalg.skew import drop_normal, right_skew
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer, Adam, by_angle, first_moment, step_length
from nearkin.orthogonal.retraction import RETRACTIONS, UNMEASURED, left_step, newton_schulz_unseen, right_step
from nearkin.orthogonal.small_step import descend_small, is_small


class RiemannianDescent(AbstractOrthogonalOptimizer):
    """X <- f(-lr Omega) X with the full Omega = G X^T - X G^T (flows, eq. 4): the exact methods.

    Square parameters move from the right, X f(-lr A) with A = X^T G - G^T X (the same curve), and keep momentum and
    Adam's moments entry by entry in A's coordinates: all of them in one Lie algebra, so there is nothing to transport.
    Tall parameters (d > k) move in the span of [X, G] in O(d k^2). Their momentum averages Euclidean gradients, and
    each step takes the part of it that is tangent at the present point: transport by projection at no cost. The
    Adam-like second moment is one number per matrix.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, >= 0.
    retraction: "exp" follows the geodesic; "cayley", "qr" and "polar" stay on the manifold, each with its own
        factorisation; "newton-schulz" uses products only (POGO's rule; more of them when a step is long);
        "taylor" uses the fewest products: the curve to second order, corrected when the error exceeds rounding. The
        fastest on square parameters; on tall ones it is "exp". "auto" is "taylor" for square parameters and
        "newton-schulz" for others. After a step by one of these three ||X^T X - I||_F / sqrt(k) is below 1e-6 in
        float32.
    momentum: heavy ball, in [0, 1], or `Adam()` for the Adam-like step.
    stabilize_every: number of steps after which one Newton-Schulz step removes rounding errors; 0 for never.
    foreach: whether parameters of one shape, of up to 64 x 64 entries a matrix, move as one batch. Each moves as it
        would alone, up to the rounding of batched products.
    check_finite: whether gradients are tested before use: True, "every N" for every N-th step, or False. A test is one
        synchronisation with the device; an undetected NaN goes into the parameters.
    capturable: for "newton-schulz" (and "auto", which is then the same) without Adam: whether steps never wait for the
        device, as CUDA graphs need it. Steps of a norm above about 1/2 are then shortened; give check_finite=False too.
    maximize, layout, callback: see `GivensDescent`.

    A group may have "by_angle", as `orthogonal_optimizer` gives it: lr is then in radians, whatever the objective's
    scale. Adam-like steps are so anyhow.

    References
    ----------
    Choromanski et al. (2020), eq. 4 (flows), arXiv:2003.13563; Absil, Mahony & Sepulchre (2008), Optimization
    algorithms on matrix manifolds.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> B = torch.linalg.qr(torch.arange(9.0).reshape(3, 3) + torch.eye(3)).Q
    >>> X = torch.nn.Parameter(torch.diag(torch.tensor([1.0, 1.0, torch.det(B).sign()])))
    >>> optimizer = nk.orthogonal.RiemannianDescent([X], lr=0.3)
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     loss = ((X - B) ** 2).sum() / 2
    ...     loss.backward()
    ...     _ = optimizer.step()
    >>> bool(torch.allclose(X, B, atol=1e-3))
    True
    """

    _squeezed = True

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        retraction: str = "exp",
        *,
        momentum: float | Adam = 0.0,
        maximize: bool = False,
        stabilize_every: int = 100,
        layout: str = "matrix",
        foreach: bool = True,
        check_finite: bool | str = True,
        capturable: bool = False,
        callback: Callback | None = None,
    ) -> None:
        shared = {"lr": lr, "momentum": momentum, "maximize": maximize, "stabilize_every": stabilize_every}
        own = {"layout": layout, "retraction": retraction, "foreach": foreach, "check_finite": check_finite}
        super().__init__(params, {**shared, **own, "capturable": capturable}, 0, callback)

    def _check_group(self, group: Record, X: Tensor) -> None:
        check_choice(group["retraction"], "retraction", ("auto", *RETRACTIONS))
        products = group["retraction"] in ("auto", "newton-schulz")
        if group["capturable"] and (not products or group.get("betas") is not None):
            raise ValueError(
                f"capturable is True with retraction={group['retraction']!r} and betas={group.get('betas')!r}; only "
                "'newton-schulz' (and so 'auto') with plain momentum makes its steps without looking at numbers"
            )

    def _move_compiled(self, X: np.ndarray, G: np.ndarray, group: Record, state: Record) -> bool:
        often, name = group["stabilize_every"], "taylor" if X.shape[-2] == X.shape[-1] else "newton-schulz"
        fits = group["retraction"] in ("auto", name) and not group.get("capturable") and is_small(X)
        return fits and not (often and state["step"] % often == 0) and descend_small(X, G, group, state)

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        square = X.shape[-2] == X.shape[-1]
        A = right_skew(X, G) if square else G  # what has moments
        if group.get("by_angle") and group.get("betas") is None:
            A = A * by_angle(A if square else G - X @ (G.mT @ X), group, state)
        if group.get("capturable"):  # no number is read from the device
            M = first_moment(A, group, state)
            step = X @ M if square else M - X @ (M.mT @ X)
            return newton_schulz_unseen(X, X - group["lr"] * step)
        if square:
            direction, length = _skew_direction(A, group, state)
            measured = state["step"] % UNMEASURED == 1
            return right_step(X, direction, length, _retraction(X, group), measured=measured)
        M = first_moment(A, group, state)
        batch = (-1, *X.shape[-2:])
        raw = [] if group.get("betas") is None else list(drop_normal(X, G).view(batch))
        length = step_length(raw, group, state)
        if isinstance(length, Tensor):
            M, length = (M.view(batch) * length[:, None, None]).view(X.shape), 1.0
        return left_step(X, M, length, _retraction(X, group))


def _retraction(X: Tensor, group: Record) -> str:
    name = group["retraction"]
    if name != "auto":
        return name
    return "taylor" if X.shape[-2] == X.shape[-1] else "newton-schulz"


def _skew_direction(A: Tensor, group: Record, state: Record) -> tuple[Tensor, float]:
    """Return (direction (b, d, d), length) from the skew gradient A, with moments entry by entry."""
    M = first_moment(A, group, state)
    if group.get("betas") is None:
        return M, group["lr"]
    if "second_moment" not in state:
        state["second_moment"] = torch.zeros_like(A)
    beta1, beta2 = group["betas"]
    v = state["second_moment"].mul_(beta2).addcmul_(A, A, value=1 - beta2)
    direction = M / (v.sqrt() / (1 - beta2 ** state["step"]) ** 0.5 + group["eps"])
    return direction, group["lr"] / (1 - beta1 ** state["step"])
