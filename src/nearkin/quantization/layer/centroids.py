"""The codebooks of an `IndexingLayer`: running means of the rows that choose a centroid, or ordinary parameters."""

import numpy as np
import torch
from torch import Tensor, nn

from nearkin.quantization.codebooks import ClusterSums, assign, revive
from nearkin.quantization.layer import averages, ranks
from nearkin.quantization.rotation import make_update
from nearkin.quantization.streaming import DEAD, RunningFit

_BLOCKS = 1  # Givens blocks a step: the averages change little from step to step


class LayerCentroids(nn.Module):
    """C (M, K, w) and the averages that move it; `observe` is called once a training step.

    The averages are `streaming.RunningFit`'s, held in buffers so that they are saved with the `state_dict`: sums of
    unrotated rows stay valid while the rotation moves, and M = X^T phi follows from them at K d^2 products.
    """

    sums: Tensor  # (M, K, d), or empty where nothing but the counts is averaged
    counts: Tensor  # (M, K) float64

    def __init__(self, shape: tuple[int, int, int], *, by_gradient: bool, exact_rotation: bool, horizon: int) -> None:
        super().__init__()
        M, K, width = shape
        self.by_gradient, self.horizon = by_gradient, horizon
        self.exact_rotation = exact_rotation
        self.codebooks = nn.Parameter(torch.zeros(shape), requires_grad=by_gradient)
        averaged = not by_gradient or exact_rotation
        self.register_buffer("sums", torch.zeros(M, K, M * width if averaged else 0))
        self.register_buffer("counts", torch.zeros(M, K, dtype=torch.float64))

    def set(self, codebooks: np.ndarray) -> None:
        """Go on from codebooks (M, K, w); the averages begin anew."""
        with torch.no_grad():
            self.codebooks.copy_(torch.from_numpy(codebooks))
            self.sums.zero_()
            self.counts.zero_()

    def begin(self, X: np.ndarray, rotation: np.ndarray) -> None:
        """Fill the averages with rows X (n, d), at the weight of at most one horizon."""
        codes = assign(X @ rotation, self.codebooks.detach().cpu().numpy())
        self._add(X, codes)
        excess = len(X) / self.horizon
        if excess > 1:
            self.sums /= excess
            self.counts /= excess

    def observe(self, X: Tensor, codes: Tensor, R: Tensor) -> Tensor | None:
        """Add the rows X (b, d) with their codes (b, M); move what moves by averages; the next R where it is one.

        In data-parallel training the rows of all processes count, and all end with rank 0's result. On a device all of
        it stays there but the exact rotation.
        """
        if not averages.on_host(X) and not self.exact_rotation:
            self._observe_there(X, codes, R)
            return None
        self._absorb(X, codes)
        rotation, books = R.cpu().numpy(), None
        if self.exact_rotation:
            update = make_update("givens-greedy", len(R), "exact", _BLOCKS, None)
            rotation, books = RunningFit(update, self.horizon, self._view()).improve(rotation)
        elif not self.by_gradient:  # the means need no centring, a pass over the sums less
            books = self._view().centroids(rotation, self._fewest())
        if self.by_gradient:
            self._revive()
        else:
            self.codebooks.data.copy_(torch.from_numpy(books))
        turned = torch.from_numpy(rotation) if self.exact_rotation else None
        if ranks.several():  # machines of different kinds may round differently
            ranks.take_from_first([self.codebooks, *([] if turned is None else [turned])], X.device)
        return turned

    def _observe_there(self, X: Tensor, codes: Tensor, R: Tensor) -> None:
        """`observe` without a number that the host would have to wait for."""
        fresh = torch.zeros_like(self.sums), torch.zeros_like(self.counts)
        averages.add_rows(X, codes, *fresh)
        if ranks.several():
            for batch in fresh:
                ranks.add_up(batch, X.device)
        share = (1 - fresh[1][0].sum() / self.horizon).clamp_min(0)
        for total, batch in zip((self.sums, self.counts), fresh, strict=True):
            total.mul_(share.to(total.dtype)).add_(batch)
        fewest = DEAD * self.counts[0].sum() / self.counts.shape[1]
        if self.by_gradient:
            books, dead = averages.revived(self.codebooks.detach(), self.counts, fewest)
            self.counts.copy_(torch.where(dead, self.counts.mean(1, keepdim=True), self.counts))
        else:
            books = averages.centroids(self.sums, self.counts, R, fewest)
        self.codebooks.data.copy_(books)
        if ranks.several():
            ranks.take_from_first([self.codebooks], X.device)

    def _absorb(self, X: Tensor, codes: Tensor) -> None:
        """Let the averages decay by the rows of all processes, and add them."""
        if not ranks.several():
            self._decay(len(X))
            self._add(X.cpu().numpy(), codes.cpu().numpy())
            return
        fresh = torch.zeros_like(self.sums, device="cpu"), torch.zeros_like(self.counts, device="cpu")
        _add_rows(X.cpu().numpy(), codes.cpu().numpy(), *fresh)
        for batch in fresh:
            ranks.add_up(batch, X.device)
        self._decay(float(fresh[1][0].sum()))
        self.sums += fresh[0].to(self.sums)
        self.counts += fresh[1].to(self.counts)

    def _decay(self, rows: float) -> None:
        share = max(0.0, 1 - rows / self.horizon)
        self.sums *= share
        self.counts *= share

    def _add(self, X: np.ndarray, codes: np.ndarray) -> None:
        sums, counts = self.sums.cpu(), self.counts.cpu()  # numba's loops run on the host; there, the same memory
        _add_rows(X, codes, sums, counts)
        if sums is not self.sums:
            self.sums.copy_(sums)
            self.counts.copy_(counts)

    def _view(self) -> ClusterSums:
        """The buffers as `ClusterSums`, to be read."""
        return ClusterSums.of(self.sums.cpu().numpy(), self.counts.cpu().numpy())

    def _fewest(self) -> float:
        """Rows that a centroid must have on average, or be moved."""
        return DEAD * float(self.counts[0].sum()) / self.counts.shape[1]

    def _revive(self) -> None:
        fewest = self._fewest()
        for m, counts in enumerate(self.counts.cpu().numpy()):
            if (counts <= fewest).any():
                centroids = self.codebooks[m].detach().cpu().numpy().copy()
                dead = revive(centroids, counts, fewest)
                self.codebooks.data[m] = torch.from_numpy(centroids)
                self.counts[m, torch.from_numpy(dead)] = float(counts.mean())  # time to win rows


def _add_rows(X: np.ndarray, codes: np.ndarray, sums: Tensor, counts: Tensor) -> None:
    """Add rows X (n, d) under codes (n, M) to sums (M, K, d), which may be empty, and counts (M, K)."""
    if sums.shape[-1]:
        ClusterSums.of(sums.numpy(), counts.numpy()).update(X, codes)
        return
    for m, row in enumerate(counts):
        row += torch.from_numpy(np.bincount(codes[:, m], minlength=len(row))).to(row)
