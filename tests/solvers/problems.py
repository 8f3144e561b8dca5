"""A finite sum with a known minimum, written with NumPy as plainly as can be."""

from dataclasses import dataclass

import numpy as np

from nearkin.solvers import Snapshot


@dataclass
class LeastSquares:
    """F_q(x) = 1/2 |<a_q, x> - b_q|^2 for x (n, 1): strongly convex, so it satisfies SVRG-SBB's inequality (26)."""

    A: np.ndarray
    b: np.ndarray
    position: int = 0

    @property
    def n_terms(self) -> int:
        return len(self.b)

    @property
    def lipschitz(self) -> float:
        return float(np.linalg.eigvalsh(self.A.T @ self.A / self.n_terms)[-1])

    @property
    def minimum(self) -> np.ndarray:
        return np.linalg.lstsq(self.A, self.b, rcond=None)[0][:, None]

    def value(self, x: np.ndarray) -> float:
        return float(0.5 * np.mean((self.A @ x[:, 0] - self.b) ** 2))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return (self.A.T @ (self.A @ x[:, 0] - self.b) / self.n_terms)[:, None]

    def snapshot(self, x: np.ndarray) -> Snapshot:
        return Snapshot(x.copy(), self.gradient(x))

    def _term(self, x: np.ndarray, q: int) -> np.ndarray:
        return (self.A[q] * (self.A[q] @ x[:, 0] - self.b[q]))[:, None]

    def largest_step(self, batch_size: int) -> float:
        return np.inf

    def svrg_pass(self, x, snapshot, *, step, batch_size, n_terms) -> None:
        done = 0
        while done < n_terms:
            size = min(batch_size, n_terms - done)
            batch = [(self.position + s) % self.n_terms for s in range(size)]
            noise = sum(self._term(x, q) - self._term(snapshot.x, q) for q in batch)
            x -= step * (noise + size * snapshot.gradient)
            self.position = (self.position + size) % self.n_terms
            done += size

    def sgd_pass(self, x, *, step) -> None:
        for q in range(self.n_terms):
            x -= step * self._term(x, q)

    def adagrad_pass(self, x, accumulator, *, step) -> None:
        for q in range(self.n_terms):
            g = self._term(x, q)
            accumulator += (g**2).sum(axis=1)
            x -= step * g / np.sqrt(accumulator)[:, None]


def least_squares(m: int = 60, n: int = 4, noise: float = 0.0) -> LeastSquares:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(m, n))
    return LeastSquares(A, A @ rng.normal(size=n) + noise * rng.normal(size=m))
