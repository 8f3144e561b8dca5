"""Parameters of one shape as one batch: a step on many small matrices costs few calls instead of a few for each."""

# pyright: reportConstantRedefinition=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from nearkin._types import Record
from nearkin.orthogonal.layout import as_tall

LARGEST = 64 * 64  # entries of a matrix; beyond, the products are the cost and not the calls


def joined_by_shape(active: Iterable[tuple[Record, Tensor]], states: Mapping[Tensor, Record]) -> list[list[Tensor]]:
    """The parameters of one group in lists that make one batch each: same shape, dtype, device, steps and state.

    A parameter that is large, or of 16 bits with its copy in the state, is alone.
    """
    lists: dict[tuple[object, ...], list[Tensor]] = {}
    for group, p in active:
        key: tuple[object, ...] = (id(group), p.shape, p.dtype, p.device)
        small = p.dtype in (torch.float32, torch.float64) and p.shape[-1] * p.shape[-2] <= LARGEST
        state = states.get(p, {})
        key = (*key, state.get("step", 0), *state) if small and group.get("foreach") else (*key, id(p))
        lists.setdefault(key, []).append(p)
    return list(lists.values())


def stacked(tensors: Sequence[Tensor], layout: str) -> Tensor:
    """The tensors of one shape as one contiguous batch of tall matrices (b, d, k)."""
    whole = torch.stack([T.detach() for T in tensors])
    return as_tall(whole.flatten(2) if layout == "convolution" else whole).contiguous()


def write_back_all(params: Sequence[Tensor], X: Tensor, layout: str) -> None:
    """Copy the batch X (b, d, k), as `stacked` orders it, into the parameters."""
    shape = params[0].flatten(1).shape if layout == "convolution" else params[0].shape
    matrices = X if shape[-2] >= shape[-1] else X.mT
    for p, values in zip(params, matrices.reshape(len(params), *params[0].shape), strict=True):
        p.copy_(values)


def joint_state(states: Sequence[Record]) -> Record:
    """One state for the batch: tensors of matrices (b, d, k) or of numbers (b,) one after the other, the rest once."""
    joint = dict(states[0])
    for name, value in states[0].items():
        if isinstance(value, Tensor):
            whole = torch.stack([state[name] for state in states])
            joint[name] = whole.flatten(0, max(whole.ndim - 3, 1 if whole.ndim == 2 else 0))
    return joint


def part_state(joint: Record, states: Sequence[Record], b: int) -> None:
    """Give every parameter, of b matrices, its part of the joint state, in the shape it has when it steps alone."""
    for name, value in joint.items():
        if not isinstance(value, Tensor):
            for state in states:
                state[name] = value
            continue
        shape = value.shape[1:] if b == 1 and value.ndim == 3 else (b, *value.shape[1:])
        for state, part in zip(states, value.reshape(len(states), *shape), strict=True):
            if name in state:
                state[name].copy_(part)
            else:
                state[name] = part.clone()
