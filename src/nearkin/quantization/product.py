"""Product quantization with a trained rotation, as a scikit-learn transformer."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import faiss
import numpy as np
from scipy.linalg import null_space
from sklearn.utils.validation import check_is_fitted

from nearkin import _check
from nearkin._check import numpy_generator
from nearkin._distributed import ALONE, Group
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.batch_free import rounded_product
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.quantization import faiss_bridge
from nearkin.quantization.codebooks import (
    ClusterSums,
    CoarseQuantizer,
    TrainingRows,
    Update,
    assign,
    check_parts,
    decode,
    prepare,
)
from nearkin.quantization.training import ROTATIONS, STARTS, learn, make_update
from nearkin.statistics import far_rows, shared_generator, training_rows

_CHUNK = 8_192  # rows encoded at a time: bounds memory, and their float64 stays in the cache
_MOST_BLOCKS = 10_000  # Givens blocks of one update; d/8 is usual


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of `partial_fit`; docs/notes/decisions.md has the distortion of streams."""

    blocks: int = 4  # Givens blocks a batch: with 1 the distortion is up to 1.5 % above an SVD a batch, with 4 equal
    horizon: int = 64  # rows averaged over, for each centroid
    dead: float = 0.02  # a centroid with less than this share of the mean count is moved to used ones


DEFAULTS = Defaults()


