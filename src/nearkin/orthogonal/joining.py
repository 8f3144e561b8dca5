"""Parameters of one shape as one batch: a step on many small matrices costs few calls instead of a few for each."""

# pyright: reportConstantRedefinition=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from nearkin._types import Record
from nearkin.orthogonal.layout import as_tall

LARGEST = 64 * 64  # entries of a matrix; beyond, the products are the cost and not the calls


Active = Sequence[tuple[Record, Tensor]]


def joined_by_shape(active: Active, states: Mapping[Tensor, Record]) -> list[tuple[Record, list[Tensor]]]:
    """The parameters of one group in lists that make one batch each: same shape, dtype, device, steps and state.

    A parameter that is large, or of 16 bits with its copy in the state, is alone.
    """
    if len(active) == 1:
        return [(active[0][0], [active[0][1]])]
    lists: dict[tuple[object, ...], tuple[Record, list[Tensor]]] = {}
    for group, p in active:
        small = p.dtype in (torch.float32, torch.float64) and p.shape[-1] * p.shape[-2] <= LARGEST
        state = states.get(p, {})
        whole = (id(group), p.shape, p.dtype, p.device, state.get("step", 0), *state)
        key = whole if small and group.get("foreach") else (id(p),)
        lists.setdefault(key, (group, []))[1].append(p)
    return list(lists.values())


def stacked(tensors: Sequence[Tensor], layout: str) -> Tensor:
    """The tensors of one shape as one contiguous batch of tall matrices (b, d, k)."""
    whole = torch.stack([T.detach() for T in tensors])
    return as_tall(whole.flatten(2) if layout == "convolution" else whole).contiguous()


def write_back_all(params: Sequence[Tensor], X: Tensor, layout: str) -> None:
    """Copy the batch X (b, d, k), as `stacked` orders it, into the parameters."""
    shape = params[0].flatten(1).shape if layout == "convolution" else params[0].shape
    matrices = X if shape[-2] >= shape[-1] else X.mT
    copy_all(params, matrices.reshape(len(params), *params[0].shape).unbind())


def copy_all(targets: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy each value into its target, in one call."""
    torch._foreach_copy_(list(targets), list(values))  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def joint_state(states: Sequence[Record]) -> Record:
    """One state for the batch: tensors of matrices (b, d, k) or of numbers (b,) one after the other, the rest once."""
    joint = dict(states[0])
    for name, value in states[0].items():
        if isinstance(value, Tensor):
            whole = torch.stack([state[name] for state in states])
            joint[name] = whole.flatten(0, max(whole.ndim - 3, 1 if whole.ndim == 2 else 0))
    return joint


def part_state(joint: Record, states: Sequence[Record], b: int, *, squeezed: bool) -> None:
    """Give every parameter, of b matrices, its part of the joint state, in the shape it has when it steps alone.

    `squeezed`: whether that of a single matrix has no axis of batches.
    """
    for name, value in joint.items():
        if not isinstance(value, Tensor):
            for state in states:
                state[name] = value
            continue
        shape = value.shape[1:] if squeezed and b == 1 and value.ndim == 3 else (b, *value.shape[1:])
        parts = value.reshape(len(states), *shape).unbind()
        if name in states[0]:
            copy_all([state[name] for state in states], parts)
            continue
        for state, part in zip(states, parts, strict=True):
            state[name] = part.clone()
