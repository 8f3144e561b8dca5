"""Data-parallel training of an `IndexingLayer`: what the processes tell each other, through torch.distributed.

It works over torch's own process group, which `DistributedDataParallel` uses too. Inside `nearkin`'s group
(`nearkin._distributed.joined`) and alone nothing is exchanged. Collectives run on the device of the rows, so that gloo
and NCCL both serve.
"""

# pyright: reportUnknownMemberType=false

import torch
import torch.distributed as dist
from torch import Tensor

from nearkin._distributed import ALONE, current


def several() -> bool:
    """Whether more processes than this one train the layer."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1 and current() is ALONE


def is_first() -> bool:
    """Whether this process is rank 0, whose word counts."""
    return dist.get_rank() == 0


def add_up(tensor: Tensor, device: torch.device) -> None:
    """Replace `tensor`, of the same shape on all ranks, by its sum over them; `device` is that of the rows."""
    sent = tensor.to(device)
    dist.all_reduce(sent)
    if sent is not tensor:
        tensor.copy_(sent)


def take_from_first(tensors: list[Tensor], device: torch.device) -> None:
    """Overwrite the tensors with rank 0's; `device` is that of the rows."""
    for tensor in tensors:
        sent = tensor.detach().to(device).contiguous()
        dist.broadcast(sent, 0)
        tensor.detach().copy_(sent)


def gathered(x: Tensor) -> Tensor:
    """The rows x (b, d) of all ranks, any number on each, in the order of the ranks."""
    lengths = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=x.device)
    lengths[dist.get_rank()] = len(x)
    dist.all_reduce(lengths)
    first = int(lengths[: dist.get_rank()].sum())
    rows = x.new_zeros(int(lengths.sum()), x.shape[1])
    rows[first : first + len(x)] = x  # the others hold zeros there: their sum is every rank's rows
    dist.all_reduce(rows)
    return rows
