"""Rivals of the tables of SCQ: spherical hashing, k-means hashing, binary autoencoders; and SDH, which takes labels."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, TransformerMixin

from nearkin._compile import cached_njit
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.bits import unpack_signs
from nearkin.hashing.columns import principal_coordinates, random_columns
from nearkin.hashing.itq import ITQ
from nearkin.hashing.linear import AbstractLinearHasher
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.batch_free import rounded_product
from nearkin.linalg.orthonormal import deal_axes, nearest_orthogonal, unit_rows
from nearkin.linalg.signs import affine_values, row_blocks
from nearkin.statistics import Shard, shared_generator, whole_rows

_ROTATIONS = 10  # of k-means hashing: updates of the rotation that gives the first centroids
_FIRST_STEPS = 20  # of binary autoencoders: iterations of ITQ for the first codes
_MARGIN_STEPS = 15  # steps of L-BFGS for the hash functions in each iteration, from the last ones
_RIDGE = 1e-3  # of the decoder, as a share of the rows: keeps bits that agree on all rows apart


@dataclass(eq=False, repr=False)
class SphericalHashing(AbstractHasher):
    """Spherical hashing (Heo et al. 2012): bit k is 1 within distance `radii_[k]` of `centres_[k]`.

    Each ball holds half of the rows and each pair of balls a quarter of them, reached by pushing centres apart that
    share too many rows. Its distance is the spherical Hamming distance |a xor b| / |a and b|, by which
    `benchmarks.hashing.judge` counts.

    Fitted: `centres_` (n_bits, d), `radii_` (n_bits,), `mean_`, `scale_`, `n_iter_`, and `history_`, the mean deviation
    of overlaps from a quarter, as a share of it, of the best centres so far.

    Parameters: `n_bits`, any number; `max_iter`; `overlap_tol` and `spread_tol`, mean and standard deviation of the
    overlaps, as shares of a quarter, at which to stop (0.10 and 0.15 as published); `n_samples`, rows to train on,
    drawn at random, None for all; `random_state`.
    """

    n_bits: int = 32
    _: KW_ONLY
    max_iter: int = 100
    overlap_tol: float = 0.10
    spread_tol: float = 0.15
    n_samples: int | None = 20_000
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Place the balls over X (n, d), n > n_bits."""
        X = whole_rows(self, X, min_rows=self.n_bits + 1)
        Shard.of(X).check_varies(X)
        generator = shared_generator(self.random_state)
        sample = X
        if self.n_samples is not None and len(X) > self.n_samples:
            sample = X[generator.choice(len(X), self.n_samples, replace=False)]
        mean = sample.mean(axis=0, dtype=np.float64)
        centred = (sample - mean).astype(X.dtype)
        centres, history = self._push_apart(centred, generator, callback)
        squares = _squared_distances(centred.astype(np.float64), centres)
        radii = np.median(squares, axis=0)
        self.mean_ = mean.astype(X.dtype)
        self.centres_ = (centres + mean).astype(X.dtype)
        self.radii_ = np.sqrt(radii).astype(X.dtype)
        self.scale_ = float(1 / np.abs(radii - squares).mean())  # values near -1 and +1
        self.history_, self.n_iter_ = history, len(history)
        return self

    def _push_apart(
        self, X: np.ndarray, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best centres (L, d) visited by Algorithm 1 of Heo et al., whose deviation may rise, and its history."""
        n, n_bits = len(X), self.n_bits
        picks = np.array([generator.choice(n, min(5, n), replace=False) for _ in range(n_bits)])
        centres = X[picks].mean(axis=1, dtype=np.float64)
        best, lowest, history = centres, np.inf, []
        others = ~np.eye(n_bits, dtype=bool)
        for iteration in range(self.max_iter):
            squares = _squared_distances(X, centres.astype(X.dtype))
            inside = (squares <= np.median(squares, axis=0)).astype(np.float32)
            excess = (inside.T @ inside) / (n / 4) - 1  # (L, L), 0 for independent balanced bits
            deviation = float(np.abs(excess[others]).mean()) if n_bits > 1 else 0.0
            if deviation < lowest:
                best, lowest = centres, deviation
            history.append(lowest)
            if callback is not None:
                callback(iteration + 1, {"objective": lowest, "total": self.max_iter})
            if n_bits == 1 or (deviation <= self.overlap_tol and excess[others].std() <= self.spread_tol):
                break
            np.fill_diagonal(excess, 0)
            pushes = excess.sum(axis=1)[:, None] * centres - excess @ centres  # sum over j of excess_ij (c_i - c_j)
            centres = centres + pushes / (2 * n_bits)
        return best, np.array(history)

    def _project(self, X: np.ndarray) -> np.ndarray:
        """scale_ * (radius^2 - squared distance), in float64 for the sign, returned in the type of X."""
        mean, radii = self.mean_.astype(np.float64), self.radii_.astype(np.float64)
        centred, centres = X - mean, self.centres_ - mean
        rows = np.column_stack([centred, np.einsum("nd,nd->n", centred, centred)])  # linear in x and |x|^2
        maps = np.column_stack([2 * centres, np.full(len(centres), -1.0)]).T
        level = self.scale_ * (radii**2 - np.einsum("kd,kd->k", centres, centres))
        values = affine_values(rows, np.zeros(rows.shape[1]), maps, self.scale_, level)
        return values.astype(np.result_type(X, self.centres_))


def _squared_distances(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances (n, L) between centred rows and centres, by one product."""
    return np.einsum("nd,nd->n", X, X)[:, None] - 2 * X @ centres.T + np.einsum("kd,kd->k", centres, centres)


@dataclass(eq=False, repr=False)
class KMeansHash(AbstractHasher):
    """K-means hashing (He, Wen & Sun 2013): product quantization whose codes are compared by Hamming distance.

    The principal axes are dealt out to subspaces of equal variance product; each has 2^b centroids that minimise
    quantization error + affinity * sum of w_ij (|c_i - c_j| - s sqrt(Hamming(i, j)))^2. The published weights w_ij =
    n_i n_j / n^2 change with every assignment, so the objective may rise; here w_ij = 4^-b, the balanced case, and
    every step lowers it: assignment, then a closed majorise-minimise step for the centroids.

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
        n_bits, width = self.n_bits, self.bits_per_subspace
        X = whole_rows(self, X, min_rows=n_bits + 1)
        spectrum = principal_axes(X, self._n_components())
        spectrum.check_rank(n_bits, X.shape[1])
        groups = deal_axes(np.log(spectrum.variances / spectrum.variances[-1]) + 1e-9, -(-n_bits // width))
        self.mean_ = spectrum.mean.astype(X.dtype)
        self.axes_ = spectrum.axes[:, groups.ravel()].astype(X.dtype)
        points = np.concatenate([(block - self.mean_) @ self.axes_ for block in row_blocks(X)])
        points = points.reshape(len(X), *groups.shape)
        self._learn_codebooks(points, shared_generator(self.random_state), callback)
        return self

    def _learn_codebooks(self, points: np.ndarray, generator: np.random.Generator, callback: Callback | None) -> None:
        """Iterate all subspaces together, so that the loss of an iteration is that of the whole code."""
        bits = self._bits()
        self.codebooks_ = np.full((len(bits), 2 ** bits.max(), points.shape[2]), np.inf)
        learners = [_Subspace(points[:, m], int(bits[m]), self.affinity, generator) for m in range(len(bits))]
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
        n_subspaces = -(-self.n_bits // self.bits_per_subspace)
        return np.diff(np.linspace(0, self.n_bits, n_subspaces + 1).round().astype(int))

    def _project(self, X: np.ndarray) -> np.ndarray:
        """Squared distance to the nearest centroid with bit 0 less that with bit 1, row by row in float64."""
        points = rounded_product(X - self.mean_.astype(np.float64), self.axes_)
        points = points.reshape(len(points), len(self.codebooks_), -1)
        margins = []
        for m, width in enumerate(self._bits()):
            codebook = self.codebooks_[m, : 2**width].astype(np.float64)
            distances = rounded_product(points[:, m], -2 * codebook.T) + np.square(codebook).sum(axis=1)
            ones = (np.arange(2**width)[:, None] >> np.arange(width)) & 1  # (2^b, b), bit 0 the lowest
            margins.extend(
                distances[:, ones[:, bit] == 0].min(axis=1) - distances[:, ones[:, bit] == 1].min(axis=1)
                for bit in range(width)
            )
        return (self.scale_ * np.stack(margins, axis=1)).astype(np.result_type(X, self.axes_))


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
        for _ in range(_ROTATIONS):
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


@dataclass(eq=False, repr=False)
class BinaryAutoencoder(AbstractLinearHasher):
    """Binary autoencoder by the method of auxiliary coordinates (Carreira-Perpinan & Raziperchikolaei 2015).

    Minimises |x - D^T h(x) - a|^2 with h(x) = sign(W^T x + w) by giving every row free signs b, with a penalty on b !=
    h(x) whose weight doubles in each iteration: D by least squares, W as linear support vector machines (squared hinge)
    for the signs, the signs of each row bit by bit. It starts from ITQ's codes and stops when b = h(x), or at
    `max_iter`.

    `history_` is the reconstruction error of the best h so far as a share of the variance of X; the best h is kept.

    Parameters: `n_bits`, at most the rank of X; `mu`, the first weight, for data scaled by SCQ's eq. 25;
    `margin_penalty` of the support vector machines; `n_components` to learn in; `max_iter`; `random_state`.
    """

    n_bits: int = 32
    _: KW_ONLY
    mu: float = 0.01
    margin_penalty: float = 1e-4
    n_components: int | None = 512
    max_iter: int = 12
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Learn from X (n, d), n > n_bits. Raises ValueError if n_bits exceeds the rank of X."""
        X = whole_rows(self, X, min_rows=self.n_bits + 1)
        spectrum = principal_axes(X, self._n_components())
        spectrum.check_rank(self.n_bits, X.shape[1])
        Z = principal_coordinates(X, spectrum)
        self.scale_ = scale_of("eq25", spectrum.variances, self.n_bits)
        generator = shared_generator(self.random_state)
        Z *= X.dtype.type(self.scale_)
        first = ITQ(self.n_bits, max_iter=_FIRST_STEPS, random_state=generator).fit(X)
        W, w, self.history_ = self._learn(Z, unpack_signs(first.encode(X), self.n_bits, X.dtype.type), callback)
        self.n_iter_ = len(self.history_)
        self.mean_ = spectrum.mean.astype(X.dtype)
        unit = 1 / np.sqrt(np.mean(np.square(Z @ W + w)))  # classifiers have arbitrary norms: scale values to about 1
        self.projection_ = (unit * spectrum.axes @ W).astype(X.dtype)
        self.intercept_ = (unit * w).astype(X.dtype)
        return self

    def _learn(
        self, Z: np.ndarray, B: np.ndarray, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return W (m, L), w (L,) and the history for coordinates Z (n, m) and first signs B (n, L)."""
        weights = np.zeros((Z.shape[1] + 1, self.n_bits))
        best, lowest, history = weights, np.inf, []
        for iteration in range(self.max_iter):
            weights = _margins(Z, B, weights, self.margin_penalty)
            H = _signs(Z, weights[:-1], weights[-1])
            error = _decoder(Z, H)[2]
            if error < lowest:
                best, lowest = weights, error
            history.append(lowest)
            if callback is not None:
                callback(iteration + 1, {"objective": lowest, "total": self.max_iter})
            decoder, offset, _ = _decoder(Z, B)
            following = B.copy()
            targets = (Z - offset.astype(Z.dtype)) @ decoder.T.astype(Z.dtype)
            _improve_signs(targets, decoder @ decoder.T, H, self.mu * 2**iteration, following)
            if np.array_equal(following, H) and np.array_equal(B, H):
                break
            B = following
        return best[:-1], best[-1], np.array(history)


def _signs(Z: np.ndarray, W: np.ndarray, w: np.ndarray) -> np.ndarray:
    """sign(Z W + w) (n, L) as -1 and +1 in the type of Z."""
    return np.where(Z @ W.astype(Z.dtype) + w.astype(Z.dtype) >= 0, Z.dtype.type(1), Z.dtype.type(-1))


def _decoder(Z: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Least squares Z ~ B D + a for centred Z: D (L, m), a (m,) and the error as a share of |Z|^2."""
    mean = B.mean(axis=0, dtype=np.float64)
    gram = (B.T @ B).astype(np.float64) - len(B) * np.outer(mean, mean)
    moment = (B.T @ Z).astype(np.float64)
    D = np.linalg.solve(gram + _RIDGE * len(B) * np.eye(len(gram)), moment)
    energy = np.einsum("nd,nd->", Z, Z, dtype=np.float64)
    error = energy - 2 * np.einsum("lm,lm->", D, moment) + np.einsum("lm,lm->", D, gram @ D)
    return D, -mean @ D, float(error / energy)


def _margins(Z: np.ndarray, B: np.ndarray, weights: np.ndarray, penalty: float) -> np.ndarray:
    """Linear classifiers (m + 1, L), the last row their intercepts, of signs B by squared hinge, from `weights`."""

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = squared_hinge(flat.reshape(weights.shape), Z, B, penalty)
        return value, gradient.ravel()

    limit = {"maxiter": _MARGIN_STEPS}
    result = minimize(objective, weights.ravel(), jac=True, method="L-BFGS-B", options=limit)
    return result.x.reshape(weights.shape)


def squared_hinge(W: np.ndarray, Z: np.ndarray, B: np.ndarray, penalty: float) -> tuple[float, np.ndarray]:
    """Value and gradient by W (m + 1, L), the last row w0, of mean max(0, 1 - b (z w + w0))^2 + penalty |w|^2."""
    slack = Z @ W[:-1].astype(Z.dtype)
    slack += W[-1].astype(Z.dtype)
    slack *= -B
    slack += 1
    np.maximum(slack, 0, out=slack)
    value = np.einsum("nl,nl->", slack, slack, dtype=np.float64) / len(Z) + penalty * np.square(W[:-1]).sum()
    slack *= B
    gradient = np.empty_like(W)
    gradient[:-1] = -2 / len(Z) * (Z.T @ slack) + 2 * penalty * W[:-1]
    gradient[-1] = -2 * slack.mean(axis=0, dtype=np.float64)
    return float(value), gradient


@cached_njit()
def _improve_signs(targets, gram, H, mu, B):
    """Lower |z - D^T b - a|^2 + mu |b - h|^2 for each row, one bit at a time, in place, until none changes. With
    t = D (z - a) and G = D D^T the best bit l is the sign of t_l - sum over j != l of G_lj b_j + mu h_l."""
    n, L = B.shape
    for i in range(n):
        for _ in range(10 * L):  # a bound: by rounding two bits could change back and forth for ever
            changed = False
            for bit in range(L):
                force = targets[i, bit] + mu * H[i, bit] + gram[bit, bit] * B[i, bit]
                for other in range(L):
                    force -= gram[bit, other] * B[i, other]
                if force * B[i, bit] < 0:
                    B[i, bit] = -B[i, bit]
                    changed = True
            if not changed:
                break


class DiscreteHashing(TransformerMixin, BaseEstimator):
    """Supervised discrete hashing (Shen et al. 2015) with its constants: bits B that a linear map takes to the classes,
    and that a linear map of the features takes to B, one bit at a time in five rounds."""

    def __init__(self, n_bits: int = 32, random_state: int = 0) -> None:
        self.n_bits, self.random_state = n_bits, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        Y, X = np.eye(y.max() + 1)[y], np.c_[X, np.ones(len(X))].astype(float)
        inverse = np.linalg.solve(X.T @ X + 1e-6 * np.eye(X.shape[1]), X.T)
        B = np.where(np.random.default_rng(self.random_state).standard_normal((len(X), self.n_bits)) < 0, -1.0, 1.0)
        for _ in range(5):
            W = np.linalg.solve(B.T @ B + np.eye(self.n_bits), B.T @ Y)
            self.map_ = inverse @ B
            wanted = Y @ W.T + 1e-5 * X @ self.map_
            for bit in range(self.n_bits):
                rest = wanted[:, bit] - B @ (W @ W[bit]) + B[:, bit] * (W[bit] @ W[bit])
                B[:, bit] = np.where(rest < 0, -1.0, 1.0)
        self.map_ = inverse @ B
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.packbits(np.c_[X, np.ones(len(X))] @ self.map_ >= 0, axis=1, bitorder="little")
