"""How additive codebooks are learned: codes are chosen and codebooks refitted in turn, to rows like those given.

Given the codes, all codebooks together are a least squares problem, whose normal equations are sums over the rows;
coding and refitting alternate, as in k-means. Babenko & Lempitsky 2014 (additive quantization); Liu, Shao & Lu 2015
(refitting a residual quantizer).

A codebook of full width has more numbers than the rows can tell: 8 x 256 centroids of 128 columns are fitted to 16,000
rows. Least squares then codes those rows, and not others. Three things are done about it. In each round a part of the
rows is replaced by rows drawn between near ones (`Neighbourhoods`), so that no centroid learns a row by heart, and the
sums of the rounds before count on, fading. The rounds learn along the principal axes that the bits can reach, the last
refit along all. The refits between rounds shrink centroids towards zero, along each axis as the noise of a mean of so
few rows demands (empirical Bayes; Efron & Morris 1973), a quarter as far: the formula knows nothing of codes, which are
chosen to suit the centroids. The last refit does not shrink: a shrunk sum is too short, the more so the longer the row
is, and where rows differ in length long ones then crowd among the neighbours of short ones.

Where centroids are nearly as many as rows the rounds may lead away: the start, refitted once, is kept if it codes rows
better by more than a tenth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearkin._check import check_queries
from nearkin._types import ArrayLike
from nearkin.contracts import Callback
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.linalg.warm_procrustes import WarmProcrustes
from nearkin.quantization.additive_part import SHARE, TRAIN_BEAM, Part
from nearkin.quantization.neighbourhoods import Neighbourhoods
from nearkin.quantization.principal import principal_axes, reached

INNER = "ip"  # a ranking: for searches by inner product
KNOWN = {"l2": "known", "ip": "known-ip"}  # rows, to an index that holds those learned from, by how it is searched
BY_PRODUCTS = INNER, KNOWN["ip"]
_MEMORY = 0.7  # of a round's sums in the next
_TWICE = 3  # last rounds, in which rows are coded twice
_CLEARLY = 1.1  # times the error of the start, refitted: beyond it the rounds led away
_JUDGED = 4_096  # rows by which that is seen


@dataclass(frozen=True)
class Sums:
    """What is to be learned: `n_splits` parts of `n_codebooks` codebooks of `n_centroids`, in `rounds` rounds.

    The codebooks are refitted to codes by `beam_size` in the last round, by which rows are to be coded: with wider
    beams than these even rows that were learned from get codes that keep fewer neighbours. With `ranking` errors are
    weighed, and a column tells their size; without the column, and by the second moment `asked` (d, d) of the queries,
    where that is given: for rows searched by inner product.
    """

    n_splits: int
    n_codebooks: int
    n_centroids: int
    rounds: int
    beam_size: int
    smoothing: float
    ranking: bool
    asked: np.ndarray | None = None


class Learned(NamedTuple):
    """Rotation (d, d'), codebooks (n_splits, M, K, w) in the space that is searched, the matrices `metric` (n_splits,
    w, w) that lead to the space in which codes are chosen, and the share of |e|^2 that the column of errors adds to
    distances, 0 where there is none."""

    rotation: np.ndarray
    codebooks: np.ndarray
    metric: np.ndarray
    share: float


def asked_by(ranking: bool | str, X: np.ndarray, queries: ArrayLike | None) -> np.ndarray | None:
    """The second moment (d, d) float64 of the queries, or of rows X (n, d); None where distances rank."""
    if ranking not in BY_PRODUCTS:
        if queries is not None:
            raise ValueError(f"queries are for ranking={INNER!r}; ranking is {ranking!r}: leave them out")
        return None
    Q = X if queries is None else check_queries(queries, X.shape[1])
    return (Q.T @ Q).astype(np.float64) / len(Q)


def learn(X: np.ndarray, rotation: np.ndarray, turns: bool, wanted: Sums, seed: int, callback: Callback) -> Learned:
    """What is learned of centred rows X (n, d) float32.

    With `turns` the rotation is turned to the codes (Procrustes) between refits. `callback(round, record)` hears the
    distortion of each round before its refit.
    """
    generator = np.random.default_rng(seed)
    near = _neighbourhoods(X, wanted, generator)
    parts = _parts(X, near, rotation, wanted, seed)
    ends: list[tuple[np.ndarray, list[Part]]] = []
    nearest = WarmProcrustes()
    for index in range(wanted.rounds):
        last = index == wanted.rounds - 1
        rows = X if index == 0 else _drawn(X, near, wanted.smoothing, generator)
        error, codes = _round(parts, rows @ rotation, wanted, index)
        callback(index + 1, {"objective": error, "distortion": error, "total": wanted.rounds})
        if index == 0 or last:
            ends.append((rotation, [part.whole() for part in parts]))
        if turns and not last:
            decoded = np.hstack([part.decoded(own) for part, own in zip(parts, codes, strict=True)])
            cross = rows.T @ decoded / np.float32(len(rows))
            square = cross.shape[0] == cross.shape[1]  # no column padded
            rotation = nearest(cross) if square else nearest_orthogonal(cross.astype(np.float64)).astype(np.float32)
    rotation, parts = ends[-1] if ends else (rotation, parts)
    if len(ends) == 2:
        judged = _drawn(X, near, wanted.smoothing, generator)[:_JUDGED]
        errors = [_error(judged @ R, end) for R, end in ends]
        rotation, parts = ends[0 if errors[1] > _CLEARLY * errors[0] else 1]
    codebooks, metrics = (np.stack(found) for found in zip(*(part.settled() for part in parts), strict=True))
    return Learned(rotation, codebooks, metrics, SHARE if parts[0].column else 0.0)


def _round(parts: list[Part], Z: np.ndarray, wanted: Sums, index: int) -> tuple[float, list[np.ndarray]]:
    """Code rotated rows Z (n, d') and refit the parts: the mean squared error before, and the codes (n, M) of each.

    In the last round the parts only take up the sums.
    """
    codes, error, last = [], 0.0, index == wanted.rounds - 1
    for part, own in zip(parts, _split(Z, wanted.n_splits), strict=True):
        if index == 1 and wanted.ranking and wanted.asked is None:
            part.add_column(own, TRAIN_BEAM)
        targets, chosen = part.code(own, wanted.beam_size if last else TRAIN_BEAM, index >= wanted.rounds - _TWICE)
        error += float(np.square(part.errors(targets, chosen), dtype=np.float64).mean())
        part.gather(targets, chosen, _MEMORY if index > 1 else 0.0)
        if not last:
            part.refit(targets, chosen, shrinks=index > 0)
        codes.append(chosen)
    return error, codes


def _neighbourhoods(X: np.ndarray, wanted: Sums, generator: np.random.Generator) -> Neighbourhoods | None:
    """None where nobody asks for them."""
    if wanted.rounds < 2 or not (wanted.smoothing or wanted.ranking):
        return None
    axes, variances = principal_axes(X)
    bits = wanted.n_splits * wanted.n_codebooks * (wanted.n_centroids.bit_length() - 1)
    return Neighbourhoods.of(X, reached(variances, bits), axes, generator)


def _parts(X: np.ndarray, near: Neighbourhoods | None, rotation: np.ndarray, wanted: Sums, seed: int) -> list[Part]:
    width, parts, shape = rotation.shape[1] // wanted.n_splits, [], (wanted.n_codebooks, wanted.n_centroids)
    spread = wanted.asked
    if spread is None and near is not None and wanted.ranking:
        spread = near.differences()
    spread = None if spread is None else rotation.T @ spread @ rotation
    for m, Z in enumerate(_split(X @ rotation, wanted.n_splits)):
        own = slice(m * width, (m + 1) * width)
        block = None if spread is None else spread[own, own]
        if block is not None and wanted.asked is not None:
            parts.append(Part.start_asked(Z, block, *shape, seed + m))
        else:
            parts.append(Part.start(Z, block, *shape, seed + m))
    return parts


def _drawn(X: np.ndarray, near: Neighbourhoods | None, smoothing: float, generator: np.random.Generator) -> np.ndarray:
    """Rows X (n, d), of which a share `smoothing` is replaced by rows drawn between near ones."""
    if near is None or not smoothing:
        return X
    fresh, taken = near.drawn(generator), generator.random((len(X), 1)) < smoothing
    return np.where(taken, fresh, X)


def _error(Z: np.ndarray, parts: list[Part]) -> float:
    """The mean squared error of rotated rows Z (n, d') by codes of a narrow beam."""
    error = 0.0
    for part, own in zip(parts, _split(Z, len(parts)), strict=True):
        codes = part.code(own, TRAIN_BEAM, True)[1]
        error += float(np.square(own - part.decoded(codes), dtype=np.float64).sum()) / len(Z)
    return error


def _split(Z: np.ndarray, n_splits: int) -> Iterator[np.ndarray]:
    """Columns of each part of rotated rows Z (n, d')."""
    return map(np.ascontiguousarray, np.split(Z, n_splits, axis=1))
