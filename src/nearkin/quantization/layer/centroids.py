"""The codebooks of an `IndexingLayer`: running means of the vectors that choose a centroid, or ordinary parameters."""

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from nearkin._distributed import ALONE, current
from nearkin.quantization.codebooks import assign
from nearkin.quantization.product import DEFAULTS


class LayerCentroids(nn.Module):
    """C (M, K, w) and the averages of `RunningFit` that update it, in buffers, so that the `state_dict` has them;
    `observe` is called once a training step."""

    sums: Tensor  # (M, K, d), or empty where nothing but the counts is averaged
    counts: Tensor  # (M, K) float64

    def __init__(self, shape: tuple[int, int, int], *, by_gradient: bool, horizon: int) -> None:
        super().__init__()
        M, K, width = shape
        self.by_gradient: bool = by_gradient
        self.horizon: int = horizon
        self.codebooks: nn.Parameter = nn.Parameter(torch.zeros(shape), requires_grad=by_gradient)
        self.register_buffer("sums", torch.zeros(M, K, 0 if by_gradient else M * width))
        self.register_buffer("counts", torch.zeros(M, K, dtype=torch.float64))

    def set(self, codebooks: np.ndarray) -> None:
        """Continue from codebooks (M, K, w); the averages restart."""
        with torch.no_grad():
            self.codebooks.copy_(torch.from_numpy(codebooks))
            self.sums.zero_()
            self.counts.zero_()

    def begin(self, X: np.ndarray, rotation: np.ndarray) -> None:
        """Fill the averages with vectors X (n, d), at the weight of at most one horizon."""
        codes = assign(X @ rotation, self.codebooks.detach().cpu().numpy())
        rows, chosen = (torch.from_numpy(array).to(self.counts.device) for array in (X, codes))
        add_rows(rows, chosen, self.sums, self.counts)
        excess = len(X) / self.horizon
        if excess > 1:
            self.sums /= excess
            self.counts /= excess

    def observe(self, X: Tensor, codes: Tensor, R: Tensor) -> None:
        """Add the vectors X (b, d) of all processes with their codes (b, M), and update what averages update. All
        processes end with rank 0's result."""
        self._absorb(X, codes)
        fewest = DEFAULTS.dead * self.counts[0].sum() / self.counts.shape[1]
        if self.by_gradient:
            books, dead = revived(self.codebooks.detach(), self.counts, fewest)
            self.counts.copy_(torch.where(dead, self.counts.mean(1, keepdim=True), self.counts))  # time to win rows
        else:  # the means need no centring, which saves a pass over the sums
            books = centroids(self.sums, self.counts, R, fewest)
        self.codebooks.data.copy_(books)
        if several():  # machines of different kinds may round differently
            take_from_first([self.codebooks], X.device)

    def _absorb(self, X: Tensor, codes: Tensor) -> None:
        """Let the averages decay by the rows of all processes, and add them."""
        batch = torch.zeros_like(self.sums), torch.zeros_like(self.counts)
        add_rows(X, codes, *batch)
        for part in batch if several() else ():
            part.copy_(summed(part.to(X.device)))
        share = (1 - batch[1][0].sum() / self.horizon).clamp_min(0)
        for total, part in zip((self.sums, self.counts), batch, strict=True):
            total.mul_(share.to(total.dtype)).add_(part)


def on_host(tensor: Tensor) -> bool:
    """Whether the tensor is on the CPU: reading a number from a device would synchronize."""
    return tensor.device.type == "cpu"


def add_rows(
    X: Tensor,  # (b, d)
    codes: Tensor,  # (b, M) int64
    sums: Tensor,  # (M, K, d), changed; (M, K, 0) where only rows are counted
    counts: Tensor,  # (M, K), changed
) -> None:
    """Add every vector to the centroids that it chose, in each of the M subspaces."""
    for m, chosen in enumerate(codes.unbind(1)):
        counts[m].index_add_(0, chosen, torch.ones_like(chosen, dtype=counts.dtype))
        if sums.shape[-1]:
            sums[m].index_add_(0, chosen, X.to(sums.dtype))


def centroids(sums: Tensor, counts: Tensor, R: Tensor, fewest: Tensor) -> Tensor:
    """The best codebooks (M, K, d/M) for what was added, under a rotation R (d, d): `ClusterSums.centroids`."""
    M, _, d = sums.shape
    blocks = torch.bmm(sums, R.to(sums.dtype).view(d, M, d // M).transpose(0, 1))
    return revived(blocks / torch.where(counts > fewest, counts, 1)[..., None].to(blocks.dtype), counts, fewest)[0]


def revived(
    codebooks: Tensor,  # (M, K, w)
    counts: Tensor,  # (M, K)
    fewest: Tensor,  # ()
) -> tuple[Tensor, Tensor]:
    """Codebooks whose centroids of at most `fewest` vectors are next to the most chosen, and which those are (M, K)."""
    dead = counts <= fewest
    donors = counts.argsort(dim=1, descending=True, stable=True)
    living = (~dead).sum(1, keepdim=True).clamp_min(1)
    turn = (dead.cumsum(1) - 1).clamp_min(0) % living
    near = codebooks.gather(1, donors.gather(1, turn)[..., None].expand_as(codebooks)) * (1 + 1 / 1024)
    return torch.where(dead[..., None], near, codebooks), dead


def several() -> bool:
    """Whether more processes than this one train the layer."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1 and current() is ALONE


def is_first() -> bool:
    return dist.get_rank() == 0


def take_from_first(tensors: list[Tensor], device: torch.device) -> None:
    """Overwrite the tensors with rank 0's; `device` is that of the vectors."""
    for tensor in tensors:
        sent = tensor.detach().to(device).contiguous()
        dist.broadcast(sent, 0)
        tensor.detach().copy_(sent)


def summed(x: Tensor) -> Tensor:
    """The sum of the x of all ranks, in place."""
    if several():
        dist.all_reduce(x)
    return x


def gathered(x: Tensor) -> Tensor:
    """The vectors x (b, d) of all ranks, any number on each, in the order of the ranks."""
    lengths = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=x.device)
    lengths[dist.get_rank()] = len(x)
    dist.all_reduce(lengths)
    first = int(lengths[: dist.get_rank()].sum())
    rows = x.new_zeros(int(lengths.sum()), x.shape[1])
    rows[first : first + len(x)] = x  # others have zeros there, so the sum holds every rank's rows
    dist.all_reduce(rows)
    return rows
