"""A diagnostic for users: test orthogonality."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin._check import check_instance, check_real
from nearkin.linalg.orthonormal import orthogonality_error

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
