"""A finite sum with a known minimum, written with NumPy as plainly as can be."""

from dataclasses import dataclass

import numpy as np

from nearkin.solvers import RowScaled, Rule, Snapshot, VarianceReduced


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

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        if isinstance(rule, VarianceReduced):
            self._reduced(x, rule)
            return
        drawn = None if isinstance(rule, RowScaled) else rule.drawn
        for q in range(self.n_terms) if drawn is None else drawn:
            g = self._term(x, q)
            if isinstance(rule, RowScaled):
                rule.accumulator[:] += (g**2).sum(axis=1)
                g = g / np.sqrt(rule.accumulator)[:, None]
            x -= rule.step * g

    def _reduced(self, x: np.ndarray, rule: VarianceReduced) -> None:
        done = 0
        while done < rule.n_terms:
            size = min(rule.batch_size, rule.n_terms - done)
            batch = [(self.position + s) % self.n_terms for s in range(size)]
            if rule.drawn is not None:
                batch = rule.drawn[done : done + size].tolist()
            noise = sum(self._term(x, q) - self._term(rule.snapshot.x, q) for q in batch)
            x -= rule.step * (noise + size * rule.snapshot.gradient)
            self.position = (self.position + size) % self.n_terms
            done += size


def least_squares(m: int = 60, n: int = 4, noise: float = 0.0) -> LeastSquares:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(m, n))
    return LeastSquares(A, A @ rng.normal(size=n) + noise * rng.normal(size=m))
