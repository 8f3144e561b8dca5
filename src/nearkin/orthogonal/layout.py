"""How an ordinary parameter is seen as a batch of tall matrices with orthonormal columns, and written back."""

import torch
from torch import Tensor

LAYOUTS = ("matrix", "convolution")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def as_tall(
    p: Tensor,  # (..., d, k), or a convolution kernel (C_out, C_in, *window)
    layout: str = "matrix",
) -> Tensor:
    """Return a view (b, d, k), d >= k, of p; a copy if p's memory has no such view.

    A wide matrix is seen as its transpose, so that its rows are orthonormal. A convolution kernel is its flattened
    (C_in * window, C_out) matrix (flows, section 6.2, up to the order of rows), transposed if C_out is the longer side.
    """
    if layout == "convolution":
        p = p.flatten(1)
    if p.ndim == 2:
        return (p if p.shape[0] >= p.shape[1] else p.mT).unsqueeze(0)
    matrices = p.reshape(-1, *p.shape[-2:])
    return matrices if matrices.shape[-2] >= matrices.shape[-1] else matrices.mT


def working_dtype(p: Tensor) -> torch.dtype:
    """float64 parameters are moved in float64, all others in float32."""
    return torch.float64 if p.dtype == torch.float64 else torch.float32


def write_back(
    p: Tensor,
    X: Tensor,  # (b, d, k), the point as `as_tall` orders it
    layout: str = "matrix",
) -> None:
    """Copy X into p in place, rounded to p's type."""
    shape = p.flatten(1).shape if layout == "convolution" else p.shape
    matrices = X if shape[-2] >= shape[-1] else X.mT
    p.copy_(matrices.reshape(p.shape))


def check_whole(p: Tensor, name: str) -> None:
    """TypeError if p is only a part of parameters, as fully sharded training makes them."""
    flat = vars(p).get("_is_flat_param", False)  # how torch knows its FlatParameter, which is a plain Parameter
    if flat or type(p).__name__ == "DTensor":  # by name: without loading torch.distributed for it
        kind = "FlatParameter" if flat else "DTensor"
        raise TypeError(
            f"{name} is a {kind} of fully sharded training (FSDP): flat or cut into parts, so that nothing in it can "
            "be held orthonormal. Leave the modules of orthonormal matrices out of the sharding "
            "(ignored_modules= of FSDP, ignored_params= of fully_shard), or train with DistributedDataParallel"
        )


def check_layout(p: Tensor, name: str, layout: str) -> None:
    """TypeError or ValueError if p cannot hold an orthonormal matrix."""
    check_whole(p, name)
    if p.layout != torch.strided:
        raise TypeError(f"{name} is sparse ({p.layout}); it must be dense, pass {name}.to_dense()")
    if p.is_complex():
        raise TypeError(f"{name} has the complex dtype {p.dtype}; it must be real")
    if not p.is_floating_point():
        raise TypeError(f"{name} has dtype {p.dtype}; it must be floating, pass {name}.float()")
    if p.dtype not in DTYPES:
        raise TypeError(f"{name} has dtype {p.dtype}; it must be float16, bfloat16, float32 or float64")
    if p.is_meta:
        raise ValueError(
            f"{name} is on the meta device and has no values; type module.to_empty(device='cpu') and then "
            "nearkin.orthogonal.orthogonal_(module, name)"
        )
    least = 3 if layout == "convolution" else 2
    if p.ndim < least or p.numel() == 0:
        need = "a kernel (C_out, C_in, ...)" if least == 3 else "a matrix or a batch of matrices (..., d, k)"
        raise ValueError(
            f"{name} has shape {tuple(p.shape)}; with layout={layout!r} it must be {need}. "
            "Give other parameters, such as biases, to another optimizer"
        )
