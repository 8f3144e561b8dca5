"""The averages of `layer.centroids` where they lie: no number goes to the host, so that a device is never waited for.

The formulas are those of `codebooks.ClusterSums` and `codebooks.revive`, the twins on the host to which tests hold
them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import torch
from torch import Tensor


def on_host(tensor: Tensor) -> bool:
    """Whether reading a number of it costs nothing: else it means to wait for a device."""
    return tensor.device.type == "cpu"


def add_rows(
    X: Tensor,  # (b, d)
    codes: Tensor,  # (b, M) int64
    sums: Tensor,  # (M, K, d), changed; (M, K, 0) where only rows are counted
    counts: Tensor,  # (M, K), changed
) -> None:
    """Add every row to the centroids that it chose, in each of the M subspaces."""
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
    """Codebooks whose centroids of at most `fewest` rows stand beside the most chosen, and which those are (M, K)."""
    dead = counts <= fewest
    donors = counts.argsort(dim=1, descending=True, stable=True)
    living = (~dead).sum(1, keepdim=True).clamp_min(1)
    turn = (dead.cumsum(1) - 1).clamp_min(0) % living
    beside = codebooks.gather(1, donors.gather(1, turn)[..., None].expand_as(codebooks)) * (1 + 1 / 1024)
    return torch.where(dead[..., None], beside, codebooks), dead
