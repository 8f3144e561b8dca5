"""Codebooks of a product quantizer: assignment and k-means by FAISS, and the sums through which data enters a fit.

Names are the field's: M subspaces of d / M dimensions, K centroids in each, codebooks C (M, K, d / M).
"""

from typing import Self

import faiss
import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin.statistics import CellSums

_FUSED_KERNEL = 128_000  # entries from which FAISS searches by its fused kernel, measured
_CACHED_ROWS = 512  # their distances to 256 centroids stay in the cache


def assign(Z: np.ndarray, codebooks: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """Nearest centroid in every subspace: codes (n, M) int32 for rotated rows Z (n, d), codebooks (M, K, d/M).

    For training: several times faster than the encoder of FAISS's own product quantizer, from which it may differ
    where centroids tie to the last bits. Many rows go to one flat FAISS index a subspace, whose fused kernel is the
    fastest; FAISS does not use it for few rows, which therefore go to one matrix product. `n_rows` is the number of
    rows of which Z are a part: the choice falls as it does for the whole.
    """
    M, _, width = codebooks.shape
    nearest = _nearest_by_faiss if (n_rows or len(Z)) * width >= _FUSED_KERNEL else _nearest_by_product
    codes = np.empty((len(Z), M), np.int32)
    for m, centroids in enumerate(codebooks):
        middle = centroids.mean(axis=0)  # both expand |x - c|^2, and about the middle no offset costs them digits
        codes[:, m] = nearest(Z[:, m * width : (m + 1) * width] - middle, centroids - middle)
    return codes


def _nearest_by_faiss(X: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    flat = faiss.IndexFlatL2(X.shape[1])
    flat.add(centroids)
    missing = -(-_FUSED_KERNEL // X.shape[1]) - len(X)
    if missing > 0:  # few rows of many: FAISS must not take another kernel for them, which rounds otherwise
        X, n = np.concatenate([X, np.zeros((missing, X.shape[1]), X.dtype)]), len(X)
        return flat.assign(X, 1)[:n, 0]
    return flat.assign(X, 1)[:, 0]


def _nearest_by_product(X: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    half_norms = np.einsum("kw,kw->k", centroids, centroids) / 2
    nearest = np.empty(len(X), np.int64)
    for first in range(0, len(X), _CACHED_ROWS):
        rows = slice(first, first + _CACHED_ROWS)
        nearest[rows] = np.argmax(X[rows] @ centroids.T - half_norms, axis=1)
    return nearest


def decode(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """Rows (n, d) in the rotated space that the codes (n, M) stand for."""
    M, _, width = codebooks.shape
    Y = np.empty((len(codes), M * width), codebooks.dtype)
    for m in range(M):
        Y[:, m * width : (m + 1) * width] = codebooks[m][codes[:, m]]
    return Y


def squared_error(Z: np.ndarray, codes: np.ndarray, codebooks: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Mean over the rows, weighted if there are weights (n,), of ||z - decode(code)||^2."""
    difference = Z - decode(codes, codebooks)
    return float(np.average(np.einsum("ij,ij->i", difference, difference, dtype=np.float64), weights=weights))


def kmeans(
    Z: np.ndarray,
    n_subspaces: int,
    n_centroids: int,
    n_iter: int,
    seed: int,
    weights: np.ndarray | None = None,
    group: Group = ALONE,
) -> np.ndarray:
    """FAISS k-means in every subspace of Z (n, d), n >= K; returns codebooks (M, K, d/M) float32.

    `weights` (n,) say how often a row counts. The processes of a group, each given the same Z, deal out the subspaces.
    """
    width = Z.shape[1] // n_subspaces
    codebooks = np.zeros((n_subspaces, n_centroids, width), np.float32)
    for m in range(group.rank, n_subspaces, group.size):
        block = np.ascontiguousarray(Z[:, m * width : (m + 1) * width])
        codebooks[m] = centroids_of(block, n_centroids, n_iter, seed + m, weights)
    group.all_reduce(codebooks)
    return codebooks


def centroids_of(
    X: np.ndarray, n_centroids: int, n_iter: int, seed: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """FAISS k-means of the rows of X (n, d), n >= K, on all of them; returns (K, d) float32."""
    clustering = faiss.Kmeans(
        X.shape[1],
        n_centroids,
        niter=n_iter,
        seed=seed & 0x7FFFFFFF,
        min_points_per_centroid=1,
        max_points_per_centroid=max(1, -(-len(X) // n_centroids)),
    )
    clustering.train(X, weights=weights)
    return np.asarray(clustering.centroids)


def revive(centroids: np.ndarray, counts: np.ndarray, fewest: float) -> np.ndarray:
    """Move each of the centroids (K, w) that at most `fewest` rows chose beside one of the most chosen, in place, so
    that it wins rows next time; returns which moved (K,)."""
    dead = counts <= fewest
    if dead.any():
        donors = np.argsort(-counts, kind="stable")[: max(1, len(dead) - dead.sum())]
        centroids[dead] = centroids[np.resize(donors, dead.sum())] * np.float32(1 + 1 / 1024)
    return dead


class ClusterSums(CellSums):
    """What the data contributes to one update of codebooks and rotation: sums that merge.

    The cells of subspace m are its centroids' rows, summed *unrotated*. Centroids under any rotation, and M = X^T Y,
    follow from the sums without another look at the data, so the inner updates cost nothing that grows with n.
    """

    def __init__(self, n_subspaces: int, n_centroids: int, d: int) -> None:
        super().__init__(n_subspaces, n_centroids, d)
        self.n_subspaces, self.n_centroids, self.d = n_subspaces, n_centroids, d

    @classmethod
    def of(cls, sums: np.ndarray, counts: np.ndarray) -> "ClusterSums":
        """Sums in the memory of these arrays, (M, K, d) and (M, K) float64."""
        self = cls.__new__(cls)
        (self.n_subspaces, self.n_centroids, self.d), self.sums, self.counts = sums.shape, sums, counts
        return self

    def decay(self, factor: float) -> Self:
        """Weigh everything seen so far by `factor`: an exponential average once a batch is added."""
        self.sums *= factor
        self.counts *= factor
        return self

    def centred(self) -> tuple["ClusterSums", np.ndarray]:
        """The sums that the rows less their mean would give, and that mean (d,) float32."""
        mean = (self.sums[0].sum(axis=0) / max(self.counts[0].sum(), 1)).astype(np.float32)
        moved = ClusterSums(self.n_subspaces, self.n_centroids, self.d)
        moved.sums = self.sums - self.counts[..., None] * mean
        moved.counts = self.counts
        return moved, mean

    def centroids(self, rotation: np.ndarray, fewest: float = 0.0) -> np.ndarray:
        """The best codebooks (M, K, d/M) float32 for the codes seen, under a rotation (d, d).

        A centroid that at most `fewest` rows chose moves beside one of the most chosen, so that it wins rows next time.
        """
        width = self.d // self.n_subspaces
        codebooks = np.empty((self.n_subspaces, self.n_centroids, width), np.float32)
        for m in range(self.n_subspaces):
            counts = self.counts[m]
            block = self.sums[m].astype(np.float32, copy=False) @ rotation[:, m * width : (m + 1) * width]  # (K, d/M)
            codebooks[m] = block / np.where(counts > fewest, counts, 1)[:, None]
            revive(codebooks[m], counts, fewest)
        return codebooks

    def cross_product(self, codebooks: np.ndarray) -> np.ndarray:
        """M = X^T Y (d, d), Y the decoded rows: K d products for each subspace instead of n d."""
        sums = self.sums.astype(np.float32, copy=False)
        return np.concatenate([sums[m].T @ codebooks[m] for m in range(self.n_subspaces)], axis=1)
