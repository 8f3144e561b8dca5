"""Rivals of the tables of SCQ: spherical hashing, k-means hashing, binary autoencoders; and SDH, which takes labels."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier

from nearkin._compile import cached_njit
from nearkin.hashing.bits import unpack_signs
from nearkin.hashing.columns import principal_coordinates, random_columns
from nearkin.hashing.itq import ITQ
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.orthonormal import deal_axes, nearest_orthogonal, unit_rows
from nearkin.linalg.signs import row_blocks

COMPONENTS = 512  # principal axes that are learned in, or as many as bits if these are more
BLOCK = 16_384  # rows encoded at a time
_OVERLAP, _SPREAD, _SAMPLE = 0.10, 0.15, 20_000  # of spherical hashing, as published; rows of a sample
_TOL = 1e-4  # of k-means hashing: the relative fall of its loss at which it stops
_ROTATIONS = 10  # of k-means hashing: updates of the rotation that gives the first centroids
_FIRST_STEPS = 20  # of binary autoencoders: iterations of ITQ for the first codes
_MARGIN_STEPS = 15  # steps of L-BFGS for the hash functions in each iteration, from the last ones
_MARGIN_PENALTY = 1e-4  # of the hash functions
_RIDGE = 1e-3  # of the decoder, as a share of the rows: keeps bits that agree on all rows apart


class Rival(ABC):
    """A hasher as the benchmarks call it; a bit is 1 where its value is >= 0, bits fill bytes from the lowest."""

    def __init__(self, n_bits: int = 32, *, max_iter: int | None = None, random_state: int = 0) -> None:
        self.n_bits, self.max_iter = n_bits, max_iter or self.most
        self.generator = np.random.default_rng(random_state)

    most: int  # iterations
    n_iter_: int
    history_: list[float]  # of the best so far

    @abstractmethod
    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Learn from X (n, d)."""

    @abstractmethod
    def values(self, X: np.ndarray) -> np.ndarray:
        """(n, n_bits) float64, whose signs are the code."""

    def encode(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([np.packbits(self.values(rows) >= 0, 1, "little") for rows in row_blocks(X, BLOCK)])

    transform = encode


class SphericalHashing(Rival):
    """Spherical hashing (Heo et al. 2012): bit k is 1 within a ball about `centres_[k]`.

    Each ball holds half of the rows and each pair of balls a quarter of them, reached by pushing centres apart that
    share too many rows. Its distance is the spherical Hamming distance |a xor b| / |a and b|, by which
    `benchmarks.hashing.judge` counts.
    """

    most = 100

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        if len(X) > _SAMPLE:
            X = X[self.generator.choice(len(X), _SAMPLE, replace=False)]
        self.mean_ = X.mean(axis=0, dtype=np.float64)
        centred = (X - self.mean_).astype(X.dtype)
        self.centres_ = self._pushed_apart(centred)
        self.radii_ = np.sqrt(np.median(_squared_distances(centred.astype(np.float64), self.centres_), axis=0))
        return self

    def _pushed_apart(self, X: np.ndarray) -> np.ndarray:
        """The best centres (L, d) visited by Algorithm 1 of Heo et al., whose deviation may rise."""
        n, n_bits = len(X), self.n_bits
        picks = np.array([self.generator.choice(n, min(5, n), replace=False) for _ in range(n_bits)])
        centres = X[picks].mean(axis=1, dtype=np.float64)
        best, others, self.history_ = centres, ~np.eye(n_bits, dtype=bool), []
        for _ in range(self.max_iter):
            squares = _squared_distances(X, centres.astype(X.dtype))
            inside = (squares <= np.median(squares, axis=0)).astype(np.float32)
            excess = (inside.T @ inside) / (n / 4) - 1  # (L, L), 0 for independent balanced bits
            deviation = float(np.abs(excess[others]).mean())
            if deviation < min(self.history_, default=np.inf):
                best = centres
            self.history_.append(min([deviation, *self.history_[-1:]]))
            if deviation <= _OVERLAP and excess[others].std() <= _SPREAD:
                break
            np.fill_diagonal(excess, 0)
            pushes = excess.sum(axis=1)[:, None] * centres - excess @ centres  # sum over j of excess_ij (c_i - c_j)
            centres = centres + pushes / (2 * n_bits)
        self.n_iter_ = len(self.history_)
        return best

    def values(self, X: np.ndarray) -> np.ndarray:
        return self.radii_**2 - _squared_distances(X - self.mean_, self.centres_)


def _squared_distances(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances (n, L) between centred rows and centres, by one product."""
    return np.einsum("nd,nd->n", X, X)[:, None] - 2 * X @ centres.T + np.einsum("kd,kd->k", centres, centres)


class KMeansHash(Rival):
    """K-means hashing (He, Wen & Sun 2013): product quantization whose codes are compared by Hamming distance.

    The principal axes are dealt out to subspaces of equal variance product; each has 2^b centroids that minimise
    quantization error + affinity * sum of w_ij (|c_i - c_j| - s sqrt(Hamming(i, j)))^2. The published weights w_ij =
    n_i n_j / n^2 change with every assignment, so the objective may rise; here w_ij = 4^-b, the balanced case, and
    every step lowers it: assignment, then a closed majorise-minimise step for the centroids. The affinity is 10, as
    published.

    Learned: `mean_`, `axes_` (d, M * m) grouped by subspace, `codebooks_` (M, 2^b, m). A value is the difference of two
    squared distances, to the nearest centroid with the bit 0 and with 1.
    """

    most = 50

    def __init__(self, n_bits: int = 32, *, bits_per_subspace: int = 4, random_state: int = 0) -> None:
        super().__init__(n_bits, random_state=random_state)
        self.widths = np.diff(np.linspace(0, n_bits, -(-n_bits // bits_per_subspace) + 1).round().astype(int))

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        spectrum = principal_axes(X, max(COMPONENTS, self.n_bits))
        spectrum.check_rank(self.n_bits, X.shape[1])
        groups = deal_axes(np.log(spectrum.variances / spectrum.variances[-1]) + 1e-9, len(self.widths))
        self.mean_, self.axes_ = spectrum.mean, spectrum.axes[:, groups.ravel()].astype(X.dtype)
        points = self._points(X)
        learners = [_Subspace(points[:, m], int(b), 10.0, self.generator) for m, b in enumerate(self.widths)]
        losses: list[float] = []
        while len(losses) < self.max_iter:
            losses.append(sum(learner.step() for learner in learners))
            if len(losses) > 1 and losses[-2] - losses[-1] <= _TOL * losses[-1]:
                break
        self.codebooks_ = np.full((len(learners), 2 ** self.widths.max(), points.shape[2]), np.inf)
        for m, learner in enumerate(learners):
            self.codebooks_[m, : len(learner.centroids)] = learner.centroids
        self.history_, self.n_iter_ = losses, len(losses)
        return self

    def _points(self, X: np.ndarray) -> np.ndarray:
        """(n, M, m) by subspace."""
        points = np.concatenate([(rows - self.mean_.astype(X.dtype)) @ self.axes_ for rows in row_blocks(X)])
        return points.reshape(len(X), len(self.widths), -1)

    def values(self, X: np.ndarray) -> np.ndarray:
        points, margins = self._points(X).astype(np.float64), []
        for m, width in enumerate(self.widths):
            codebook = self.codebooks_[m, : 2**width]
            distances = np.square(codebook).sum(axis=1) - 2 * points[:, m] @ codebook.T
            ones = (np.arange(2**width)[:, None] >> np.arange(width)) & 1  # (2^b, b), bit 0 the lowest
            margins += [distances[:, bit == 0].min(axis=1) - distances[:, bit == 1].min(axis=1) for bit in ones.T]
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


class BinaryAutoencoder(Rival):
    """Binary autoencoder by the method of auxiliary coordinates (Carreira-Perpinan & Raziperchikolaei 2015).

    Minimises |x - D^T h(x) - a|^2 with h(x) = sign(W^T x + w) by giving every row free signs b, with a penalty on b !=
    h(x) whose weight, .01 for data scaled by SCQ's eq. 25, doubles in each iteration: D by least squares, W as linear
    support vector machines (squared hinge) for the signs, the signs of each row bit by bit. It starts from ITQ's codes
    and stops when b = h(x). The h of least reconstruction error is kept.
    """

    most = 12

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        spectrum = principal_axes(X, max(COMPONENTS, self.n_bits))
        Z = principal_coordinates(X, spectrum)
        Z *= X.dtype.type(scale_of("eq25", spectrum.variances, self.n_bits))
        first = ITQ(self.n_bits, max_iter=_FIRST_STEPS, random_state=self.generator).fit(X)
        weights = self._learned(Z, unpack_signs(first.encode(X), self.n_bits, X.dtype.type))
        self.mean_, self.map_, self.offset_ = spectrum.mean, spectrum.axes @ weights[:-1], weights[-1]
        self.offset_ = self.offset_ / scale_of("eq25", spectrum.variances, self.n_bits)
        return self

    def _learned(self, Z: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The best W and w (m + 1, L) for coordinates Z (n, m) and first signs B (n, L)."""
        weights = best = np.zeros((Z.shape[1] + 1, self.n_bits))
        self.history_ = []
        for iteration in range(self.max_iter):
            weights = _margins(Z, B, weights, _MARGIN_PENALTY)
            H = _signs(Z, weights[:-1], weights[-1])
            error = _decoder(Z, H)[2]
            if error < min(self.history_, default=np.inf):
                best = weights
            self.history_.append(min([error, *self.history_[-1:]]))
            decoder, offset, _ = _decoder(Z, B)
            following = B.copy()
            targets = (Z - offset.astype(Z.dtype)) @ decoder.T.astype(Z.dtype)
            _improve_signs(targets, decoder @ decoder.T, H, 0.01 * 2**iteration, following)
            if np.array_equal(following, H) and np.array_equal(B, H):
                break
            B = following
        self.n_iter_ = len(self.history_)
        return best

    def values(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) @ self.map_ + self.offset_


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


class PredictedClass(KNeighborsClassifier):
    """The class that a vote of the nearest neighbours predicts, as the code: two codes are equal or not."""

    def encode(self, X: np.ndarray) -> np.ndarray:
        one_hot = np.eye(len(self.classes_), dtype=np.uint8)
        return np.packbits(one_hot[np.searchsorted(self.classes_, self.predict(X))], axis=1)


class DiscreteHashing(BaseEstimator):
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

    def encode(self, X: np.ndarray) -> np.ndarray:
        return np.packbits(np.c_[X, np.ones(len(X))] @ self.map_ >= 0, axis=1, bitorder="little")
