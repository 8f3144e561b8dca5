"""Product quantization with a learned rotation, as a scikit-learn transformer."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Self

import faiss
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_integer, check_real, check_row_weights, has_unit_rows, validate_vectors
from nearkin._persistence import load_estimator, save_estimator
from nearkin._random import draw_seed, numpy_generator
from nearkin._shards import Shard, shared_generator, training_rows
from nearkin.quantization import codebooks as books
from nearkin.quantization import faiss_bridge
from nearkin.quantization.coarse import CoarseQuantizer
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.learning import Step, alternate
from nearkin.quantization.rotation import ROTATIONS, make_update
from nearkin.quantization.start import STARTS, start_rotation
from nearkin.quantization.streaming import RunningFit
from nearkin.statistics import Mean

_CHUNK = 8_192  # rows encoded at a time: bounds memory, and their float64 stays in the cache
_FIRST_KMEANS = 4  # iterations before the rotation first moves,
_FIRST_ROWS = 64  # on about so many rows for each centroid: the rounds that follow see all of them
_LAST_KMEANS = 5  # iterations after it has stopped
_STREAM_BLOCKS = 4  # Givens blocks a batch: one trails an SVD a batch by up to 1.5 %, four do not
_PLAIN_KMEANS = 25  # iterations where there is no rotation, FAISS's default


class ProductQuantizer(TransformerMixin, BaseEstimator):
    """Compress vectors to `n_subspaces` small codes each, after a rotation that makes the codes fit.

    Parameters
    ----------
    n_subspaces: M, the number of codes of a row; must divide d. With 256 centroids it is the number of bytes.
    n_centroids: K of every subspace, 2 to 65536; codes are uint8 up to 256, uint16 above.
    rotation: None (plain PQ), "procrustes" (OPQ), "givens-random" | "givens-greedy" | "givens-2opt" |
        "givens-steepest" (GCD-R, GCD-G, between the two, GCD-S), "cayley", and for comparison only
        "givens-overlapping-greedy" | "givens-overlapping-random".
    init: "auto" races the starts "identity", "pca" and "random" on a subsample and keeps the best.
    coarse: number of inverted lists; 0 for none. With it, what is quantized is the residual to the nearest of
        `coarse` centroids, and a code begins with the number of that list.
    step: "exact" turns by the best angles; a number is the paper's lambda for the Givens rotations (about
        0.2 d / mean ||x||^2 is as large as is stable).
    n_blocks: Givens blocks for one update; None for d/8, at least 8 (5 for "givens-steepest", whose matchings are
        slow), and for four in `partial_fit`.
    max_iter, tol: rounds of learning, at most; they stop when the distortion falls by less than `tol` a round.
    max_points_per_centroid: rows used for training, at most, for each centroid; FAISS's default.
    horizon: rows that `partial_fit` averages over; None for 64 rows for each centroid.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    rotation_ (d, d) float32: rows are quantized as `X @ rotation_`; the identity for `rotation=None`.
    codebooks_ (M, K, d/M) float32: centroids in the rotated space.
    coarse_centroids_ (coarse, d) float32 in the original space, or None.
    history_: for each round its distortion on the training rows and the seconds spent in k-means and in the rotation.
    init_distortion_: what each raced start had reached, empty for a named `init`.
    normalized_: whether the rows that it was fitted on had length 1, as an index by cosine makes them.
    n_iter_, n_features_in_.

    The arithmetic is float32, FAISS's own. A row encodes alone as it does in a batch, on any number of threads.

    References: Jégou et al. 2011 (PQ); Ge et al. 2013 (OPQ); GCD, section 3.1.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> pq = ProductQuantizer(n_subspaces=4, n_centroids=16, random_state=0).fit(X)
    >>> pq.encode(X).shape, pq.decode(pq.encode(X)).shape
    ((500, 4), (500, 16))
    """

    rotation_: np.ndarray
    codebooks_: np.ndarray
    coarse_centroids_: np.ndarray | None
    normalized_: bool | None = None  # not known for one that was not fitted here
    _running: RunningFit | None = None  # the state of partial_fit; it starts anew after fit and load

    def __init__(
        self,
        n_subspaces: int = 8,
        n_centroids: int = 256,
        rotation: str | None = "procrustes",
        init: str = "auto",
        *,
        coarse: int = 0,
        step: float | str = "exact",
        n_blocks: int | None = None,
        max_iter: int = 30,
        tol: float = 1e-4,
        max_points_per_centroid: int = 256,
        horizon: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.n_centroids = n_centroids
        self.rotation = rotation
        self.init = init
        self.coarse = coarse
        self.step = step
        self.n_blocks = n_blocks
        self.max_iter = max_iter
        self.tol = tol
        self.max_points_per_centroid = max_points_per_centroid
        self.horizon = horizon
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        weights: Any = None,
        callback: Callable[[int, dict[str, Any]], None] | None = None,
    ) -> Self:
        """Learn rotation and codebooks from rows X (n, d), n >= max(n_centroids, coarse).

        `weights` (n,), greater than 0, say how much the error of a row counts: in an index whose queries meet some
        rows more often than others, how often (the coarse centroids do not use them).
        `callback(round, record)` is called after each round with its entry of `history_`. Among several processes X is
        this one's part of the rows, and all end with the same quantizer. Raises ValueError or TypeError, before any
        work, for parameters or data that cannot be used.
        """
        del y
        X, shard = training_rows(self, X)
        self.normalized_ = all(shard.group.exchange(has_unit_rows(X)))
        self._check_parameters(shard.total, X.shape[1])
        generator = shared_generator(self.random_state)
        weights = None if weights is None else check_row_weights(weights, len(X))
        limit = self.max_points_per_centroid * max(self.n_centroids, self.coarse)
        if shard.total > limit:
            rows = shard.here(np.sort(generator.choice(shard.total, limit, replace=False)))
            X, weights = X[rows], None if weights is None else weights[rows]
        X = X.astype(np.float32)
        shard = Shard.of(X, shard.group)
        coarse = self._train_coarse(X, shard, draw_seed(generator)) if self.coarse else None
        self.coarse_centroids_ = None if coarse is None else coarse.centroids
        X = self._residuals(X)
        mean = shard.group.merge(Mean(X.shape[1]).update(X, weights)).finalize().astype(np.float32)
        if weights is not None:
            average = shard.group.merge(Mean(1).update(weights[:, None])).finalize()
            weights = (weights / average).astype(np.float32)
        step = self._learn(X - mean, weights, shard, generator, callback)
        self.rotation_ = step.rotation
        self.codebooks_ = step.codebooks + (mean @ step.rotation).reshape(self.n_subspaces, 1, -1)
        self.n_iter_ = len(self.history_)
        self._running = None
        return self

    def _train_coarse(self, X: np.ndarray, shard: Shard, seed: int) -> CoarseQuantizer:
        """FAISS's k-means of the rows of all processes, by each of them: it has no sums to merge."""
        coarse = CoarseQuantizer.train(shard.whole(X), self.coarse, seed)
        shard.group.broadcast(coarse.centroids)
        return coarse

    def _learn(
        self, X: np.ndarray, weights: np.ndarray | None, shard: Shard, generator: np.random.Generator, callback: Any
    ) -> Step:
        """Start, alternate, then settle the codebooks with the rotation fixed; X (n, d) is centred."""
        M, K, d = self.n_subspaces, self.n_centroids, X.shape[1]
        update = make_update(self.rotation or "none", d, self.step, self.n_blocks, generator)
        self.history_: list[dict[str, Any]] = []
        self.init_distortion_: dict[str, float] = {}

        def record(_: int, entry: dict[str, Any]) -> None:
            self.history_.append(entry)
            if callback is not None:
                callback(len(self.history_), {**entry, "total": total})

        if update is None:
            total = _PLAIN_KMEANS
            every = None if weights is None else shard.whole(weights)
            codebooks = books.kmeans(shard.whole(X), M, K, 1, draw_seed(generator), every, shard.group)
            start = Step(np.eye(d, dtype=np.float32), codebooks)
            return alternate(X, start, None, total - 1, weights=weights, shard=shard, tol=self.tol, callback=record)
        total = self.max_iter + _LAST_KMEANS
        seed, own = draw_seed(generator), np.random.default_rng(draw_seed(generator))  # whatever `init` will draw
        rotation, self.init_distortion_ = start_rotation(self.init, X, M, K, own, weights, shard)
        shard.group.broadcast(rotation)
        numbers = np.arange(0, shard.total, max(1, shard.total // (_FIRST_ROWS * K)))
        few, few_weights = shard.rows(X, numbers), None if weights is None else shard.rows(weights, numbers)
        start = Step(rotation, books.kmeans(few @ rotation, M, K, _FIRST_KMEANS, seed, few_weights, shard.group))
        both = {"weights": weights, "shard": shard}
        step = alternate(X, start, update, self.max_iter, tol=self.tol, callback=record, **both)
        return alternate(X, step, None, _LAST_KMEANS, callback=record, **both)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Follow a stream: learn from one more batch X (b, d).

        The first batch (at least `n_centroids` rows) is fitted as by `fit`, unless the estimator is already fitted.
        Each later one updates exponential averages of the cluster sums, the codebooks, and the rotation by a few exact
        blocks of disjoint Givens rotations, chosen as `rotation` says ("procrustes" and "cayley" take their own step).
        """
        if not hasattr(self, "codebooks_"):
            self.fit(X, y)
            self._running = self._start_running(training_rows(self, X, reset=False)[0])
            return self
        X = training_rows(self, X, reset=False)[0].astype(np.float32)
        if self._running is None:
            self._running = self._start_running(None)
        rows = self._residuals(X)
        self.rotation_, self.codebooks_ = self._running.update(rows, self.rotation_, self.codebooks_)
        return self

    def encode(self, X: Any) -> np.ndarray:
        """Codes (n, M) of rows X (n, d), uint8 or uint16; with `coarse`, the list's number comes first, in as many
        little-endian bytes as it needs (FAISS's `sa_encode` layout)."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        codec = faiss_bridge.faiss_product_quantizer(self.codebooks_)
        parts = []
        for Z, lists in self._rotated_chunks(X):
            codes = faiss_bridge.compute_codes(codec, Z)
            parts.append(codes if lists is None else np.hstack([CoarseQuantizer.pack(lists, self.coarse), codes]))
        return np.concatenate(parts)

    def decode(self, codes: Any) -> np.ndarray:
        """Rows (n, d) float32 in the original space that codes (n, M), as `encode` gives them, stand for."""
        check_is_fitted(self)
        lists, codes = self._checked_codes(codes)
        rows = books.decode(codes, self.codebooks_) @ self.rotation_.T
        return rows if lists is None else rows + self._coarse_quantizer().centroids[lists]

    def transform(self, X: Any) -> np.ndarray:
        """`encode`, under scikit-learn's name."""
        return self.encode(X)

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """`decode`, under scikit-learn's name."""
        return self.decode(codes)

    def distortion(self, X: Any) -> float:
        """Mean squared L2 distance between the rows of X (n, d) and their reconstructions."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        codec = faiss_bridge.faiss_product_quantizer(self.codebooks_)
        total = 0.0
        for Z, _ in self._rotated_chunks(X):
            total += len(Z) * books.squared_error(Z, faiss_bridge.compute_codes(codec, Z), self.codebooks_)
        return total / len(X)

    def to_faiss(self, metric: str = "l2", *, fast_scan: bool = False) -> faiss.Index:
        """A trained, empty FAISS index with the very same codes: PQ or, with `coarse`, IVF + PQ, behind the rotation.

        `metric`: "l2" or "ip". `fast_scan` needs 16 centroids: faster search, distances rounded to 8 bits.
        """
        check_is_fitted(self)
        check_choice(metric, "metric", faiss_bridge.METRICS)
        if fast_scan and self.codebooks_.shape[1] != 16:
            raise ValueError(f"fast_scan needs n_centroids=16; this quantizer has {self.codebooks_.shape[1]}")
        rotation = None if self.rotation is None else self.rotation_
        coarse = None if self.coarse_centroids_ is None else self._coarse_quantizer().centroids @ self.rotation_
        return faiss_bridge.empty_index(rotation, self.codebooks_, coarse, metric, fast_scan)

    def add_to(self, index: faiss.Index, X: Any) -> None:
        """Add rows X (n, d) to an index made by `to_faiss`, each under the very code that `encode` gives it.

        `index.add(X)` does the same but for the last bits of the rotated rows, which in FAISS depend on the batch, so
        that now and then a tie falls otherwise.
        """
        inner = faiss.downcast_index(index)
        if isinstance(inner, faiss.IndexPreTransform):
            inner = faiss.downcast_index(inner.index)
        if isinstance(inner, faiss.IndexPQFastScan | faiss.IndexIVFPQFastScan):  # their layout takes rows only
            for Z, _ in self._rotated_chunks(validate_vectors(self, X), residuals=False):
                inner.add(Z)
        else:
            inner.add_sa_codes(self.faiss_codes(X))
        index.ntotal = inner.ntotal

    def faiss_codes(self, X: Any) -> np.ndarray:
        """`encode`, as FAISS packs the codes: (n, bytes) uint8."""
        return faiss_bridge.packed(self.encode(X), self.n_subspaces, faiss_bridge.code_bits(self.n_centroids))

    @classmethod
    def from_faiss(cls, index: Any) -> Self:
        """The quantizer inside a trained FAISS index: PQ or IVF + PQ, with or without an (O)PQ rotation in front."""
        arrays = faiss_bridge.read_index(index)
        (M, K, width), coarse = arrays["codebooks"].shape, arrays.get("coarse_centroids")
        rotated = "rotation" in arrays
        self = cls(M, K, "procrustes" if rotated else None, coarse=0 if coarse is None else len(coarse))
        self.codebooks_ = arrays["codebooks"]
        self.rotation_ = arrays["rotation"] if rotated else np.eye(M * width, dtype=np.float32)
        self.coarse_centroids_ = coarse
        self.n_features_in_ = M * width
        self.n_iter_, self.history_, self.init_distortion_ = 0, [], {}
        return self

    def save(self, path: str | os.PathLike) -> None:
        """Write a folder of `config.json` and `arrays.safetensors`; it appears whole or not at all."""
        save_estimator(self, path, "product quantizer")

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read the folder that `save` wrote."""
        return load_estimator(cls, path, "product quantizer")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers whatever goes in
        return tags

    def _coarse_quantizer(self) -> CoarseQuantizer:
        if self.coarse_centroids_ is None:
            raise ValueError("this quantizer has no coarse centroids; fit it with coarse > 0")
        return CoarseQuantizer(self.coarse_centroids_)

    def _start_running(self, X: np.ndarray | None) -> RunningFit:
        name, generator = self.rotation or "none", numpy_generator(self.random_state)
        update = make_update(name, self.n_features_in_, "exact", self.n_blocks or _STREAM_BLOCKS, generator)
        horizon = self.horizon or 64 * self.n_centroids
        running = RunningFit(update, horizon, ClusterSums(self.n_subspaces, self.n_centroids, self.n_features_in_))
        if X is not None:
            running.absorb(self._residuals(X.astype(np.float32)), self.rotation_, self.codebooks_)
        return running

    def _residuals(self, X: np.ndarray) -> np.ndarray:
        """X (n, d) itself, or what is left of it after its coarse centroids."""
        if self.coarse_centroids_ is None:
            return X
        coarse = self._coarse_quantizer()
        return X - coarse.centroids[coarse.assign(X)]

    def _rotated_chunks(
        self, X: np.ndarray, *, residuals: bool = True
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Chunks of rotated rows (with `coarse`, of their residuals) and the numbers of their lists.

        Products are formed in float64 and rounded to float32: how BLAS splits a batch changes the last bits of a
        product, and so, without this, now and then a code.
        """
        R = self.rotation_.astype(np.float64)
        for first in range(0, len(X), _CHUNK):
            chunk = X[first : first + _CHUNK]
            lists = None
            if self.coarse_centroids_ is not None and residuals:
                coarse = self._coarse_quantizer()
                lists = coarse.assign(chunk)
                chunk = chunk.astype(np.float64) - coarse.centroids[lists]
            rotated = chunk if self.rotation is None else chunk.astype(np.float64) @ R
            yield rotated.astype(np.float32), lists

    def _checked_codes(self, codes: Any) -> tuple[np.ndarray | None, np.ndarray]:
        codes = np.asarray(codes)
        M, K, _ = self.codebooks_.shape
        width = M + (CoarseQuantizer.code_width(self.coarse) if self.coarse else 0)
        if codes.ndim != 2 or codes.shape[1] != width or codes.dtype.kind not in "iu":
            raise ValueError(f"codes have shape {codes.shape}, dtype {codes.dtype}; they must be integers (n, {width})")
        lists = CoarseQuantizer.unpack(codes[:, :-M], self.coarse) if self.coarse else None
        codes = codes[:, -M:]
        if codes.size and (codes.min() < 0 or codes.max() >= K):
            raise ValueError(f"codes hold {codes.max()}; they must lie in 0..{K - 1} (n_centroids={K})")
        return lists, codes

    def _check_parameters(self, n: int, d: int) -> None:
        M = check_integer(self.n_subspaces, "n_subspaces", low=1)
        K = check_integer(self.n_centroids, "n_centroids", low=2, high=2**faiss_bridge.MAX_BITS)
        lists = check_integer(self.coarse, "coarse", low=0)
        check_choice(self.rotation, "rotation", (None, *ROTATIONS[1:]))
        check_choice(self.init, "init", ("auto", *STARTS))
        if self.step != "exact":
            check_real(self.step, "step", above=0)
        check_integer(self.n_blocks or 1, "n_blocks", low=1)
        check_integer(self.max_iter, "max_iter", low=1)
        check_real(self.tol, "tol", low=0)
        check_integer(self.max_points_per_centroid, "max_points_per_centroid", low=1)
        check_integer(self.horizon or 1, "horizon", low=1)
        if d % M:
            near = sorted((m for m in range(1, d + 1) if d % m == 0), key=lambda m: abs(m - M))[:4]
            raise ValueError(
                f"n_subspaces is {M}, which does not divide the {d} columns of X; near divisors of {d} are "
                f"{', '.join(map(str, sorted(near)))}, or pad X with zero columns"
            )
        if n < max(K, lists):
            name = "n_centroids" if n < K else "coarse"
            raise ValueError(
                f"X has n_samples={n} rows, fewer than {name}={max(K, lists)}; give at least that many rows or a "
                f"smaller {name}"
            )
        if lists and K > 256:
            raise ValueError(
                f"coarse={lists} with n_centroids={K}: codes that begin with a list need n_centroids <= 256"
            )
