"""Parameters as batches of tall matrices with orthonormal columns, and back; small ones of one shape share a batch."""

# pyright: reportConstantRedefinition=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin._types import Record

LAYOUTS = ("matrix", "convolution")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Defaults:
    """Sizes at which one way to compute the same step overtakes the other, in entries of a matrix or its side."""

    batched: int = 64 * 64  # parameters of one shape up to here move as one batch
    compiled: int = 128 * 128  # "newton-schulz" and "taylor" up to here are one compiled call
    large: int = 1024  # side from which `cheap_gradients` selects the flow


DEFAULTS = Defaults()


def as_tall(
    p: Tensor,  # (..., d, k), or a convolution kernel (C_out, C_in, *window)
    layout: str = "matrix",
) -> Tensor:
    """Return a view (b, d, k), d >= k, of p; a copy if p's memory has no such view.

    A wide matrix is transposed, so that its rows are orthonormal. A convolution kernel is its flattened
    (C_in * window, C_out) matrix (flows, section 6.2, up to the order of rows), transposed if C_out is the longer side.
    """
    if layout == "convolution":
        p = p.flatten(1)
    if p.ndim == 2:
        return (p if p.shape[0] >= p.shape[1] else p.mT).unsqueeze(0)
    matrices = p.reshape(-1, *p.shape[-2:])
    return matrices if matrices.shape[-2] >= matrices.shape[-1] else matrices.mT


def from_tall(X: Tensor, p: Tensor, layout: str) -> Tensor:
    """Return tall matrices X (b, d, k) in the shape of p: the inverse of `as_tall`."""
    shape = p.flatten(1).shape if layout == "convolution" else p.shape
    return (X if shape[-2] >= shape[-1] else X.mT).reshape(p.shape)


def working_dtype(p: Tensor) -> torch.dtype:
    """float64 parameters are moved in float64, all others in float32."""
    return torch.float64 if p.dtype == torch.float64 else torch.float32


def check_whole(p: Tensor, name: str) -> None:
    """TypeError if p is only a part of parameters, as fully sharded training makes them."""
    flat = vars(p).get("_is_flat_param", False)  # torch's mark of a FlatParameter, which is a plain Parameter
    if flat or type(p).__name__ == "DTensor":  # by name: torch.distributed need not be loaded
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


def batches_by_shape(
    active: Sequence[tuple[Record, Tensor]],  # (group, parameter)
    states: Mapping[Tensor, Record],
) -> list[tuple[Record, list[Tensor]]]:
    """Lists of parameters that move as one batch: same group, shape, dtype, device, number of steps and kind of state.

    Large parameters, and 16-bit ones with a float32 copy in their state, move alone.
    """
    if len(active) == 1:
        return [(active[0][0], [active[0][1]])]
    lists: dict[tuple[object, ...], tuple[Record, list[Tensor]]] = {}
    for group, p in active:
        small = p.dtype in (torch.float32, torch.float64) and p.shape[-1] * p.shape[-2] <= DEFAULTS.batched
        state = states.get(p, {})
        whole = (id(group), p.shape, p.dtype, p.device, state.get("step", 0), *state)
        key = whole if small and group.get("foreach") else (id(p),)
        lists.setdefault(key, (group, []))[1].append(p)
    return list(lists.values())


def stacked(tensors: Sequence[Tensor], layout: str) -> Tensor:
    """The tensors of one shape as one contiguous batch of tall matrices (b, d, k)."""
    whole = torch.stack([T.detach() for T in tensors])
    return as_tall(whole.flatten(2) if layout == "convolution" else whole).contiguous()


def unstacked(params: Sequence[Tensor], X: Tensor, layout: str) -> None:
    """Copy the batch X (b, d, k), in the order of `stacked`, into the parameters."""
    shape = params[0].flatten(1).shape if layout == "convolution" else params[0].shape
    matrices = X if shape[-2] >= shape[-1] else X.mT
    _copy(params, matrices.reshape(len(params), *params[0].shape).unbind())


def stacked_state(states: Sequence[Record]) -> Record:
    """One state for the batch: tensors of matrices (b, d, k) or of numbers (b,) concatenated, the rest once."""
    joint = dict(states[0])
    for name, value in states[0].items():
        if isinstance(value, Tensor):
            whole = torch.stack([state[name] for state in states])
            joint[name] = whole.flatten(0, max(whole.ndim - 3, 1 if whole.ndim == 2 else 0))
    return joint


def unstacked_state(joint: Record, states: Sequence[Record], b: int, *, squeezed: bool) -> None:
    """Copy into each state its part of the batch's state, for a parameter of b matrices.

    `squeezed`: whether the state of a single matrix has no batch axis.
    """
    for name, value in joint.items():
        if not isinstance(value, Tensor):
            for state in states:
                state[name] = value
            continue
        shape = value.shape[1:] if squeezed and b == 1 and value.ndim == 3 else (b, *value.shape[1:])
        parts = value.reshape(len(states), *shape).unbind()
        if name in states[0]:
            _copy([state[name] for state in states], parts)
            continue
        for state, part in zip(states, parts, strict=True):
            state[name] = part.clone()  # each saves its own memory and not that of the batch


def _copy(targets: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy each value into its target, in one call."""
    torch._foreach_copy_(list(targets), list(values))  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
