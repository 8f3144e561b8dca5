"""Modules with orthonormal weights: projected once, or parametrized for any optimizer.

`orthogonal_parametrization` makes the weight the polar factor X = P (P^T P)^(-1/2) of an ordinary parameter P, by
matrix products alone. When P has been moved, it is replaced by its own polar factor, which does not change the weight;
at such a point the derivative of the polar factor is the projection onto the tangent space, dX = dP - X sym(X^T dP). So
a step costs a few products and no factorisation, and optimizers copy, average, interpolate and save P itself."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from nearkin._check import check_choice, torch_generator
from nearkin._types import Seed
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.linalg.skew import drop_normal
from nearkin.orthogonal.optimizer import as_tall, check_layout, from_tall, whole, without_autocast, write_whole
from nearkin.orthogonal.retraction import polar_orthonormalize

# tolerance of ||P^T P - I||_F / sqrt(k), at rounding level: below it P is the weight
EXACT = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 5e-4, torch.bfloat16: 4e-3}
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def layout_of(module: nn.Module) -> str:
    """Return "convolution" for a convolution layer, whose kernel is one matrix, and "matrix" for all others."""
    return "convolution" if isinstance(module, CONVOLUTIONS) else "matrix"


def _parameter(module: object, name: str) -> nn.Parameter:
    """`module`'s own parameter `name`, which can hold an orthonormal matrix; ValueError or TypeError if not."""
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"module is a {type(module).__name__}; it must be the torch module that has the parameter: type (module, "
            "'weight')"
        )
    own = dict(module.named_parameters(recurse=False, remove_duplicate=False))
    if name not in own:
        names = ", ".join(own) or "none directly"
        raise ValueError(f"name is {name!r}; it must be a parameter of the {type(module).__name__}, which has: {names}")
    check_layout(own[name], name, layout_of(module))
    if isinstance(module, CONVOLUTIONS) and module.groups > 1:
        raise ValueError(
            f"module has groups={module.groups}: its kernel {tuple(own[name].shape)} is {module.groups} matrices of "
            "different channels and not one; it must have groups=1"
        )
    return own[name]


def _matrix(p: Tensor, name: object) -> Tensor:
    """The tensor p if it can be one orthonormal matrix; ValueError or TypeError if not."""
    if name != "weight":
        raise TypeError(f"name is {name!r}, but the module is a tensor, which has no names; type orthogonal_(tensor)")
    check_layout(p, "the tensor", "matrix")
    if p.ndim > 2:
        raise ValueError(
            f"the tensor has shape {tuple(p.shape)}, a batch of matrices or a convolution kernel; type "
            "orthogonal_(module, 'weight') with the module that has it, or give one matrix after the other"
        )
    return p


@torch.no_grad()
def orthogonal_(
    module: nn.Module | Tensor, name: str = "weight", *, init: str = "haar", random_state: Seed | torch.Generator = None
) -> Tensor:
    """Make a parameter orthonormal in place, ready for an optimizer of this package.

    A tall matrix (d, k) gets orthonormal columns, a wide one orthonormal rows; a kernel (C_out, C_in, ...), of a
    transposed convolution (C_in, C_out, ...), is one matrix, flattened from its second axis on (give its group
    layout="convolution").

    Parameters
    ----------
    module: a module, or a matrix itself, as for `torch.nn.init.orthogonal_`.
    name: the module's parameter.
    init: "haar" draws a random point; "nearest" projects the values.
    random_state: seed; None draws another point at each call (`torch.manual_seed` has no effect).

    Returns
    -------
    weight: the parameter.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(8, 3)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> nk.orthogonal.is_orthogonal(weight)
    True
    """
    check_choice(init, "init", ("haar", "nearest"))
    if isinstance(module, Tensor):
        p, layout = _matrix(module, name), "matrix"
    else:
        p, layout = _parameter(module, name), layout_of(module)
    X = as_tall(whole(p), layout)
    if init == "haar":
        generator = torch_generator(random_state)
        fresh = haar_orthogonal(*X.shape, random_state=generator, dtype=torch.float64).to(p.device)
    elif not X.isfinite().all():
        raise ValueError(f"{name} holds NaN or infinity, which no orthonormal matrix is near; type init='haar'")
    else:
        fresh = nearest_orthogonal(X.double())
    write_whole(p, from_tall(fresh, p, layout), source=0)
    return p


