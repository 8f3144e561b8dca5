"""A diagnostic for users: test orthogonality."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin._check import check_choice, check_instance, check_real
from nearkin.linalg.orthonormal import orthogonality_error

LAYOUTS = ("matrix", "convolution")
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 3e-2}


def is_orthogonal(X: Any, tol: float | None = None, layout: str | None = None) -> bool:
    """Whether ||X^T X - I||_F / sqrt(k) <= tol for every matrix, or for a convolution kernel as one matrix.

    Parameters
    ----------
    X: (..., d, k), or a kernel (C_out, C_in, ...), array or tensor; for a wide matrix X is its transpose.
    tol: None for 1e-6 in float64, 1e-3 in float32, 3e-2 in bfloat16, so that a matrix rounded to its type passes.
    layout: "matrix" for matrices, "convolution" for a kernel, which is one matrix (C_out, C_in * window), as
        `orthogonal_` makes it. By default either will do, since a tensor alone does not say which it is.

    Returns
    -------
    ok: bool.

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
    if layout is not None:
        check_choice(layout, "layout", LAYOUTS)
    fitting = layout_on_manifold(X, tol, LAYOUTS if layout is None else (layout,))
    if layout is None and fitting == "convolution" and len(X) == 1:
        raise ValueError(
            f"X has shape {tuple(X.shape)}: orthonormal as a convolution kernel of one channel, not as a batch of "
            "matrices; type layout='convolution' or layout='matrix'"
        )
    return fitting is not None


def layout_on_manifold(X: Any, tol: float | None = None, layouts: Sequence[str] = LAYOUTS) -> str | None:
    """The first of the layouts in which X is orthonormal; None if it is in none."""
    if tol is None:
        tol = TOLERANCE.get(X.dtype, 1e-6 if str(X.dtype) == "float64" else 1e-3)
    check_real(tol, "tol", low=0)
    for layout in layouts if X.ndim > 2 else layouts[:1]:
        if orthogonality_error(X.reshape(len(X), -1) if layout == "convolution" else X) <= tol:
            return layout
    return None
