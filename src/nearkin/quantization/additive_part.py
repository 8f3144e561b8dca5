"""The codebooks of one part of the rows while they are learned, and the space in which their codes are chosen.

A search compares a query q with y, for which a row x is coded: |q - x|^2 = |q - y|^2 - 2 <q - y, e> + |e|^2, e = x - y.
Two things follow for codes that are to keep the order of near rows.

- What the middle term does to the order depends on how q and x differ, and q is near. Along axes on which near rows
  hardly differ an error does less harm than its square says. Codes are therefore chosen by errors weighted along the
  principal axes, by a power of the variance of the differences between near rows.
- The last term is known when a row is coded, and differs from row to row. One more column, which queries have as 0,
  holds the square root of a share of it: the index compares |q - y|^2 + share |e|^2. The column is coded together with
  the others, so it costs no bytes of its own, and as it depends on the code, a row is coded twice.

A search by inner product compares <q, y> = <q, x> - <q, e>. What harm an error does is told by the queries' second
moment, about 0, and no column is needed.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nearkin.quantization import additive
from nearkin.quantization.code_sums import CodeSums
from nearkin.quantization.principal import principal_axes, reached

TRAIN_BEAM = 2  # in the rounds: wider costs more and fits the training rows, not others
LOOK_BEAM = 2  # by which a row is coded for the first time, to see its error
SHARE = 0.65  # of |e|^2 that is added to distances: all of it is right on average, but not for the nearest
_SHRINK = 0.25  # of what empirical Bayes says, in the rounds
_REACH = 3.0  # axes of a variance down to this part of the water level are learned along: fewer lose, more cost
_SWEEPS = 2  # of a refit in the rounds, which begins where the one before ended
_POWER = 0.25  # of the differences' variance, an error's weight (the error itself, not its square); .5 is too sure
_FLOOR = 1e-3  # of the mean variance
_COLUMN = 0.2  # weight of the error's column, for what it does to distances


@dataclass
class Part:
    """`turn` (w, w) is what rows are multiplied by before codes are chosen, the axes that the bits reach first.

    `codebooks` (M, K, r) are along the first r of them, those of `whole` along all; with `column`, the weight of the
    error's column, they have that column, less `middle`, after the others.
    """

    turn: np.ndarray
    codebooks: np.ndarray
    spread: float = 0.0
    column: float = 0.0
    middle: float = 0.0
    sums: CodeSums | None = None

    @classmethod
    def start(cls, Z: np.ndarray, between: np.ndarray | None, n_codebooks: int, n_centroids: int, seed: int) -> Self:
        """The start for centred rows Z (n, w) whose near ones differ by `between` (w, w); None: no weights."""
        axes, _ = principal_axes(Z)
        weights, spread = np.ones(len(axes), np.float32), 0.0
        if between is not None:
            own = np.einsum("wa,wv,va->a", axes, between, axes)
            spread = float(own.mean())
            weights = _weights(own).astype(np.float32)
        turn = axes * weights
        variances = np.square(Z @ turn).mean(axis=0, dtype=np.float64)
        order = np.argsort(-variances, kind="stable")
        return cls._along(Z, turn[:, order], variances[order], n_codebooks, n_centroids, seed, spread)

    @classmethod
    def start_asked(cls, Z: np.ndarray, asked: np.ndarray, n_codebooks: int, n_centroids: int, seed: int) -> Self:
        """The start for centred rows Z (n, w) searched by inner product, by queries of second moment `asked` (w, w)."""
        moments, vectors = np.linalg.eigh(asked)
        weighted = ((vectors * _weights(moments)) @ vectors.T).astype(np.float32)
        axes, variances = principal_axes(Z @ weighted)
        return cls._along(Z, weighted @ axes, variances, n_codebooks, n_centroids, seed, 0.0)

    @classmethod
    def _along(
        cls,
        Z: np.ndarray,
        turn: np.ndarray,
        variances: np.ndarray,
        n_codebooks: int,
        n_centroids: int,
        seed: int,
        spread: float,
    ) -> Self:
        width = reached(variances, n_codebooks * (n_centroids.bit_length() - 1), _REACH)
        turn = np.ascontiguousarray(turn)
        return cls(turn, additive.start(Z @ turn[:, :width], n_codebooks, n_centroids, seed), spread)

    @property
    def reach(self) -> int:
        """r, how many axes the codebooks have."""
        return self.codebooks.shape[2] - bool(self.column)

    def code(self, Z: np.ndarray, beam: int, twice: bool) -> tuple[np.ndarray, np.ndarray]:
        """What codebooks are fitted to, rows (n, w) or with the error's column (n, w + 1), and codes (n, M).

        Without `twice` the codes are chosen without that column.
        """
        X = Z @ self.turn
        plain = np.ascontiguousarray(self.codebooks[:, :, : self.reach])
        codes = additive.encode(X[:, : self.reach], plain, min(beam, LOOK_BEAM) if self.column and twice else beam)
        if not self.column:
            return X, codes
        error = self.errors(X, codes)
        X = np.hstack([X, (self.column * np.sqrt(SHARE) * error - self.middle)[:, None].astype(np.float32)])
        return X, additive.encode(self._seen(X), self.codebooks, beam) if twice else codes

    def add_column(self, Z: np.ndarray, beam: int) -> None:
        """Have the error's column, zero so far, by what the codes of rows Z (n, w) leave."""
        X, codes = self.code(Z, beam, False)
        error = self.errors(X, codes)
        size = float(np.sqrt(np.square(error).mean(dtype=np.float64)))
        # where all rows are coded exactly, or do not differ, any weight will do
        shorter = size / np.sqrt(self.spread) if size and self.spread else 1.0
        self.column = float(_COLUMN * np.sqrt(SHARE) * shorter)
        self.middle = float(self.column * np.sqrt(SHARE) * error.mean(dtype=np.float64))
        self.codebooks = np.pad(self.codebooks, ((0, 0), (0, 0), (0, 1)))

    def gather(self, X: np.ndarray, codes: np.ndarray, memory: float) -> None:
        """Take up the sums of rows and codes as `code` gives them; those of rounds before count `memory` times."""
        sums = CodeSums.of(X, codes, self.codebooks.shape[1])
        if memory and self.sums is not None and self.sums.cells.sums.shape == sums.cells.sums.shape:
            sums = sums.after(self.sums, memory)
        self.sums = sums

    def refit(self, X: np.ndarray, codes: np.ndarray, *, shrinks: bool) -> None:
        """Refit the codebooks to the sums, as a round does: quickly, along the axes that they have."""
        if self.sums is not None:
            error = np.square(self._seen(X) - additive.decode(codes, self.codebooks)).mean(axis=0, dtype=np.float64)
            sums, shrink = self.sums.only(self._columns()), _SHRINK if shrinks else 0.0
            self.codebooks = sums.refit(self.codebooks, error, shrink, _SWEEPS)

    def whole(self) -> Self:
        """The part with codebooks along all axes, refitted to the sums without shrinking."""
        M, K, _ = self.codebooks.shape
        width = len(self.turn) + bool(self.column)
        wide = np.zeros((M, K, width), np.float32)
        wide[:, :, self._columns()] = self.codebooks
        if self.sums is not None:
            wide = self.sums.refit(wide, np.zeros(width), 0)
        return replace(self, codebooks=wide)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """Rows (n, w) that codes stand for."""
        return self._summed(codes) @ np.linalg.inv(self.turn)[: self.reach]

    def errors(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Lengths (n,) of the errors of turned rows X (n, w or w + 1), as they were before they were weighted."""
        E = X[:, : len(self.turn)].copy()
        E[:, : self.reach] -= self._summed(codes)
        if self.spread:
            return lengths(E, self.turn)
        return np.linalg.norm(E @ np.linalg.inv(self.turn), axis=1)

    def _columns(self) -> np.ndarray:
        """Numbers of the columns of rows, as `code` gives them, that the codebooks have."""
        return np.append(np.arange(self.reach), [len(self.turn)] * bool(self.column)).astype(int)

    def _seen(self, X: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(X[:, self._columns()]) if self.reach < len(self.turn) else X

    def _summed(self, codes: np.ndarray) -> np.ndarray:
        """Sums of centroids (n, r) along the axes that the codebooks have."""
        return additive.decode(codes, np.ascontiguousarray(self.codebooks[:, :, : self.reach]))

    def settled(self) -> tuple[np.ndarray, np.ndarray]:
        """Codebooks (M, K, w or w + 1) in the space that is searched, and the matrix (as wide) that leads to codes."""
        metric, plain = self.turn, self.codebooks[:, :, : self.reach].astype(np.float64)
        codebooks = (plain @ np.linalg.inv(metric.astype(np.float64))[: self.reach]).astype(np.float32)
        if self.column:
            metric = np.pad(metric, ((0, 1), (0, 1)))
            metric[-1, -1] = self.column
            told = self.codebooks[:, :, -1:] / np.float32(self.column)
            told[0] += np.float32(self.middle / self.column)
            codebooks = np.concatenate([codebooks, told], axis=2)
        return codebooks, metric


def _weights(spread: np.ndarray) -> np.ndarray:
    """What errors along axes of this spread (w,) are multiplied by."""
    mean = float(spread.mean())
    return np.maximum(spread / mean, _FLOOR) ** _POWER if mean > 0 else np.ones(len(spread))


def lengths(E: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Lengths (n,) float32 of errors E (n, w) made after rows were multiplied by `turn` (w, w), orthogonal columns."""
    return np.sqrt(np.square(E / np.sqrt(np.square(turn).sum(axis=0))).sum(axis=1))
