"""The codebooks of one part of the rows while they are learned, and the space in which their codes are chosen.

A search compares a query q with y, for which a row x is coded: |q - x|^2 = |q - y|^2 - 2 <q - y, e> + |e|^2, e = x - y.
Two things follow for codes that are to keep the order of near rows.

- What the middle term does to the order depends on how q and x differ, and q is near. Along axes on which near rows
  hardly differ an error does less harm than its square says. Codes are therefore chosen by errors weighted along the
  principal axes, by a power of the variance of the differences between near rows.
- The last term is known when a row is coded, and differs from row to row. One more column, which queries have as 0,
  holds the square root of a share of it: the index compares |q - y|^2 + share |e|^2. The column is coded together with
  the others, so it costs no bytes of its own, and as it depends on the code, a row is coded twice.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nearkin.quantization import additive
from nearkin.quantization.code_sums import CodeSums
from nearkin.quantization.principal import principal_axes, reached

TRAIN_BEAM = 2  # in the rounds: wider costs more and fits the training rows, not others
SHARE = 0.65  # of |e|^2 that is added to distances: all of it is right on average, but not for the nearest
_SHRINK = 0.25  # of what empirical Bayes says, in the rounds
_REACH = 4.0  # axes of a variance down to this part of the water level are learned along: fewer lose, more cost
_POWER = 0.25  # of the differences' variance, an error's weight (the error itself, not its square)
_FLOOR = 1e-3  # of the mean variance
_COLUMN = 0.2  # weight of the error's column, for what it does to distances


@dataclass
class Part:
    """`turn` (w, w) is what rows are multiplied by before codes are chosen; with `column`, the weight of the error's
    column, `codebooks` (M, K, w + 1) have that column, less `middle`; without it, 0, they are (M, K, w)."""

    turn: np.ndarray
    codebooks: np.ndarray
    spread: float = 0.0
    column: float = 0.0
    middle: float = 0.0
    sums: CodeSums | None = None

    @classmethod
    def start(cls, Z: np.ndarray, between: np.ndarray | None, n_codebooks: int, n_centroids: int, seed: int) -> Self:
        """FAISS's start for centred rows Z (n, w) whose near ones differ by `between` (w, w); None: no weights."""
        axes, _ = principal_axes(Z)
        weights, spread = np.ones(len(axes), np.float32), 0.0
        if between is not None:
            own = np.einsum("wa,wv,va->a", axes, between, axes)
            spread = float(own.mean())
            if spread > 0:
                weights = (np.maximum(own / spread, _FLOOR) ** _POWER).astype(np.float32)
        turn = np.ascontiguousarray(axes * weights)
        X = Z @ turn
        variances = np.square(X).mean(axis=0, dtype=np.float64)
        order = np.argsort(-variances, kind="stable")
        bits = n_codebooks * (n_centroids.bit_length() - 1)
        columns = np.sort(order[: reached(variances[order], bits, _REACH)])
        codebooks = np.zeros((n_codebooks, n_centroids, X.shape[1]), np.float32)
        codebooks[:, :, columns] = additive.start(X[:, columns], n_codebooks, n_centroids, seed)
        return cls(turn, codebooks, spread)

    def code(self, Z: np.ndarray, beam: int, twice: bool) -> tuple[np.ndarray, np.ndarray]:
        """What codebooks are fitted to, rows (n, w) or with the error's column (n, w + 1), and codes (n, M).

        Without `twice` the codes are chosen without that column.
        """
        X = Z @ self.turn
        plain = np.ascontiguousarray(self.codebooks[:, :, : X.shape[1]])
        codes = additive.encode(X, plain, beam)
        if not self.column:
            return X, codes
        error = self._lengths(X - additive.decode(codes, plain))
        X = np.hstack([X, (self.column * np.sqrt(SHARE) * error - self.middle)[:, None].astype(np.float32)])
        return X, additive.encode(X, self.codebooks, beam) if twice else codes

    def add_column(self, Z: np.ndarray, beam: int) -> None:
        """Have the error's column, zero so far, by what the codes of rows Z (n, w) leave."""
        X, codes = self.code(Z, beam, False)
        X, width = X[:, : len(self.turn)], len(self.turn)
        error = self._lengths(X - additive.decode(codes, np.ascontiguousarray(self.codebooks[:, :, :width])))
        size = float(np.sqrt(np.square(error).mean(dtype=np.float64)))
        if self.spread > 0 and size > 0:
            self.column = _COLUMN * np.sqrt(SHARE / self.spread) * size
            self.middle = float(self.column * np.sqrt(SHARE) * error.mean(dtype=np.float64))
            self.codebooks = np.pad(self.codebooks[:, :, :width], ((0, 0), (0, 0), (0, 1)))

    def refit(self, X: np.ndarray, codes: np.ndarray, memory: float, *, shrinks: bool) -> None:
        """Refit the codebooks to rows and codes as `code` gives them; sums of rounds before count `memory` times."""
        sums = CodeSums.of(X, codes, self.codebooks.shape[1])
        if memory and self.sums is not None and self.sums.cells.sums.shape == sums.cells.sums.shape:
            sums = sums.after(self.sums, memory)
        self.sums = sums
        error = np.square(X - additive.decode(codes, self.codebooks)).mean(axis=0, dtype=np.float64)
        self.codebooks = sums.refit(self.codebooks, error, _SHRINK if shrinks else 0)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """Rows (n, w) that codes stand for."""
        width = len(self.turn)
        return additive.decode(codes, np.ascontiguousarray(self.codebooks[:, :, :width])) @ np.linalg.inv(self.turn)

    def settled(self) -> tuple[np.ndarray, np.ndarray]:
        """Codebooks (M, K, w or w + 1) in the space that is searched, and the matrix (as wide) that leads to codes."""
        metric = self.turn
        if self.column:
            metric = np.pad(metric, ((0, 1), (0, 1)))
            metric[-1, -1] = self.column
        codebooks = (self.codebooks.astype(np.float64) @ np.linalg.inv(metric.astype(np.float64))).astype(np.float32)
        if self.column:
            codebooks[0, :, -1] += self.middle / self.column
        return codebooks, metric

    def _lengths(self, E: np.ndarray) -> np.ndarray:
        """Lengths (n,) of errors E (n, w), which are weighted."""
        return lengths(E, self.turn)


def lengths(E: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Lengths (n,) float32 of errors E (n, w) made after rows were multiplied by `turn` (w, w), orthogonal columns."""
    return np.sqrt(np.square(E / np.sqrt(np.square(turn).sum(axis=0))).sum(axis=1))
