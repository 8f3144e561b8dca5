"""Diagnostics for users: test orthogonality and gradients."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin._check import check_instance, check_integer, check_real
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.linalg.skew import random_skew

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 3e-2}


def is_orthogonal(X: Any, tol: float | None = None) -> bool:
    """Whether ||X^T X - I||_F / sqrt(k) <= tol for every matrix.

    Parameters
    ----------
    X: (..., d, k), array or tensor; for a wide matrix X is its transpose.
    tol: None for 1e-6 in float64, 1e-3 in float32, 3e-2 in bfloat16, so that a matrix rounded to its type passes.

    Returns
    -------
    ok: bool.

    Raises
    ------
    TypeError: what is no floating array or tensor.
    ValueError: a negative tol.

    Examples
    --------
    >>> nk.orthogonal.is_orthogonal(np.eye(3)), nk.orthogonal.is_orthogonal(2 * np.eye(3))
    (True, False)
    """
    check_instance(X, "X", np.ndarray, Tensor)
    if "complex" in str(X.dtype) or (isinstance(X, Tensor) and (X.is_meta or X.layout != torch.strided)):
        raise TypeError(
            f"X is a {type(X).__name__} of {X.dtype}; it must be real and dense, and not on the meta device"
        )
    if tol is None:
        tol = TOLERANCE.get(X.dtype, 1e-6 if str(X.dtype) == "float64" else 1e-3)
    return orthogonality_error(X) <= check_real(tol, "tol", low=0)


def check_gradient(
    f: Callable[[Tensor], Tensor],
    X: Tensor,  # (..., d, k), orthonormal columns
    *,
    gradient: Callable[[Tensor], Tensor] | None = None,
    random_state: int = 0,
) -> tuple[bool, float]:
    """Taylor test of a gradient along a random geodesic.

    For the right gradient the error |f(exp(t W) X) - f(X) - t <G, W X>| falls as t^2, so the slope of its logarithm
    against log t is 2; a wrong gradient gives 1. Computed in float64. A function that is linear along the curve up to
    rounding passes with slope infinity.

    Parameters
    ----------
    f: maps a matrix to a scalar tensor.
    X: (..., d, k), orthonormal.
    gradient: maps X to the Euclidean gradient; by default automatic differentiation.
    random_state: seed of the direction.

    Returns
    -------
    ok: whether the slope is about 2.
    slope: float.

    Raises
    ------
    ValueError: an X that is not orthonormal.
    TypeError: what is no tensor.

    Examples
    --------
    >>> import torch
    >>> X = torch.linalg.qr(torch.ones(4, 2).cumsum(0).cumsum(1) ** 2).Q
    >>> ok, slope = nk.orthogonal.check_gradient(lambda X: (X**3).sum(), X)
    >>> ok
    True
    >>> nk.orthogonal.check_gradient(lambda X: (X**3).sum(), X, gradient=lambda X: X**2)[0]
    False
    """
    random_state = check_integer(random_state, "random_state", low=0, high=2**63 - 1)
    if not is_orthogonal(check_instance(X, "X", Tensor), 1e-3):
        raise ValueError(f"X is not orthonormal: ||X^T X - I||_F / sqrt(k) = {orthogonality_error(X):.3g}")
    X = X.detach().double()
    generator = torch.Generator().manual_seed(random_state)
    W = random_skew(*X.shape[:-2], X.shape[-2], X.shape[-2], generator=generator, dtype=torch.float64).to(X.device)
    W = W / torch.linalg.matrix_norm(W).max()
    if gradient is None:
        with torch.enable_grad():
            point = X.clone().requires_grad_()
            (G,) = torch.autograd.grad(f(point), point)
    else:
        G = gradient(X)
    start, derivative = float(f(X)), float((G * (W @ X)).sum())
    lengths = torch.logspace(-4, -1, 31, dtype=torch.float64)
    errors = torch.tensor(
        [abs(float(f(torch.matrix_exp(float(t) * W) @ X)) - start - float(t) * derivative) for t in lengths],
        dtype=torch.float64,
    )
    above_rounding = errors > 1e-13 * max(1.0, abs(start))
    if int(above_rounding.sum()) < 5:
        return True, float("inf")
    x, y = lengths[above_rounding].log(), errors[above_rounding].log()
    steps = (y[1:] - y[:-1]) / (x[1:] - x[:-1])
    slope = float(steps.median())
    return slope > 1.9, slope
