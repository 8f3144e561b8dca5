"""Learning from a stream: exponential averages of the cluster sums, one rotation update a batch."""

import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin.quantization.codebooks import ClusterSums, Update, assign

DEAD = 0.02  # a centroid below this share of the mean count moves to where rows are


class RunningFit:
    """The state of `ProductQuantizer.partial_fit`.

    `horizon` is the number of rows averaged over. The sums are of unrotated rows, so they stay valid while the rotation
    moves, and M = X^T Y is formed from them under the newest codebooks: a batch alone is too noisy for a rotation
    (a block or an SVD on the batch's own M ends clearly worse), the average is not.
    """

    def __init__(self, update: Update | None, horizon: int, sums: ClusterSums) -> None:
        self._update = update
        self._horizon = horizon
        self._sums = sums

    def absorb(self, X: np.ndarray, rotation: np.ndarray, codebooks: np.ndarray, group: Group = ALONE) -> None:
        """Add a batch X (b, d), each process its own, to the averages under the present rotation and codebooks."""
        codes = assign(X @ rotation, codebooks)
        batch = ClusterSums(self._sums.n_subspaces, self._sums.n_centroids, self._sums.d).update(X, codes)
        rows = group.merge(batch).counts[0].sum()
        self._sums.decay(max(0.0, 1 - rows / self._horizon)).merge(batch)

    def update(
        self, X: np.ndarray, rotation: np.ndarray, codebooks: np.ndarray, group: Group = ALONE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Absorb a batch; return the next rotation (d, d) and codebooks (M, K, d/M)."""
        self.absorb(X, rotation, codebooks, group)
        return self.improve(rotation)

    def improve(self, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next rotation and codebooks from the averages as they are."""
        sums, mean = self._sums.centred()
        rows = sums.counts[0].sum()
        fewest = DEAD * rows / sums.n_centroids
        centred = sums.centroids(rotation, fewest)
        if self._update is not None:
            rotation = self._update(rotation, sums.cross_product(centred) / np.float32(max(rows, 1)))
            centred = sums.centroids(rotation, fewest)
        return rotation, centred + (mean @ rotation).reshape(sums.n_subspaces, 1, -1)
