"""Codebooks of a product quantizer, and the loop that trains them: assign, update the centroids, update the rotation.

M subspaces of d / M dimensions, K centroids in each, codebooks C (M, K, d / M). FAISS does assignment and k-means; an
update needs only sums over the vectors."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import faiss
import numpy as np

from nearkin._check import check_integer, check_magnitude, check_queries, check_row_weights
from nearkin._distributed import ALONE, Group
from nearkin._fields import counted
from nearkin._types import ArrayLike
from nearkin.contracts import Callback
from nearkin.linalg.batch_free import nearest
from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.statistics import CellSums, Shard, far_rows, squared_norm

_FUSED_KERNEL = 128_000  # entries from which FAISS searches by its fused kernel, measured
_CACHED_ROWS = 512  # their distances to 256 centroids stay in the cache
# An update takes the rotation R (d, d) and M = X^T Y / n (d, d), and returns the next rotation. With the codes
# fixed the objective is (||X||^2 + ||Y||^2) / n - 2 tr(R^T M): an update is any step that makes tr(R^T M) larger.
Update = Callable[[np.ndarray, np.ndarray], np.ndarray]
_CALM = (2.0**-40, 2.0**40)  # range of numbers whose squares and sums are safe in float32


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of product codes and of lists."""

    # Steps that are not exact alternate with centroids this often between two passes over the data, which costs nothing
    # that grows with n. An exact step gains nothing by more: with three, SIFT and GIST at 8 and 16 bytes kept .3 to .8
    # points less and took longer (2026-11-24, 10,000 and 6,659 rows).
    inner_rounds: int = 3
    far_share: int = 32  # one centroid in 32 may move to far rows
    coarse_iterations: int = 20  # of k-means for the centroids of lists


DEFAULTS = Defaults()


