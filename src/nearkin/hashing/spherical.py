"""Spherical hashing: a bit says whether a point lies inside a ball."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from nearkin._check import check_integer, check_real
from nearkin._shards import Shard, shared_generator, whole_rows
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.search import check_codes, spherical_search
from nearkin.hashing.spectrum import row_blocks
from nearkin.hashing.stable_products import settled_rows, steady_products


@dataclass(eq=False, repr=False)
class SphericalHashing(AbstractHasher):
    """Spherical hashing (Heo et al. 2012): bit k is 1 within distance `radii_[k]` of `centres_[k]`.

    Each ball holds half of the rows and each pair of balls a quarter of them, reached by pushing centres apart that
    share too many rows. Its distance is the spherical Hamming distance |a xor b| / |a and b|, by which `search` ranks
    and `nearkin.metrics.spherical_histograms` judges. No FAISS index knows it: `to_faiss` gives an index by plain
    Hamming distance, whose first answers can be ranked again by `search`.

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
        """Place the balls over X (n, d), n > n_bits. Raises ValueError for constant data, NaN and infinity."""
        del y
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        tolerances = (
            check_real(self.overlap_tol, "overlap_tol", low=0),
            check_real(self.spread_tol, "spread_tol", low=0),
        )
        X = whole_rows(self, X, min_rows=n_bits + 1)
        Shard.of(X).check_varies(X)
        generator = shared_generator(self.random_state)
        sample = X
        if self.n_samples is not None and len(X) > check_integer(self.n_samples, "n_samples", low=n_bits + 1):
            sample = X[generator.choice(len(X), self.n_samples, replace=False)]
        mean = sample.mean(axis=0, dtype=np.float64)
        centred = (sample - mean).astype(X.dtype)
        centres, history = _push_apart(centred, n_bits, max_iter, tolerances, generator, callback)
        squares = _squared_distances(centred.astype(np.float64), centres)
        radii = np.median(squares, axis=0)
        self.mean_ = mean.astype(X.dtype)
        self.centres_ = (centres + mean).astype(X.dtype)
        self.radii_ = np.sqrt(radii).astype(X.dtype)
        self.scale_ = float(1 / np.abs(radii - squares).mean())  # values near -1 and +1
        self.history_, self.n_iter_ = history, len(history)
        return self

    def _project(self, X: np.ndarray) -> np.ndarray:
        """scale_ * (radius^2 - squared distance), in float64 for the sign, returned in the type of X."""
        mean = self.mean_.astype(np.float64)
        centres, squares = self.centres_ - mean, self.radii_.astype(np.float64) ** 2
        values = np.empty((len(X), self.n_bits), np.result_type(X, self.centres_))
        for rows, out in zip(row_blocks(X), row_blocks(values), strict=True):
            centred = rows - mean
            exact = lambda few: squares - _squared_distances(few, centres, steady=True)  # noqa: E731
            out[:] = self.scale_ * settled_rows(
                squares - _squared_distances(centred, centres), centred, np.abs(centres).max() + 1e-300, exact
            )
        return values

    def search(
        self, Q: ArrayLike, codes: np.ndarray, k: int = 10, *, vectors: ArrayLike | None = None, oversample: int = 4
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `AbstractHasher.search`, by spherical Hamming distance; infinite for codes without a common bit."""
        queries = self.encode(Q)
        codes = check_codes(codes, queries.shape[1])
        return self._finish(Q, lambda count: spherical_search(queries, codes, count), k, vectors, oversample)


def _push_apart(
    X: np.ndarray,
    n_bits: int,
    max_iter: int,
    tolerances: tuple[float, float],
    generator: np.random.Generator,
    callback: Callback | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Centres (L, d) by Algorithm 1 of Heo et al. and the best mean deviation after each iteration.

    The forces are no gradient and the deviation may rise: the best centres met are returned.
    """
    n = len(X)
    picks = np.array([generator.choice(n, min(5, n), replace=False) for _ in range(n_bits)])
    centres = X[picks].mean(axis=1, dtype=np.float64)
    best, lowest, history = centres, np.inf, []
    others = ~np.eye(n_bits, dtype=bool)
    for iteration in range(max_iter):
        squares = _squared_distances(X, centres.astype(X.dtype))
        inside = (squares <= np.median(squares, axis=0)).astype(np.float32)
        excess = (inside.T @ inside) / (n / 4) - 1  # (L, L), 0 for independent balanced bits
        deviation = float(np.abs(excess[others]).mean()) if n_bits > 1 else 0.0
        if deviation < lowest:
            best, lowest = centres, deviation
        history.append(lowest)
        if callback is not None:
            callback(iteration + 1, {"objective": lowest, "total": max_iter})
        if n_bits == 1 or (deviation <= tolerances[0] and excess[others].std() <= tolerances[1]):
            break
        np.fill_diagonal(excess, 0)
        pushes = excess.sum(axis=1)[:, None] * centres - excess @ centres  # sum over j of excess_ij (c_i - c_j)
        centres = centres + pushes / (2 * n_bits)
    return best, np.array(history)


def _squared_distances(X: np.ndarray, centres: np.ndarray, steady: bool = False) -> np.ndarray:
    """Squared distances (n, L) between centred rows and centres, by one product."""
    products = steady_products(X, centres.T.copy()) if steady else X @ centres.T
    norms = steady_products(X * X, np.ones((X.shape[1], 1))) if steady else np.einsum("nd,nd->n", X, X)[:, None]
    return norms - 2 * products + np.einsum("kd,kd->k", centres, centres)
