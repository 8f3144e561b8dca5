"""A weight that any optimizer may move and that is orthonormal whenever it is used, made of matrix products alone.

The weight is the polar factor X = P (P^T P)^(-1/2) of an ordinary parameter P. When P has been moved, it is replaced by
its own polar factor, which changes nothing of the weight; at such a point the derivative of the polar factor is the
projection onto the tangent space, dX = dP - X sym(X^T dP). So a step costs a few products and no factorisation, and
P, not some coordinates of it, is what optimizers copy, average, interpolate and save.
"""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import parametrize

from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.linalg.products import plus_product
from nearkin.linalg.skew import drop_normal
from nearkin.orthogonal.initialize import layout_of
from nearkin.orthogonal.layout import as_tall, check_layout
from nearkin.orthogonal.retraction import orthogonality_probe

# of ||P^T P - I||_F / sqrt(k): as near as rounding leaves it, and P is taken as it is
EXACT = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 5e-4, torch.bfloat16: 4e-3}
NEAR = 0.25  # of ||P^T P - I||_F, below which a step of second order is the cheaper one


def orthogonal_parametrization(module: nn.Module, name: str = "weight") -> nn.Module:
    """Make `module`'s parameter `name` orthonormal for every optimizer; returns the module.

    A drop-in for `torch.nn.utils.parametrizations.orthogonal`: tall matrices have orthonormal columns, wide ones
    orthonormal rows, batches (..., d, k) are batches, and a convolution kernel is taken as its flattened matrix. What
    the optimizer moves is `module.parametrizations.weight.original`. The present value is projected onto the manifold;
    one that is orthonormal is kept as it is, and so is one assigned later (`module.weight = Q`).

    Weight decay has no effect on such a weight, since the polar factor does not depend on P's length. A rank-deficient
    P has no polar factor: that is an error. ValueError or TypeError if there is no such parameter, or if it can hold no
    orthonormal matrix.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = nk.orthogonal.orthogonal_parametrization(torch.nn.Linear(8, 3))
    >>> optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    >>> layer(torch.ones(2, 8)).square().sum().backward()
    >>> _ = optimizer.step()
    >>> nk.orthogonal.is_orthogonal(layer.weight, 1e-6)
    True
    """
    p = dict(module.named_parameters(recurse=False)).get(name)
    if p is None:
        names = ", ".join(n for n, _ in module.named_parameters(recurse=False)) or "none of its own"
        raise ValueError(f"name is {name!r}; it must be a parameter of the {type(module).__name__}, which has: {names}")
    layout = layout_of(module)
    check_layout(p, name, layout)
    parametrize.register_parametrization(module, name, _Orthonormal(layout))
    return module


class _Orthonormal(nn.Module):
    """The parametrization itself: P -> its polar factor, in P's shape and type."""

    def __init__(self, layout: str) -> None:
        super().__init__()
        self.layout = layout

    @torch.compiler.disable
    def forward(self, P: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        with torch.no_grad(), torch.autocast(P.device.type, enabled=False):
            X = polar_by_products(as_tall(P, self.layout))
            if X is not None:
                P.copy_(from_tall(X, P, self.layout))
        return cast(Tensor, _Polar.apply(P, self.layout))

    def right_inverse(self, Q: Tensor) -> Tensor:
        """A P whose weight is Q: Q itself if it is orthonormal, else the nearest orthonormal matrix."""
        with torch.no_grad():
            X = polar_by_products(as_tall(Q, self.layout))
        return Q if X is None else from_tall(X, Q, self.layout).contiguous()


class _Polar(torch.autograd.Function):
    """The polar factor at an orthonormal P, which is P."""

    @staticmethod
    def forward(ctx: Any, P: Tensor, layout: str) -> Tensor:
        ctx.save_for_backward(P)
        ctx.layout = layout
        return P.view_as(P)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (P,) = ctx.saved_tensors
        X, G = (as_tall(T, ctx.layout) for T in (P, gradients[0]))
        with torch.autocast(P.device.type, enabled=False):
            return from_tall(drop_normal(X, G.to(X.dtype)), P, ctx.layout), None


def from_tall(X: Tensor, p: Tensor, layout: str) -> Tensor:
    """Tall matrices X (b, d, k) in the shape and type of p, the inverse of `as_tall`."""
    shape = p.flatten(1).shape if layout == "convolution" else p.shape
    return (X if shape[-2] >= shape[-1] else X.mT).reshape(p.shape).to(p.dtype)


def polar_by_products(M: Tensor) -> Tensor | None:
    """Return M (M^T M)^(-1/2) (..., d, k), in float32 at least, or None if M is orthonormal to rounding already.

    With E = M^T M - I it iterates M <- M - M E / 2 (Newton-Schulz) where ||E||_F is small, and M <- M - M (E / 2 -
    3 E^2 / 8), the next term of the same series, while ||E^2||_F < 1, which bounds E's eigenvalues: all singular values
    then converge to 1. Further away the polar factor comes from the singular vectors.
    """
    enough = EXACT[M.dtype]
    M = M if M.dtype == torch.float64 else M.float()
    if orthogonality_probe(M) <= enough:
        return None
    while True:
        E = M.mT @ M
        E.diagonal(dim1=-2, dim2=-1).sub_(1)
        size = float(torch.linalg.vector_norm(E, dim=(-2, -1)).amax())
        if size < NEAR:
            M = plus_product(M, M, E, -0.5)
            if size**2 <= EXACT[M.dtype] * M.shape[-1] ** 0.5:  # ||E||_F is now 3/4 of its square, or rounding
                return M
            continue
        square = E @ E
        if not float(torch.linalg.vector_norm(square, dim=(-2, -1)).amax()) < 1:
            return _by_singular_vectors(M)
        M = plus_product(M, M, torch.add(E.mul_(-0.5), square, alpha=0.375))


def _by_singular_vectors(M: Tensor) -> Tensor:
    values = torch.linalg.svdvals(M) if bool(torch.isfinite(M).all()) else torch.full_like(M[..., 0], torch.nan)
    if not bool((values.amin(-1) > torch.finfo(M.dtype).eps * values.amax(-1)).all()):
        raise ValueError(
            f"the parameter of shape {tuple(M.shape)} is not finite or not of full rank, so no orthonormal matrix is "
            "nearest to it; lower the learning rate, or start from nearkin.orthogonal.orthogonal_(module, name)"
        )
    return nearest_orthogonal(M)
