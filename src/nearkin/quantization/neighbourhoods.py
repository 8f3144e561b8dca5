"""Rows near each row: how neighbours differ, and new rows drawn from between them."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from nearkin._faiss import nearest_rows

_NEAR = 8  # neighbours of a row
_GROUP = 8_192  # rows among which neighbours are looked for: all pairs of more would cost more than the codebooks


@dataclass(frozen=True)
class Neighbourhoods:
    """Rows X (n, d) float32 and the numbers (n, k) of rows near each, k = 8 or all others where there are fewer."""

    X: np.ndarray = field(repr=False)
    near: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, X: np.ndarray, n_axes: int, axes: np.ndarray, generator: np.random.Generator) -> Self:
        """Near by the first `n_axes` columns of X `axes`; of many rows in groups drawn at random."""
        Z, order = X @ axes[:, :n_axes], generator.permutation(len(X))
        near = np.empty((len(X), min(_NEAR, len(X) - 1)), np.int64)
        for group in np.array_split(order, -(-len(X) // _GROUP)):
            found = nearest_rows(Z[group], Z[group], near.shape[1] + 1)
            near[group] = group[found[:, 1:]]  # the first is the row itself, or one equal to it
        return cls(X, near)

    def drawn(self, generator: np.random.Generator) -> np.ndarray:
        """A new row (n, d) for each: turned by a random angle, about its neighbourhood's mean, towards a neighbour.

        m + cos(t) (x - m) + sin(t) (x' - m), t uniform up to a right angle: of independent x and x' of one
        covariance it keeps that covariance, where a mean of the two would have less.
        """
        n, k = self.near.shape
        if not k:
            return self.X
        mean = self.X / np.float32(k + 1)
        for j in range(k):
            mean += self.X[self.near[:, j]] / np.float32(k + 1)
        angle = generator.uniform(0, np.pi / 2, (n, 1)).astype(np.float32)
        other = self.X[self.near[np.arange(n), generator.integers(k, size=n)]]
        return mean + np.cos(angle) * (self.X - mean) + np.sin(angle) * (other - mean)

    def differences(self, limit: int = 2_048) -> np.ndarray:
        """Second moment (d, d) of the differences between near rows, of `limit` rows and their neighbours at most."""
        first = slice(min(limit, len(self.X)))
        between = (self.X[first, None] - self.X[self.near[first]]).reshape(-1, self.X.shape[1])
        return (between.T @ between).astype(np.float64) / max(1, len(between))
