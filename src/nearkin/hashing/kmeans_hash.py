"""K-means hashing: centroids placed so that the Hamming distance of their numbers is their distance."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from nearkin._check import check_integer, check_real
from nearkin._shards import Shard, shared_generator, whole_rows
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.column_steps import random_columns
from nearkin.hashing.spectrum import principal_axes, row_blocks
from nearkin.hashing.stable_products import settled_rows, steady_products
from nearkin.linalg.dealing import deal_axes
from nearkin.linalg.orthonormal import unit_rows
from nearkin.linalg.procrustes import nearest_orthogonal

ITQ_STEPS = 10  # for the first centroids


@dataclass(eq=False, repr=False)
class KMeansHash(AbstractHasher):
    """K-means hashing (He, Wen & Sun 2013): product quantization whose codes are compared by Hamming distance.

    The principal axes are dealt out to subspaces of equal variance product; each has 2^b centroids that minimise
    quantization error + affinity * sum of w_ij (|c_i - c_j| - s sqrt(Hamming(i, j)))^2. Published weights w_ij =
    n_i n_j / n^2 change with every assignment, and then nothing is sure to fall; here w_ij = 4^-b, the balanced case,
    and every step lowers the objective: assignment, then a closed majorise-minimise step for the centroids.

    Fitted: `mean_`, `axes_` (d, M * m) grouped by subspace, `codebooks_` (M, 2^b, m), `scale_`, `n_iter_`, `history_`.
    A value of `project` is the difference of two squared distances, to the nearest centroid with the bit 0 and with 1.

    Parameters: `n_bits`, at most the rank of X; `bits_per_subspace` b (2, 4 or 8 in SCQ's comparison); `affinity`, 10
    as published; `n_components`, principal components used; `tol`, `max_iter`, `random_state`.
    """

    n_bits: int = 32
    _: KW_ONLY
    bits_per_subspace: int = 4
    affinity: float = 10.0
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 50
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Learn centroids from X (n, d), n > n_bits. Raises ValueError if n_bits exceeds the rank of X."""
        del y
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        width = check_integer(self.bits_per_subspace, "bits_per_subspace", low=1, high=8)
        check_real(self.affinity, "affinity", low=0)
        check_real(self.tol, "tol", low=0)
        check_integer(self.max_iter, "max_iter", low=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        X = whole_rows(self, X, min_rows=n_bits + 1)
        Shard.of(X).check_varies(X)
        limit = None if self.n_components is None else max(self.n_components, n_bits)
        spectrum = principal_axes(lambda: row_blocks(X), limit)
        spectrum.check_rank(n_bits, X.shape[1])
        groups = deal_axes(np.log(spectrum.variances / spectrum.variances[-1]) + 1e-9, -(-n_bits // width))
        self.mean_ = spectrum.mean.astype(X.dtype)
        self.axes_ = spectrum.axes[:, groups.ravel()].astype(X.dtype)
        points = np.concatenate([(block - self.mean_) @ self.axes_ for block in row_blocks(X)])
        points = points.reshape(len(X), *groups.shape)
        self._learn_codebooks(points, shared_generator(self.random_state), callback)
        return self

    def _learn_codebooks(self, points: np.ndarray, generator: np.random.Generator, callback: Callback | None) -> None:
        """Run all subspaces side by side, so that the loss of an iteration is that of the whole code."""
        bits = self._bits()
        self.codebooks_ = np.full((len(bits), 2 ** bits.max(), points.shape[2]), np.inf)
        learners = [
            _Subspace(points[:, m], int(bits[m]), self.affinity, generator) for m in range(len(bits))
        ]  # fmt: skip
        history: list[float] = []
        for iteration in range(self.max_iter):
            history.append(sum(learner.step() for learner in learners))
            if callback is not None:
                callback(iteration + 1, {"objective": history[-1], "total": self.max_iter})
            if iteration and history[-2] - history[-1] <= self.tol * history[-1]:
                break
        for m, learner in enumerate(learners):
            self.codebooks_[m, : len(learner.centroids)] = learner.centroids
        self.codebooks_ = self.codebooks_.astype(points.dtype)
        self.scale_ = float(1 / points.var(axis=0).sum(axis=1).mean())
        self.history_, self.n_iter_ = np.minimum.accumulate(history), len(history)

    def _bits(self) -> np.ndarray:
        """Bits of each subspace, as even as possible."""
        n_subspaces = -(-self.n_bits // self.bits_per_subspace)
        return np.diff(np.linspace(0, self.n_bits, n_subspaces + 1).round().astype(int))

    def _project(self, X: np.ndarray) -> np.ndarray:
        axes, mean = self.axes_.astype(np.float64), self.mean_.astype(np.float64)
        reach = float(np.abs(self.codebooks_[np.isfinite(self.codebooks_)]).max())
        values = np.empty((len(X), self.n_bits), np.result_type(X, self.axes_))
        for rows, out in zip(row_blocks(X), row_blocks(values), strict=True):
            centred = rows - mean
            exact = lambda few: self._margins(steady_products(few, axes))  # noqa: E731
            margins = settled_rows(self._margins(centred @ axes), centred, reach, exact)
            out[:] = self.scale_ * margins
        return values

    def _margins(self, points: np.ndarray) -> np.ndarray:
        """Squared distance to the nearest centroid with bit 0 less that with bit 1, (n, n_bits), row by row."""
        points = points.reshape(len(points), len(self.codebooks_), -1)
        margins = []
        for m, width in enumerate(self._bits()):
            codebook = self.codebooks_[m, : 2**width].astype(np.float64)
            distances = steady_products(points[:, m], -2 * codebook.T.copy()) + np.square(codebook).sum(axis=1)
            ones = (np.arange(2**width)[:, None] >> np.arange(width)) & 1  # (2^b, b), bit 0 the lowest
            margins.extend(
                distances[:, ones[:, bit] == 0].min(axis=1) - distances[:, ones[:, bit] == 1].min(axis=1)
                for bit in range(width)
            )
        return np.stack(margins, axis=1)


class _Subspace:
    """Centroids of one subspace and the two descent steps."""

    def __init__(self, points: np.ndarray, n_bits: int, affinity: float, generator: np.random.Generator) -> None:
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        self.affinity = affinity
        numbers = np.arange(2**n_bits)
        self.hamming = np.bitwise_count(numbers[:, None] ^ numbers).astype(np.float64)  # uint8 has float16 roots
        self.centroids = self._cells(n_bits, generator)
        distances = np.linalg.norm(self.centroids[:, None] - self.centroids, axis=2)
        self.side = float((distances * np.sqrt(self.hamming)).sum() / self.hamming.sum())  # s, by least squares

    def _cells(self, n_bits: int, generator: np.random.Generator) -> np.ndarray:
        """Means of the cells of an ITQ code of the first axes, (2^b, m); an empty cell gets its corner."""
        top = self.points[:, :n_bits]
        frame = random_columns(max(top.shape[1], n_bits), n_bits, generator)[: top.shape[1]]
        for _ in range(ITQ_STEPS):
            frame = nearest_orthogonal(top.T @ np.where(top @ frame >= 0, 1.0, -1.0))
        values = top @ frame
        cells = (values >= 0) @ (1 << np.arange(n_bits))
        counts = np.bincount(cells, minlength=2**n_bits)[:, None]
        sums = np.stack([np.bincount(cells, column, 2**n_bits) for column in self.points.T], axis=1)
        corners = np.zeros_like(sums)
        signs = ((np.arange(2**n_bits)[:, None] >> np.arange(n_bits)) & 1) * 2.0 - 1
        corners[:, : top.shape[1]] = np.abs(values).mean() * signs @ frame.T
        return np.divide(sums, counts, out=corners, where=counts > 0)

    def step(self) -> float:
        """Assign all points, move all centroids; return the objective before the move."""
        squares = np.square(self.centroids).sum(axis=1)
        distances = squares - 2 * self.points @ self.centroids.T
        nearest = distances.argmin(axis=1)
        norm = np.einsum("nd,nd->", self.points, self.points)
        error = (norm + distances[np.arange(len(nearest)), nearest].sum()) / len(nearest)
        loss = error + self.affinity * self._affinity_error()
        share = np.bincount(nearest, minlength=len(self.centroids)) / len(nearest)
        sums = np.stack([np.bincount(nearest, column, len(self.centroids)) for column in self.points.T], axis=1)
        for i in range(len(self.centroids)):
            self._move(i, share[i], sums[i] / len(nearest))
        return float(loss)

    def _affinity_error(self) -> float:
        gaps = np.linalg.norm(self.centroids[:, None] - self.centroids, axis=2) - self.side * np.sqrt(self.hamming)
        return float(np.square(gaps).mean())

    def _move(self, i: int, share: float, mean: np.ndarray) -> None:
        """Minimise a quadratic bound of the objective in centroid i: |c - c_j| >= <c - c_j, u> for units u."""
        others = np.arange(len(self.centroids)) != i
        towards = self.centroids[i] - self.centroids[others]
        targets = self.side * np.sqrt(self.hamming[i, others])[:, None]
        pulls = self.centroids[others] + targets * unit_rows(towards)
        weight = 2 * self.affinity / len(self.centroids) ** 2  # each pair counts twice in the sum
        total = share + weight * len(pulls)
        if total > 0:
            self.centroids[i] = (mean + weight * pulls.sum(axis=0)) / total