@dataclass(frozen=True)
class TrainingRows:
    """This process's vectors X (n, d), with weights and queries."""

    X: np.ndarray
    shard: Shard  # their position among the rows of all processes
    weights: np.ndarray | None = None  # (n,)
    queries: np.ndarray | None = None  # (m, d) that the rows will be searched by; the same on every process

    @classmethod
    def checked(cls, X: np.ndarray, shard: Shard, weights: ArrayLike | None, queries: ArrayLike | None) -> Self:
        """Vectors X as `statistics.training_rows` gives them."""
        check_magnitude(X)
        if queries is not None:
            queries = check_queries(queries, X.shape[1])
            queries = queries[:: -(-len(queries) // OF_TRIALS.queries)].astype(np.float32)
        return cls(X, shard, None if weights is None else check_row_weights(weights, len(X)), queries)

    def only(self, chosen: np.ndarray | slice) -> Self:
        X = self.X[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, X=X, shard=Shard.of(X, self.shard.group), weights=weights)

    def changed(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Vectors and queries after `change`."""
        return replace(self, X=change(self.X), queries=None if self.queries is None else change(self.queries))

    def drawn(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Vectors and weights of these numbers, counted over all processes, on every process."""
        weights = None if self.weights is None else self.shard.rows(self.weights, numbers)
        return self.shard.rows(self.X, numbers), weights


@dataclass(frozen=True)
class State:
    """The state of training: rotation (d, d), codebooks (M, K, d/M), both float32."""

    rotation: np.ndarray
    codebooks: np.ndarray


def check_parts(n_parts: int, name: str, d: int) -> None:
    """TypeError or ValueError unless `n_parts` is a number of parts of d columns."""
    if check_integer(n_parts, name, low=1) > d:
        raise ValueError(f"{name} is {n_parts}, more than the {counted(d, 'column')} of X; give at most {d}")


def exact_update(R: np.ndarray, M: np.ndarray) -> np.ndarray:
    """U V^T of the SVD of M, the exact maximum over O(d), whatever R is (OPQ, section 3.1)."""
    return nearest_orthogonal(M.astype(np.float64)).astype(np.float32)


def refine(
    rows: TrainingRows,
    state: State,
    update: Update | None,
    rounds: int,
    *,
    tol: float = 0.0,
    beyond: float = 0.0,
    callback: Callback | None = None,
) -> State:
    """Run up to `rounds` rounds of assignment, centroids and rotation on float32 vectors; weights have mean 1.

    Each round reads the data once. `update=None` keeps the rotation (k-means alone). Stops when the distortion falls by
    less than `tol` of itself, averaged over three rounds. `callback(round, record)` gets the distortion before the
    updates, the objective, and both parts' seconds.

    `beyond` is overrelaxation (Salakhutdinov and Roweis, Adaptive overrelaxed bound optimization methods, ICML 2003):
    each step goes past the best rotation for the current codes, first by `beyond` times its length, by nothing in the
    last round. Plain alternation stops early, because the codes were chosen for the previous rotation.

    The vectors should be centred: a mean would dominate M and slow every update.
    """
    X, weights, group, n = rows.X, rows.weights, rows.shard.group, rows.shard.total
    energy = float(group.merge(squared_norm(X, weights)).finalize())
    distortions: list[float] = []
    for index in range(rounds):
        started = time.perf_counter()
        codes = assign(X @ state.rotation, state.codebooks, n)
        sums = group.merge(ClusterSums(*state.codebooks.shape[:2], X.shape[1]).update(X, codes, weights))
        codebooks = sums.centroids(state.rotation)
        assigned = time.perf_counter()
        rotation = state.rotation
        if update is not None:
            for _ in range(1 if update is exact_update else DEFAULTS.inner_rounds):
                rotation = update(rotation, sums.cross_product(codebooks) / np.float32(n))
                codebooks = sums.centroids(rotation)
        # the centroids are the means of their rows, so the error is the energy that the centroids do not hold
        distortions.append(energy - float((sums.counts * (codebooks.astype(np.float64) ** 2).sum(-1)).sum()) / n)
        flat = index >= 3 and np.ptp(distortions[-4:]) <= 3 * tol * abs(distortions[-4])
        share = 0.0 if flat else beyond * (1 - (index + 1) / rounds)
        if share:
            rotation = exact_update(rotation, rotation + np.float32(share) * (rotation - state.rotation))
            codebooks = sums.centroids(rotation)
        group.broadcast(rotation, codebooks)  # machines may round differently
        state = State(rotation, codebooks)
        if callback is not None:
            seconds = {"kmeans_seconds": assigned - started, "rotation_seconds": time.perf_counter() - assigned}
            error = distortions[-1]
            callback(index + 1, {"objective": error, "distortion": error, "total": rounds, **seconds})
        if flat:
            break
    return state


def assign(Z: np.ndarray, codebooks: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """Nearest centroid in every subspace: codes (n, M) int32 for rotated vectors Z (n, d), codebooks (M, K, d/M).

    For training: several times faster than the encoder of FAISS's own product quantizer, from which it may differ
    where centroids tie to the last bits. Many vectors go to one flat FAISS index a subspace, whose fused kernel is the
    fastest; FAISS does not use it for few vectors, which therefore go to one matrix product. `n_rows` is the number of
    all vectors, of which Z is a part: the kernel is chosen for all.
    """
    M, _, width = codebooks.shape
    nearest = _nearest_by_faiss if (n_rows or len(Z)) * width >= _FUSED_KERNEL else _nearest_by_product
    codes = np.empty((len(Z), M), np.int32)
    for m, centroids in enumerate(codebooks):
        middle = centroids.mean(axis=0)  # both expand |x - c|^2, which loses digits far from 0
        codes[:, m] = nearest(Z[:, m * width : (m + 1) * width] - middle, centroids - middle)
    return codes


def _nearest_by_faiss(X: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    flat = faiss.IndexFlatL2(X.shape[1])
    flat.add(centroids)
    n, missing = len(X), -(-_FUSED_KERNEL // X.shape[1]) - len(X)
    if missing > 0:  # a small part of the rows: FAISS must not choose another kernel, which rounds differently
        X = np.pad(X, ((0, missing), (0, 0)))
    return flat.assign(X, 1)[:n, 0]


def _nearest_by_product(X: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    half_norms = np.einsum("kw,kw->k", centroids, centroids) / 2
    linear = np.ascontiguousarray(np.column_stack([centroids, -half_norms]).T)
    extended = np.column_stack([X, np.ones(len(X), X.dtype)])
    nearest = np.empty(len(X), np.int64)
    for first in range(0, len(X), _CACHED_ROWS):
        rows = slice(first, first + _CACHED_ROWS)
        nearest[rows] = np.argmax(extended[rows] @ linear, axis=1)
    return nearest


def decode(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """Vectors (n, d), in the rotated space, of codes (n, M)."""
    return codebooks[np.arange(len(codebooks)), codes].reshape(len(codes), codebooks.shape[0] * codebooks.shape[2])


def kmeans(
    Z: np.ndarray,
    n_subspaces: int,
    n_centroids: int,
    n_iter: int,
    seed: int,
    weights: np.ndarray | None = None,
    group: Group = ALONE,
) -> np.ndarray:
    """k-means in every subspace of Z (n, d), n >= K; returns codebooks (M, K, d/M) float32.

    `weights` (n,) say how often a vector counts. The processes of a group, each given the same Z, deal out the
    subspaces.
    """
    width = Z.shape[1] // n_subspaces
    codebooks = np.zeros((n_subspaces, n_centroids, width), np.float32)
    for m in range(group.rank, n_subspaces, group.size):
        block = np.ascontiguousarray(Z[:, m * width : (m + 1) * width])
        codebooks[m] = _lloyd(block, n_centroids, n_iter, seed + m, weights)
    group.all_reduce(codebooks)
    return codebooks


def _lloyd(X: np.ndarray, n_centroids: int, n_iter: int, seed: int, weights: np.ndarray | None) -> np.ndarray:
    """k-means (K, w) float32 of rows X (n, w) by the kernels of `assign`, faster than `faiss.Kmeans` for few rows. At
    most K distinct rows are the centroids themselves."""
    distinct = _distinct(X, n_centroids)
    if distinct is not None:
        return np.resize(distinct, (n_centroids, X.shape[1]))
    centroids = X[np.random.default_rng(seed).choice(len(X), n_centroids, replace=False)]
    for _ in range(n_iter):
        cells = CellSums(1, n_centroids, X.shape[1]).update(X, assign(X, centroids[None]), weights)
        centroids, counts = cells.finalize()[0].astype(np.float32), cells.counts[0]
        revive(centroids, counts, 0)
    return centroids


def _distinct(X: np.ndarray, most: int) -> np.ndarray | None:
    """The distinct rows of X (n, d) if there are at most `most`, else None; a cheap test on few rows comes first."""
    few = X[: 2 * most] @ np.random.default_rng(0).normal(size=X.shape[1])
    if len(np.unique(few)) > most:
        return None
    rows = np.unique(X, axis=0)
    return rows if len(rows) <= most else None


def revive(centroids: np.ndarray, counts: np.ndarray, fewest: float) -> np.ndarray:
    """Move each of the centroids (K, w) that at most `fewest` vectors chose next to one of the most chosen, in place,
    so that it gets vectors in the next round; returns which moved (K,)."""
    dead = counts <= fewest
    if dead.any():
        donors = np.argsort(-counts, kind="stable")[: max(1, len(dead) - dead.sum())]
        centroids[dead] = centroids[np.resize(donors, dead.sum())] * np.float32(1 + 1 / 1024)
    return dead


def make_room(codebooks: np.ndarray, Z: np.ndarray, far: np.ndarray, seed: int, group: Group = ALONE) -> np.ndarray:
    """Codebooks (M, K, w) whose least used centroids, one in 32 at most, moved to the far vectors (m, d) of all
    processes; Z (n, d) are the usual ones. None moves in a subspace where the far vectors are not far."""
    M, K, width = codebooks.shape
    codes, codebooks = assign(Z, codebooks), codebooks.copy()
    used = np.stack([np.bincount(codes[:, m], minlength=K) for m in range(M)])
    group.all_reduce(used)
    for m, centroids in enumerate(codebooks):
        block = far[:, m * width : (m + 1) * width]
        reach = np.square(centroids.astype(np.float64)).sum(axis=1).max()
        block = np.unique(block[np.square(block.astype(np.float64)).sum(axis=1) > 4 * reach], axis=0)
        room = min(len(block), max(1, K // DEFAULTS.far_share))
        if room:
            least = np.argsort(used[m], kind="stable")[:room]
            centroids[least] = block if room == len(block) else kmeans(block, 1, room, 10, seed)[0]
    return codebooks


class ClusterSums(CellSums):
    """The sums of one update, which merge. The vectors of subspace m's centroids are summed
    *unrotated*, so centroids under any rotation, and M = X^T Y, follow without another pass."""

    def decay(self, factor: float) -> Self:
        """Multiply all sums by `factor`: an exponential average once a batch is added."""
        self.sums[:] *= factor
        self.counts[:] *= factor
        return self

    def centred(self) -> tuple["ClusterSums", np.ndarray]:
        """The sums of the centred vectors, and their mean (d,) float32."""
        mean = (self.sums[0].sum(axis=0) / max(self.counts[0].sum(), 1)).astype(np.float32)
        new = ClusterSums(*self.sums.shape)
        new.sums, new.counts = self.sums - self.counts[..., None] * mean, self.counts
        return new, mean

    def centroids(self, rotation: np.ndarray, fewest: float = 0.0) -> np.ndarray:
        """The best codebooks (M, K, d/M) float32 for the codes seen, under a rotation (d, d).

        A centroid that at most `fewest` vectors chose moves next to one of the most chosen, to get vectors.
        """
        M, K, d = self.sums.shape
        width = d // M
        codebooks = np.empty((M, K, width), np.float32)
        for m, counts in enumerate(self.counts):
            block = self.sums[m].astype(np.float32, copy=False) @ rotation[:, m * width : (m + 1) * width]  # (K, d/M)
            codebooks[m] = block / np.where(counts > fewest, counts, 1)[:, None]
            revive(codebooks[m], counts, fewest)
        return codebooks

    def cross_product(self, codebooks: np.ndarray) -> np.ndarray:
        """M = X^T Y (d, d), Y the decoded vectors: K d products for each subspace instead of n d."""
        sums = self.sums.astype(np.float32, copy=False)
        return np.concatenate([own.T @ books for own, books in zip(sums, codebooks, strict=True)], axis=1)


@dataclass(frozen=True)
class Prepared:
    """Vectors (n, d') ready to be trained from, the far vectors (m, d') of all processes, and how they were changed."""

    rows: TrainingRows
    apart: np.ndarray
    places: np.ndarray  # (d,) of the columns among the d'
    scale: float  # a power of two by which all was multiplied


def prepare(rows: TrainingRows, n_subspaces: int, fewest: int, most: int, generator: np.random.Generator) -> Prepared:
    """Draw at most `most` vectors, pad their columns to a multiple of `n_subspaces`, separate far vectors, and rescale
    vectors whose squares overflow float32.

    No vector is far if fewer than `fewest` would be left.
    """
    numbers, d = np.arange(len(rows.X)), rows.X.shape[1]  # row numbers of the user
    if rows.shard.total > most:
        numbers = rows.shard.here(np.sort(generator.choice(rows.shard.total, most, replace=False)))
        rows = rows.only(numbers)
    places = spread_columns(d, n_subspaces)
    width = n_subspaces * -(-d // n_subspaces)

    def spread(X: np.ndarray) -> np.ndarray:
        if width == d:
            return X.astype(np.float32)
        wide = np.zeros((len(X), width), np.float32)
        wide[:, places] = X
        return wide

    rows = rows.changed(spread)
    far, radius = far_rows(rows.X, rows.shard, fewest, numbers, level=4)
    scale, apart = calming_scale(np.array([radius])), rows.shard.whole(rows.X[far])
    if len(apart):
        rows = rows.only(~far)
    if scale != 1:
        rows, apart = rows.changed(lambda X: X * np.float32(scale)), apart * np.float32(scale)
    return Prepared(rows, apart, places, scale)


def spread_columns(d: int, n_subspaces: int) -> np.ndarray:
    """Places (d,) of d columns among d' = M ceil(d / M), so that the zeros between fall to as many subspaces as can be.

    >>> spread_columns(7, 3)
    array([0, 1, 2, 3, 4, 6, 7])
    """
    width = -(-d // n_subspaces)
    sizes = np.diff(np.arange(n_subspaces + 1) * d // n_subspaces)[::-1]
    return np.concatenate([width * m + np.arange(size) for m, size in enumerate(sizes)])


def calming_scale(values: np.ndarray) -> float:
    """The power of two that brings these numbers near 1; 1.0 if float32 squares of them are safe already.

    >>> [calming_scale(np.array([x, 0.0])) for x in (3.0, 0.0, 2.0**-83)]
    [1.0, 1.0, 9.671406556917033e+24]
    """
    sizes = np.abs(values)
    largest = sizes.max(initial=0)
    if largest == 0 or _CALM[0] <= largest <= _CALM[1]:
        return 1.0
    usual = float(np.median(sizes[sizes > 0]))  # a few far ones do not count
    return (
        1.0 if _CALM[0] <= usual <= _CALM[1] else 2.0 ** min(126, 1 - int(np.frexp(usual)[1]))
    )  # float32 ends at 2**128


@dataclass(frozen=True)
class CoarseQuantizer:
    """`centroids` (L, d) float32 in the original space; distances do not change under the rotation that follows."""

    centroids: np.ndarray

    @classmethod
    def train(cls, X: np.ndarray, n_lists: int, seed: int) -> Self:
        """k-means on all vectors of X (n, d)."""
        mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        return cls(kmeans(X - mean, 1, n_lists, DEFAULTS.coarse_iterations, seed)[0] + mean)

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Number (n,) int64 of each vector's nearest centroid, the lowest of equals, the same alone and in a batch."""
        return nearest(X, self.centroids)

    def residuals(self, X: np.ndarray) -> np.ndarray:
        """The residuals of vectors X (n, d) to their centroids."""
        return X - self.centroids[self.assign(X)]

    @staticmethod
    def code_width(n_lists: int) -> int:
        """Bytes of a list's number, as FAISS counts them."""
        return max(1, -(-(n_lists - 1).bit_length() // 8))

    @classmethod
    def pack(cls, lists: np.ndarray, n_lists: int) -> np.ndarray:
        """Numbers (n,) to little-endian bytes (n, code_width)."""
        return lists.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : cls.code_width(n_lists)]

    @classmethod
    def unpack(cls, codes: np.ndarray, n_lists: int) -> np.ndarray:
        """Bytes (n, code_width) back to numbers (n,); ValueError for a number that names no list."""
        padded = np.zeros((len(codes), 8), np.uint8)
        padded[:, : codes.shape[1]] = codes
        lists = padded.view("<u8").ravel().astype(np.int64)
        if len(lists) and lists.max() >= n_lists:
            raise ValueError(f"codes name list {lists.max()}; this quantizer has n_lists={n_lists}")
        return lists
