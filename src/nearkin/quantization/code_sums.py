"""What refitting additive codebooks needs to know of rows and codes: sums, which fade as new rows come."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nearkin.quantization.codebooks import ClusterSums

_SWEEPS = 4  # Gauss-Seidel sweeps over the codebooks for one refit
_LEAST = 1e-3  # of the error's variance: what a codebook may explain along an axis, at least
_FORGOTTEN = 1e-2  # rows: a centroid that fewer chose stays


@dataclass(frozen=True)
class CodeSums:
    """`cells`: sums and counts of the rows that chose each centroid; `pairs` (M K, M K) float32: how many rows chose
    each pair of centroids, B^T B for codes as indicators B; `n`: rows."""

    cells: ClusterSums
    pairs: np.ndarray
    n: float

    @classmethod
    def of(cls, X: np.ndarray, codes: np.ndarray, n_centroids: int) -> Self:
        """Sums of rows X (n, w) and their codes (n, M)."""
        cells = ClusterSums(codes.shape[1], n_centroids, X.shape[1]).update(X, codes)
        return cls(cells, _pairs(codes, n_centroids), float(len(X)))

    def after(self, older: Self, weight: float) -> Self:
        """These and `older` ones, which count `weight` times; the arrays of `older` are used up."""
        cells, pairs = older.cells.decay(weight), older.pairs
        cells.sums += self.cells.sums
        cells.counts += self.cells.counts
        pairs *= np.float32(weight)
        pairs += self.pairs
        return type(self)(cells, pairs, weight * older.n + self.n)

    def only(self, columns: np.ndarray) -> Self:
        """The sums of these columns of the rows."""
        return replace(self, cells=ClusterSums.of(self.cells.sums[:, :, columns], self.cells.counts))

    def refit(self, codebooks: np.ndarray, error: np.ndarray, shrink: float = 1.0, sweeps: int = _SWEEPS) -> np.ndarray:
        """Codebooks (M, K, w) for these codes: of a smaller ||X - sum_m C_m[codes_m]||^2, by `sweeps` of
        Gauss-Seidel over the codebooks.

        The normal equations are B^T B C = B^T X: both sides are sums over rows. One codebook's part of B^T B is
        diagonal, so a codebook is solved exactly given the others. A centroid that n_k rows chose is then
        n_k / (n_k + `shrink` s_j / v_j) times that along axis j, where s_j is the variance of the error (`error`
        (w,), its mean square, over as many rows as are not used up) and v_j that of the codebook's centroids less what
        s_j explains of it: with 1 the posterior mean of a centroid drawn from N(0, v_j). Axes should be principal ones.
        With 0 the error cannot rise. A centroid that no row chose stays.
        """
        (M, K, _), n = codebooks.shape, self.n
        counts, flat = self.cells.counts[..., None], codebooks.reshape(M * K, -1).astype(np.float32)
        noise = error * n / max(n - M * K, n / 4)
        for _ in range(sweeps if M > 1 else 1):
            for m in range(M):
                own = slice(m * K, (m + 1) * K)
                others = self.pairs[own] @ flat - counts[m] * flat[own]
                sums, chosen = self.cells.sums[m] - others, counts[m] > _FORGOTTEN
                mean = sums / np.where(chosen, counts[m], 1)
                weight = np.float64(0)
                if shrink:
                    spread = (counts[m] / n * np.square(mean)).sum(axis=0) - K / n * noise
                    weight = shrink * noise / np.maximum(np.maximum(spread, _LEAST * noise), np.finfo(float).tiny)
                flat[own] = np.where(chosen, sums / np.where(chosen, counts[m] + weight, 1), flat[own])
        return flat.reshape(codebooks.shape)


def _pairs(codes: np.ndarray, K: int) -> np.ndarray:
    """B^T B (M K, M K) float32: how many rows chose each pair of centroids."""
    M = codes.shape[1]
    pairs = np.empty((M, K, M, K), np.float32)
    for m in range(M):
        for other in range(m, M):
            both = np.bincount(codes[:, m].astype(np.int64) * K + codes[:, other], minlength=K * K).reshape(K, K)
            pairs[m, :, other], pairs[other, :, m] = both, both.T
    return pairs.reshape(M * K, M * K)