@dataclass
class RunningFit:
    """The state of `ProductQuantizer.partial_fit`: sums over the last `horizon` vectors. The vectors are unrotated, so
    the sums stay valid while the rotation moves; M = X^T Y follows from them under the newest codebooks. M of a batch
    alone is too noisy for a rotation."""

    update: Update | None
    horizon: int
    sums: ClusterSums

    def absorb(self, X: np.ndarray, rotation: np.ndarray, codebooks: np.ndarray, group: Group = ALONE) -> None:
        """Add a batch X (b, d), each process its own, to the averages under the current rotation and codebooks."""
        codes = assign(X @ rotation, codebooks)
        batch = ClusterSums(*self.sums.sums.shape).update(X, codes)
        rows = group.merge(batch).counts[0].sum()
        self.sums.decay(max(0.0, 1 - rows / self.horizon)).merge(batch)

    def improve(self, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next rotation (d, d) and codebooks (M, K, d/M) from the averages."""
        sums, mean = self.sums.centred()
        rows = sums.counts[0].sum()
        fewest = DEFAULTS.dead * rows / sums.counts.shape[1]
        centred = sums.centroids(rotation, fewest)
        if self.update is not None:
            rotation = self.update(rotation, sums.cross_product(centred) / np.float32(max(rows, 1)))
            centred = sums.centroids(rotation, fewest)
        return rotation, centred + (mean @ rotation).reshape(len(sums.counts), 1, -1)


@dataclass(eq=False, repr=False)
class ProductQuantizer(ReconstructingTransformer):
    """Product quantization: `n_subspaces` codes for each vector, after a trained rotation.

    The arithmetic is float32, FAISS's own. A vector's code depends neither on its batch nor on the number of threads.

    Parameters
    ----------
    n_subspaces: M, the number of codes of a vector, at most d. With 256 centroids it is the number of bytes. Where it
        does not divide d, vectors are padded to d' = M ceil(d / M) columns.
    n_centroids: K of every subspace, 2 to 65536; codes are uint8 up to 256, uint16 above.
    rotation: None (plain PQ), "procrustes" (OPQ, overrelaxed), "givens-random" | "givens-greedy" | "givens-steepest"
        (GCD-R, GCD-G, GCD-S), or "cayley".
    init: "auto" fits "identity", "pca" and "random" in short to a subsample, and trains from the one of highest recall.
        "identity" is, from 128 columns and 16 rounds on, as near to the given axes as a rotation of the first principal
        axes can be.
    n_lists: number of inverted lists; 0 for none. With lists, codes quantize the residual to the nearest of `n_lists`
        coarse centroids, and a code begins with the number of that list.
    step: "exact" uses the best angles; a number is the paper's lambda for the Givens rotations (about
        0.2 d / mean ||x||^2 is as large as is stable).
    n_blocks: Givens blocks for one update; None for d/8, at least 8 (5 for "givens-steepest", whose matchings are
        slow), and for four in `partial_fit`.
    max_iter, tol: rounds of training, at most; they stop when the distortion changes by less than `tol` a round.
    max_points_per_centroid: vectors used for training, at most, for each centroid; FAISS's default.
    horizon: vectors that `partial_fit` averages over; None for 64 vectors for each centroid.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    rotation_: (d, d') float32; vectors are quantized as `X @ rotation_`; the identity for `rotation=None`. d' = d but
        where vectors are padded, and then its rows are orthonormal.
    codebooks_: (M, K, d'/M) float32; centroids in the rotated space.
    coarse_centroids_: (n_lists, d) float32 in the original space, or None.
    history_: for each round its distortion on the training vectors and the seconds spent in k-means and in the
        rotation.
    trials_: a record of each start that was tried, none for a named `init`: its value is the recall 10@10 of 1,000
        vectors among 4,000 others, or of the given queries.
    normalized_: whether the training vectors had norm 1, as in an index by cosine.
    n_iter_, n_features_in_: rounds done, columns.

    References
    ----------
    Jégou et al. (2011), Product quantization for nearest neighbor search; Ge et al. (2013), Optimized product
    quantization; Jiang et al. (2022), section 3.1 (GCD), arXiv:2203.05082; Salakhutdinov & Roweis (2003),
    overrelaxation.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> pq = nk.ProductQuantizer(n_subspaces=4, n_centroids=16, random_state=0).fit(X)
    >>> pq.encode(X).shape, pq.decode(pq.encode(X)).shape
    ((500, 4), (500, 16))
    """

    KIND: ClassVar[str] = "product quantizer"
    normalized_ = None  # not known for one that was not fitted here
    _running = None  # `RunningFit`, the state of partial_fit; it restarts after fit and load

    n_subspaces: int = 8
    n_centroids: int = 256
    rotation: str | None = "procrustes"
    init: str = "auto"
    _: KW_ONLY
    n_lists: int = 0
    step: float | str = "exact"
    n_blocks: int | None = None
    max_iter: int = 30
    tol: float = 5e-4
    max_points_per_centroid: int = 256
    horizon: int | None = None
    random_state: Seed = None

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        weights: ArrayLike | None = None,
        queries: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train rotation and codebooks from vectors X (n, d), n >= max(n_centroids, n_lists).

        `weights` (n,), greater than 0, weight the errors of vectors, for example by how often queries find a vector
        (the coarse centroids do not use them). `queries` (m, d) compare the starts in place of held-out vectors, if
        later queries are unlike the vectors (not with lists or weights). `callback(round, record)` is called after each
        round with its entry of `history_`. Among several processes X is this one's part of the vectors, and all end
        with the same quantizer. Raises ValueError or TypeError, before any work, for parameters or data that cannot be
        used.
        """
        self._check_parameters()
        parameter = max(("n_centroids", "n_lists"), key=lambda name: getattr(self, name))
        fewest: int = getattr(self, parameter)
        X, shard = training_rows(self, X, min_rows=fewest, parameter=parameter)
        check_parts(self.n_subspaces, "n_subspaces", X.shape[1])
        self.normalized_: bool | None = all(shard.group.exchange(_check.has_unit_rows(X)))
        rows = TrainingRows.checked(X, shard, weights, queries)
        generator = shared_generator(self.random_state)
        prepared = prepare(rows, self.n_subspaces, fewest, self.max_points_per_centroid * fewest, generator)
        learned = learn(prepared, self, generator, callback)
        self.coarse_centroids_: np.ndarray | None = learned.coarse
        self.rotation_, self.codebooks_ = learned.rotation, learned.codebooks
        self.history_: list[Record] = learned.history
        self.trials_: list[Record] = learned.trials
        self.n_iter_: int = len(learned.history)
        self._running = None
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Train on one more batch X (b, d) of a stream.

        The first batch (at least `n_centroids` vectors) is fitted as by `fit`, unless the estimator is already fitted.
        Each later one updates exponential averages of the cluster sums, the codebooks, and the rotation by a few exact
        blocks of disjoint Givens rotations, chosen by `rotation` ("procrustes" and "cayley" take their own step).
        """
        first = not hasattr(self, "codebooks_")
        if first:
            self.fit(X, y)
        rows, group = self._usual_residuals(X, warn=not first)
        self._running, rotation = self._running or self._start_running(), self.rotation_
        if rotation.shape[0] < rotation.shape[1]:  # rows for padded columns
            rotation = np.vstack([rotation, null_space(rotation).T])
        self._running.absorb(rows, rotation, self.codebooks_, group)
        if not first:
            self.codebooks_: np.ndarray
            rotation, self.codebooks_ = self._running.improve(rotation)
            self.rotation_: np.ndarray = rotation[: self.n_features_in_]
        return self

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, M) of vectors X (n, d), uint8 or uint16; with `n_lists`, the list's number comes first, in as many
        little-endian bytes as it needs (FAISS's `sa_encode` layout)."""
        check_is_fitted(self)
        X = _check.check_magnitude(_check.validate_vectors(self, X))
        parts, (R, codebooks) = [], self._deciding()
        for Z, lists in self._rotated_chunks(X, R):
            codes = faiss_bridge.compute_codes(Z, codebooks)
            parts.append(codes if lists is None else np.hstack([CoarseQuantizer.pack(lists, self.n_lists), codes]))
        return np.concatenate(parts)

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Vectors (n, d) float32 in the original space of codes (n, M), as `encode` gives them."""
        check_is_fitted(self)
        lists, codes = self._checked_codes(codes)
        rows = decode(codes, self.codebooks_) @ self.rotation_.T
        if lists is None or self.coarse_centroids_ is None:
            return rows
        return rows + self.coarse_centroids_[lists]

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty FAISS index with the very same codes: PQ or, with `n_lists`, IVF + PQ, behind the rotation.

        `metric`: "l2" or "ip".
        """
        check_is_fitted(self)
        _check.check_choice(metric, "metric", METRIC_TYPES)
        rotation = None if self.rotation is None and not self._padding else self.rotation_
        coarse = None if self.coarse_centroids_ is None else self.coarse_centroids_ @ self.rotation_
        return faiss_bridge.empty_index(rotation, self.codebooks_, coarse, metric)

    def faiss_codes(self, X: ArrayLike) -> np.ndarray:
        """`encode`, as FAISS packs the codes: (n, bytes) uint8."""
        return faiss_bridge.packed(self.encode(X), self.n_subspaces, faiss_bridge.code_bits(self.n_centroids))

    @classmethod
    def from_faiss(cls, index: faiss.Index) -> Self:
        """The quantizer inside a trained FAISS index: PQ or IVF + PQ, with or without an (O)PQ rotation in front."""
        return cls.from_arrays(*faiss_bridge.read_index(index))

    @classmethod
    def from_arrays(
        cls, codebooks: np.ndarray, rotation: np.ndarray | None = None, coarse_centroids: np.ndarray | None = None
    ) -> Self:
        """The fitted quantizer of codebooks (M, K, w) in the rotated space, a rotation (d, M w), d <= M w, with
        orthonormal rows (None for none), and coarse centroids (L, d) in the original space (None for none).

        ValueError if shapes do not belong together or the rotation changes distances.
        """
        M, K, width = codebooks.shape
        R = np.eye(M * width, dtype=np.float32) if rotation is None else np.asarray(rotation, np.float32)
        lists = np.zeros((0, len(R)), np.float32) if coarse_centroids is None else coarse_centroids
        if R.ndim != 2 or R.shape[1] != M * width or lists.shape[1:] != R.shape[:1]:
            raise ValueError(
                f"codebooks (M, K, w) {codebooks.shape}, rotation {R.shape} and coarse_centroids {lists.shape} do not "
                "belong together; rotation must be (d, M w) and coarse_centroids (L, d)"
            )
        if orthogonality_error(R) > 1e-3:
            raise ValueError("rotation does not have orthonormal rows; distances would not be kept")
        self = cls(M, K, None if rotation is None else "procrustes", n_lists=len(lists))
        self.codebooks_, self.rotation_ = np.asarray(codebooks, np.float32), R
        self.coarse_centroids_ = None if coarse_centroids is None else np.asarray(coarse_centroids, np.float32)
        self.n_features_in_, self.n_iter_, self.history_, self.trials_ = len(R), 0, [], []
        return self

    def _check_loaded(self) -> None:
        (M, K, _), lists = self.codebooks_.shape, 0 if self.coarse_centroids_ is None else len(self.coarse_centroids_)
        if (self.n_subspaces, self.n_centroids, self.n_lists) != (M, K, lists):
            raise ValueError(f"codebooks_ is {self.codebooks_.shape}, and there are {lists} coarse centroids")
        super()._check_loaded()

    @property
    def _padding(self) -> int:
        """Zero columns that make d divisible by M."""
        return self.rotation_.shape[1] - self.rotation_.shape[0]

    def _start_running(self) -> RunningFit:
        (M, K, width), generator = self.codebooks_.shape, numpy_generator(self.random_state)
        update = make_update(self.rotation, M * width, "exact", self.n_blocks or DEFAULTS.blocks, generator)
        return RunningFit(update, self.horizon or DEFAULTS.horizon * K, ClusterSums(M, K, M * width))

    def _usual_residuals(self, X: ArrayLike, *, warn: bool) -> tuple[np.ndarray, Group]:
        """A batch X (b, d) ready to learn from: without far rows, minus the coarse centroids, padded; and its group."""
        X, shard = training_rows(self, X, reset=False)
        X = _check.check_magnitude(X).astype(np.float32)
        X = X[~far_rows(X, shard, 0, np.arange(len(X)) if warn else None, level=4)[0]]
        if self.coarse_centroids_ is not None:
            X = CoarseQuantizer(self.coarse_centroids_).residuals(X)
        return np.pad(X, ((0, 0), (0, self._padding))), shard.group

    def _deciding(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the rotation in which centroids differ, which decide a code, and the codebooks (M, K, w) there."""
        M, _, width = self.codebooks_.shape
        used = (self.codebooks_ != self.codebooks_[:, :1]).any(axis=(0, 1))
        if used.all() or not used.any() or self.rotation is None:
            return self.rotation_, self.codebooks_
        columns = self.rotation_.reshape(-1, M, width)[:, :, used]
        return columns.reshape(len(columns), -1), self.codebooks_[:, :, used]

    def _rotated_chunks(self, X: np.ndarray, R: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Chunks of rotated rows X R (with `n_lists`, of their residuals), and the numbers of their lists. The result
        for a row does not depend on its batch, bit for bit."""
        R, plain = R.astype(np.float64), self.rotation is None and not self._padding
        for first in range(0, len(X), _CHUNK):
            chunk = X[first : first + _CHUNK]
            lists = None
            if self.coarse_centroids_ is not None:
                lists = CoarseQuantizer(self.coarse_centroids_).assign(chunk)
                chunk = chunk.astype(np.float64) - self.coarse_centroids_[lists]
            yield chunk.astype(np.float32) if plain else rounded_product(chunk, R), lists

    def _checked_codes(self, codes: ArrayLike) -> tuple[np.ndarray | None, np.ndarray]:
        codes = _check.as_array(codes, "codes")
        M, K, _ = self.codebooks_.shape
        width = M + (CoarseQuantizer.code_width(self.n_lists) if self.n_lists else 0)
        if codes.ndim != 2 or codes.shape[1] != width or codes.dtype.kind not in "iu":
            raise ValueError(f"codes have shape {codes.shape}, dtype {codes.dtype}; they must be integers (n, {width})")
        lists = CoarseQuantizer.unpack(codes[:, :-M], self.n_lists) if self.n_lists else None
        codes = codes[:, -M:]
        if codes.size and (codes.min() < 0 or codes.max() >= K):
            raise ValueError(f"codes hold {codes.max()}; they must lie in 0..{K - 1} (n_centroids={K})")
        return lists, codes

    def _check_parameters(self) -> None:
        K = _check.check_integer(self.n_centroids, "n_centroids", low=2, high=2**faiss_bridge.MAX_BITS)
        lists = _check.check_integer(self.n_lists, "n_lists", low=0)
        _check.check_choice(self.rotation, "rotation", ROTATIONS)
        _check.check_choice(self.init, "init", ("auto", *STARTS))
        if self.step != "exact":
            _check.check_real(self.step, "step", above=0)
        _check.check_integer(1 if self.n_blocks is None else self.n_blocks, "n_blocks", low=1, high=_MOST_BLOCKS)
        _check.check_integer(self.max_iter, "max_iter", low=1)
        _check.check_real(self.tol, "tol", low=0)
        _check.check_integer(self.max_points_per_centroid, "max_points_per_centroid", low=1)
        _check.check_integer(1 if self.horizon is None else self.horizon, "horizon", low=1)
        if lists and K > 256:
            raise ValueError(f"n_lists={lists} with n_centroids={K}: codes with a list number need n_centroids <= 256")
