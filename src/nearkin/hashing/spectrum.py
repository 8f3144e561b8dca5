"""The principal axes of the data, in which linear hashers train, because X^T X is diagonal there (SCQ, eq. 15)."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from nearkin._distributed import ALONE, Group
from nearkin.linalg.signs import row_blocks
from nearkin.statistics import RowMean, row_mean

SCALES = ("eq25", "top-eigenvalue")


@dataclass(frozen=True)
class Spectrum:
    """Mean and principal axes of n vectors, largest variance first; directions without variance are left out."""

    mean: np.ndarray  # (d,) float64
    variances: np.ndarray  # (m,) float64, eigenvalues of the covariance X^T X / n
    axes: np.ndarray  # (d, m) float64, orthonormal columns
    n_rows: int

    @property
    def rank(self) -> int:
        """Number m of axes kept: the rank of the centred data, or `n_components` if that is smaller."""
        return len(self.variances)

    def check_rank(self, n_bits: int, n_features: int) -> None:
        """ValueError that names the rank unless `n_bits` independent directions have variance."""
        if self.rank == 0:
            raise ValueError(f"X is constant: all vectors are equal, {self.n_rows} of them; give data that vary")
        if self.rank < n_bits:
            raise ValueError(
                f"n_bits is {n_bits}; it must be at most {self.rank}, the rank of the centred X "
                f"(n_samples = {self.n_rows}, n_features = {n_features}); "
                f"type n_bits={self.rank} or use ITQ, which takes more bits than columns"
            )


def principal_axes(X: np.ndarray, n_components: int | None = None, group: Group = ALONE) -> Spectrum:
    """Return the `Spectrum` of vectors X (n, d) of all processes of `group`, in two passes. The rank counts variances
    above (4 eps)^2 of the largest, eps that of X's type. All sums are float64."""
    sums = RowMean(X.shape[1])
    for block in row_blocks(X):
        sums.merge(row_mean(block))
    mean, n_rows = group.merge(sums).finalize(), int(sums.count[0])
    d = len(mean)
    if n_rows < d:
        # through the small n x n matrix of inner products
        centred = np.concatenate(group.gather(X - mean))
        _, singular, rows = np.linalg.svd(centred, full_matrices=False)
        variances, axes = singular**2 / len(centred), rows.T
    else:
        scatter = RowMean(d, d)
        for block in row_blocks(X):
            centred = block - mean
            scatter.update(centred.T @ centred, len(centred))  # NumPy calls syrk here: half the work of a product
        covariance = group.merge(scatter).finalize()
        keep = d if n_components is None else min(n_components, d)
        variances, axes = eigh(covariance, subset_by_index=(d - keep, d - 1), check_finite=False)
        variances, axes = variances[::-1].copy(), axes[:, ::-1].copy()
    group.broadcast(variances, axes)  # machines may round differently
    if not len(variances):
        raise ValueError("X holds values whose squares float64 cannot hold; scale it, for example X / np.abs(X).max()")
    floor = variances[0] * max(d * np.finfo(np.float64).eps, (4 * np.finfo(X.dtype).eps) ** 2)
    noise = (np.abs(mean).max() * np.finfo(np.float64).eps * 8) ** 2  # rounding error of centred constant data
    kept = int((variances > max(floor, noise)).sum())
    kept = kept if n_components is None else min(kept, n_components)
    largest = axes[np.abs(axes[:, :kept]).argmax(axis=0), np.arange(kept)]
    signs = np.where(largest < 0, -1.0, 1.0)  # so that rounding cannot flip the sign of an axis
    return Spectrum(mean, variances[:kept].copy(), np.ascontiguousarray(axes[:, :kept] * signs), n_rows)


def scale_of(rule: str | float, variances: np.ndarray, n_bits: int) -> float:
    """Return the factor s that scales the data before binarization (SCQ, eq. 25); a number is returned unchanged.
    "eq25": s = sqrt(L / sum of the L largest eigenvalues of the covariance), printed as those of X^T X,
    which grow with n.
    "top-eigenvalue": s = sqrt(L / lambda_1), as in the authors' OgE demo."""
    if rule == "eq25":
        return float(np.sqrt(n_bits / variances[:n_bits].sum()))
    if rule == "top-eigenvalue":
        return float(np.sqrt(n_bits / variances[0]))
    return float(rule)
