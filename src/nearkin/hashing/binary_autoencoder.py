"""Binary autoencoder: codes from which a linear map rebuilds the data, learned with auxiliary coordinates."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize

from nearkin._check import check_integer, check_real
from nearkin._compile import cached_njit
from nearkin._shards import shared_generator, whole_rows
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.alternation import learn_columns
from nearkin.hashing.bits import unpack_signs
from nearkin.hashing.column_steps import random_columns
from nearkin.hashing.itq import RotationStep
from nearkin.hashing.linear import AbstractLinearHasher
from nearkin.hashing.search import check_codes
from nearkin.hashing.sign_moments import StoredRows
from nearkin.hashing.spectrum import principal_axes, row_blocks, scale_of

ITQ_STEPS = 20  # for the first codes
MARGIN_STEPS = 15  # of L-BFGS for the hash functions in each iteration, from the last ones
BIT_SWEEPS = 10  # at most, over the bits of a row


@dataclass(eq=False, repr=False)
class BinaryAutoencoder(AbstractLinearHasher):
    """Binary autoencoder by the method of auxiliary coordinates (Carreira-Perpinan & Raziperchikolaei 2015).

    Minimises |x - D^T h(x) - a|^2 with h(x) = sign(W^T x + w) by giving every row free signs b that are pulled to h(x)
    with a weight doubled in each iteration: D by least squares, W as linear support vector machines (squared hinge) for
    the signs, the signs of each row bit by bit. It starts from ITQ's codes and stops when b = h(x), or at `max_iter`.

    Fitted besides the family's: `decoder_` (n_bits, d) and `decoder_mean_` (d,); `decode` applies them. `history_` is
    the reconstruction error of the best h so far as a share of the variance of X; h is not bound to improve it, and
    the best one is kept.

    Parameters: `n_bits`, at most the rank of X; `mu`, the first weight, for data scaled by SCQ's eq. 25;
    `margin_penalty` of the support vector machines; `n_components`, principal components to learn in; `max_iter`;
    `random_state`.
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
        del y
        self._check_params()
        X = whole_rows(self, X, min_rows=self.n_bits + 1)
        limit = None if self.n_components is None else max(self.n_components, self.n_bits)
        spectrum = principal_axes(lambda: row_blocks(X), limit)
        spectrum.check_rank(self.n_bits, X.shape[1])
        rows = StoredRows.of(X, spectrum)
        self.scale_ = scale_of("eq25", spectrum.variances, self.n_bits)
        generator = shared_generator(self.random_state)
        rows.coordinates *= X.dtype.type(self.scale_)
        W, w, self.history_ = self._learn(rows.coordinates, self._first_codes(rows, generator), callback)
        self.n_iter_ = len(self.history_)
        self.mean_ = spectrum.mean.astype(X.dtype)
        unit = 1 / np.sqrt(np.mean(np.square(rows.coordinates @ W + w)))  # classifiers have any length: values near 1
        self.projection_ = (unit * spectrum.axes @ W).astype(X.dtype)
        self.intercept_ = (unit * w).astype(X.dtype)
        decoder, offset, _ = _decoder(rows.coordinates, _signs(rows.coordinates, W, w))
        self.decoder_ = (decoder @ spectrum.axes.T / self.scale_).astype(X.dtype)
        self.decoder_mean_ = (spectrum.mean + spectrum.axes @ offset / self.scale_).astype(X.dtype)
        return self

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the rows (n, d) that the linear decoder rebuilds from packed codes (n, bytes)."""
        codes = check_codes(codes, -(-self.n_bits // 8))
        return unpack_signs(codes, self.n_bits, self.decoder_.dtype.type) @ self.decoder_ + self.decoder_mean_

    def _check_params(self) -> None:
        check_integer(self.n_bits, "n_bits", low=1)
        check_real(self.mu, "mu", above=0)
        check_real(self.margin_penalty, "margin_penalty", above=0)
        check_integer(self.max_iter, "max_iter", low=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)

    def _first_codes(self, rows: StoredRows, generator: np.random.Generator) -> np.ndarray:
        """ITQ's signs (n, L) for rows in scaled coordinates."""
        top = rows.truncate(self.n_bits)
        step = RotationStep(self.scale_**2 * top.spectrum.variances)
        start = random_columns(self.n_bits, self.n_bits, generator)
        R, _ = learn_columns(top.sign_moment, step, start, tol=0.0, max_iter=ITQ_STEPS, callback=None)
        return _signs(top.coordinates, R, np.zeros(self.n_bits))

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
    """Least squares Z ~ B D + a for centred Z: D (L, m), a (m,) and the error as a share of |Z|^2.

    A ridge of a thousandth keeps bits that agree on all rows apart.
    """
    mean = B.mean(axis=0, dtype=np.float64)
    gram = (B.T @ B).astype(np.float64) - len(B) * np.outer(mean, mean)
    moment = (B.T @ Z).astype(np.float64)
    D = np.linalg.solve(gram + 1e-3 * len(B) * np.eye(len(gram)), moment)
    energy = np.einsum("nd,nd->", Z, Z, dtype=np.float64)
    error = energy - 2 * np.einsum("lm,lm->", D, moment) + np.einsum("lm,lm->", D, gram @ D)
    return D, -mean @ D, float(error / energy)


def _margins(Z: np.ndarray, B: np.ndarray, weights: np.ndarray, penalty: float) -> np.ndarray:
    """Linear classifiers (m + 1, L), the last row their intercepts, of signs B by squared hinge, from `weights`."""

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = squared_hinge(flat.reshape(weights.shape), Z, B, penalty)
        return value, gradient.ravel()

    result = minimize(objective, weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MARGIN_STEPS})
    return result.x.reshape(weights.shape)


def squared_hinge(W: np.ndarray, Z: np.ndarray, B: np.ndarray, penalty: float) -> tuple[float, np.ndarray]:
    """Value and gradient (m + 1, L) of mean_i sum_l max(0, 1 - b_il (z_i w_l + w0_l))^2 + penalty |w|^2.

    W (m + 1, L) holds w and, as its last row, w0.
    """
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
    """Lower |z - D^T b - a|^2 + mu |b - h|^2 for each row, one bit at a time, in place.

    With t = D (z - a) and G = D D^T the best bit l is the sign of t_l - sum over j != l of G_lj b_j + mu h_l.
    """
    n, L = B.shape
    for i in range(n):
        for _ in range(BIT_SWEEPS):
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