def orthogonal_parametrization(module: nn.Module, name: str = "weight") -> nn.Module:
    """Make a module's parameter orthonormal for every optimizer.

    A drop-in for `torch.nn.utils.parametrizations.orthogonal`: tall matrices have orthonormal columns, wide ones
    orthonormal rows, batches (..., d, k) are batches, and a kernel is one flattened matrix, as `orthogonal_` has it,
    also of a transposed convolution. The optimizer
    moves `module.parametrizations.weight.original`. The present value is projected onto the manifold; an orthonormal
    one is kept, and so is one assigned later (`module.weight = Q`).

    Under `fully_shard` the weight is orthonormal too, but P is not replaced, so that steps get shorter as it grows.
    Weight decay has no effect on such a weight, since the polar factor does not depend on the scale of P.

    Parameters
    ----------
    module: the module, changed in place.
    name: its parameter.

    Returns
    -------
    module: the same.

    Examples
    --------
    >>> import torch
    >>> layer = nk.orthogonal.orthogonal_parametrization(torch.nn.Linear(8, 3))
    >>> optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    >>> layer(torch.ones(2, 8)).square().sum().backward()
    >>> _ = optimizer.step()
    >>> nk.orthogonal.is_orthogonal(layer.weight, 1e-6)
    True
    """
    _parameter(module, name)
    parametrize.register_parametrization(module, name, _Orthonormal(layout_of(module)))
    return module


class _Orthonormal(nn.Module):
    """The parametrization itself: P -> its polar factor, in P's shape and type."""

    def __init__(self, layout: str) -> None:
        super().__init__()
        self.layout = layout
        self.measured: Tensor | None = None  # the last P of `eval`, so that an orthonormal one is measured once

    def forward(self, P: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        if is_traced():
            return _traced_polar(P, self.layout)
        transformed = torch._C._are_functorch_transforms_active()  # pyright: ignore[reportPrivateUsage]
        plain = not transformed  # they allow no change of their arguments
        if plain and (self.training or not _same(P, self.measured)):
            with torch.no_grad():
                X = polar_by_products(as_tall(P, self.layout))
                if X is not None:
                    P.copy_(from_tall(X, P, self.layout))
                self.measured = None if self.training else P.clone()
        return cast(Tensor, _Polar.apply(P, self.layout, plain))

    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return a P whose weight is Q: Q itself if it is orthonormal, else the nearest orthonormal matrix."""
        with torch.no_grad():
            X = polar_by_products(as_tall(Q, self.layout))
        return Q if X is None else from_tall(X, Q, self.layout).to(Q.dtype).contiguous()


def _same(P: Tensor, other: Tensor | None) -> bool:
    return other is not None and (P.dtype, P.device) == (other.dtype, other.device) and torch.equal(P, other)


class _Polar(torch.autograd.Function):
    """The polar factor, which is P itself where `known`, with the derivatives that it has at an orthonormal P."""

    @staticmethod
    def forward(P: Tensor, layout: str, known: bool) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return P.view_as(P) if known else _polar(P, layout)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, inputs, output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _tangent(ctx.saved_tensors[0], gradients[0], ctx.layout), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _tangent(ctx.saved_tensors[0], tangents[0], ctx.layout)

    @staticmethod
    def vmap(info: Any, in_dims: Any, P: Tensor, layout: str, known: bool) -> tuple[Tensor, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        del info
        P = P.movedim(in_dims[0], 0)
        matrices = P.flatten(2) if layout == "convolution" else P
        return cast(Tensor, _Polar.apply(matrices, "matrix", known)).reshape(P.shape), 0


@torch.library.custom_op("nearkin::polar", mutates_args=())
def _traced_polar(P: Tensor, layout: str) -> Tensor:
    """`_polar` for compilers and tracers, which follow no branch that depends on numbers: one operator to them."""
    return _polar(P, layout)


@_traced_polar.register_fake
def _(P: Tensor, layout: str) -> Tensor:
    return torch.empty_like(P)


def _save(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.layout = inputs[1]
    ctx.save_for_backward(output)


def _back(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return _tangent(ctx.saved_tensors[0], gradient, ctx.layout), None


_traced_polar.register_autograd(_back, setup_context=_save)


def _polar(P: Tensor, layout: str) -> Tensor:
    """The polar factor of P in its shape and type, always a new tensor."""
    with torch.no_grad():
        X = polar_by_products(as_tall(P, layout))
        return P.clone() if X is None else torch.empty_like(P).copy_(from_tall(X, P, layout))


def _tangent(Q: Tensor, V: Tensor, layout: str) -> Tensor:
    """The part of V that is tangent at the orthonormal Q."""
    with without_autocast(Q):
        X = as_tall(Q, layout)
        return from_tall(drop_normal(X, as_tall(V, layout).to(X.dtype)), Q, layout).to(Q.dtype)


def is_traced() -> bool:
    """Whether torch follows the program and not its numbers: it compiles, exports or traces."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def polar_by_products(M: Tensor) -> Tensor | None:
    """Return M (M^T M)^(-1/2) (..., d, k) by Newton-Schulz steps or singular vectors; None if M is orthonormal."""
    wide = M if M.dtype == torch.float64 else M.float()
    with without_autocast(M):
        X = polar_orthonormalize(wide, EXACT[M.dtype])
    return None if X is wide else X
