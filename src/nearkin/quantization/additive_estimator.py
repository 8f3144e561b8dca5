"""What every additive quantizer does alike once its codebooks are learned: encode, decode, FAISS, folders."""

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Self, cast

import faiss
import numpy as np
from scipy.linalg import block_diag
from sklearn.utils.validation import check_is_fitted

from nearkin._check import (
    check_choice,
    check_integer,
    check_magnitude,
    check_queries,
    check_real,
    has_unit_rows,
    validate_vectors,
)
from nearkin._faiss import METRIC_TYPES, innermost
from nearkin._faiss_blocks import add_codes
from nearkin._persistence import Source, load_estimator, save_estimator
from nearkin._random import draw_seed
from nearkin._shards import shared_generator, whole_rows
from nearkin._threads import serial_products
from nearkin._transformers import ReconstructingTransformer
from nearkin._types import ArrayLike, Fields, Record, Seed
from nearkin.contracts import Callback, ignore
from nearkin.linalg.steady import rounded_product
from nearkin.quantization.additive import decode, packed, steady_numbers
from nearkin.quantization.additive_learning import INNER, KNOWN, Learned, Sums, asked_by
from nearkin.quantization.additive_order import ordered
from nearkin.quantization.additive_part import LOOK_BEAM, lengths
from nearkin.quantization.coarse import CoarseQuantizer
from nearkin.quantization.faiss_bridge import behind_rotation
from nearkin.quantization.fast_scan import (
    SCANNED,
    ScanComparison,
    ScannedIndex,
    fill_tables,
    fill_values,
    learn_tables,
    learn_values,
    learned_scale,
)

NORMS = {0: "ST_decompress", 4: "ST_norm_qint4", 8: "ST_norm_qint8", 32: "ST_norm_float"}
LEARNED_NORMS = {4: "ST_norm_cqint4", 8: "ST_norm_cqint8"}


class AbstractAdditiveQuantizer(ReconstructingTransformer):
    """Fitted: `codebooks_` (splits, M, K, d'/splits) float32; `coding_codebooks_`, by which codes are chosen if they
    differ, else None; `rotation_` (d, d') float32; `norms_` (2,), the least and the largest squared norm of a decoded
    row (zeros without `norm_bits`); `norm_values_` (16,) or (256,), the squared norms that 4 or 8 bits stand for (None
    for equal steps between `norms_`, as FAISS and older folders have them); `norm_tables_` (2, 16), the two parts of a
    squared norm that FAISS's fast scan adds up, and `norm_scale_`, their divisor there (None and 1 without it);
    `norm_origin_` (d',), the middle of rotated rows about which norms are taken (None without); `fast_scan_`, whether a
    fast scan by "ip" keeps enough neighbours (None if that is not known); `coarse_centroids_` (n_lists, d) float32 or
    None; `normalized_`, `history_`, `n_iter_`, `n_features_in_`.

    A subclass has `_learn` and the parameters `n_centroids`, `n_lists`, `beam_size`, `norm_bits`,
    `max_points_per_centroid` and `random_state`.
    """

    n_features_in_: int

    KIND = ""
    n_codebooks: int
    n_centroids: int
    beam_size: int
    norm_bits: int
    max_iter: int
    smoothing: float
    ranking: bool | str
    max_points_per_centroid: int
    random_state: Seed
    codebooks_: np.ndarray
    coding_codebooks_: np.ndarray | None = None
    rotation_: np.ndarray
    norms_: np.ndarray
    norm_values_: np.ndarray | None = None
    norm_tables_: np.ndarray | None = None
    norm_scale_: int = 1
    norm_origin_: np.ndarray | None = None
    metric_: np.ndarray | None = None
    share_: float = 0.0
    n_lists: int
    coarse_centroids_: np.ndarray | None = None
    normalized_: bool | None = None  # not known for one that was not fitted here
    fast_scan_: bool | None = None  # by "ip"

    @abstractmethod
    def _learn(self, X: np.ndarray, asked: np.ndarray | None, seed: int, callback: Callback) -> Learned:
        """What `additive_learning.learn` gives for centred rows X (n, d) float32, `asked` (d, d) as `Sums` has it."""

    @abstractmethod
    def _coder(self, codebooks: np.ndarray, widest: int | None = None) -> faiss.AdditiveQuantizer:
        """FAISS's quantizer of these codebooks (splits, M, K, w), without norms; its beam is at most `widest`."""

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        queries: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from rows X (n, d), n >= max(n_centroids, n_lists); `callback` hears of every round.

        `queries` (q, d), for `ranking="ip"`, are like those that will ask; without them the rows stand for them.

        ValueError or TypeError, before any work, for parameters or data that cannot be used. Among several processes
        each does all the work on the rows of all.
        """
        del y
        self._check_parameters()
        X = check_magnitude(whole_rows(self, X, min_rows=max(self.n_centroids, self.n_lists)))
        self.normalized_ = has_unit_rows(X)
        asked = asked_by(self.ranking, X, queries)
        generator = shared_generator(self.random_state)
        limit = self.max_points_per_centroid * max(self.n_centroids, self.n_lists)
        if len(X) > limit:
            X = X[np.sort(generator.choice(len(X), limit, replace=False))]
        X = rows = X.astype(np.float32)
        self.coarse_centroids_ = None
        if self.n_lists:
            coarse = CoarseQuantizer.train(X, self.n_lists, draw_seed(generator))
            rows, self.coarse_centroids_ = coarse.residuals(X), coarse.centroids
        mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.history_: list[Record] = []

        def record(_: int, entry: Fields) -> None:
            self.history_.append(dict(entry))
            (callback or ignore)(len(self.history_), entry)

        with serial_products(X.shape[0] * X.shape[1] ** 2):
            learned = self._learn(rows - mean, asked, draw_seed(generator), record)
        self.n_iter_ = len(self.history_)
        rotation, codebooks, self.metric_, self.share_ = learned
        self.rotation_ = _widened(rotation, len(codebooks)) if self.share_ else rotation
        offset = (mean @ self.rotation_).reshape(len(codebooks), 1, -1)
        codebooks[:, 0] += offset  # the first codebook carries the mean
        self.codebooks_, self.norms_ = codebooks, np.zeros(2, np.float32)
        self.norm_values_ = self.norm_tables_ = self.norm_origin_ = self.coding_codebooks_ = None
        if self.ranking in KNOWN.values():
            self._learn_order(X, generator)
        if self.norm_bits:
            self._learn_norms(X, generator)
        self.fast_scan_ = None
        if self.n_centroids == SCANNED and not self.norm_bits:
            comparison = ScanComparison.of(X, "ip", None if queries is None else check_queries(queries, X.shape[1]))
            kept = [comparison.kept(self, self.to_faiss("ip", fast_scan=fast)) for fast in (False, True)]
            self.fast_scan_ = comparison.allows(*kept)
        return self

    def _learn_order(self, X: np.ndarray, generator: np.random.Generator) -> None:
        """Search rows X (n, d) by codebooks trained for their order; those that chose the codes go on choosing them."""
        (numbers, lists), centres = self._chosen(X), None
        if self.coarse_centroids_ is not None and lists is not None:
            centres = (self.coarse_centroids_ @ self.rotation_)[lists]
        self.coding_codebooks_ = self.codebooks_
        self.codebooks_ = ordered(
            self.codebooks_, numbers, X @ self.rotation_, centres, self.ranking == KNOWN["ip"], generator
        )

    def _learn_norms(self, X: np.ndarray, generator: np.random.Generator) -> None:
        """Learn which squared norms the bits stand for, from the codes of rows X (n, d): about their mean, or about the
        middles of their lists, if there are any, because FAISS codes what those leave. And the tables of a fast scan,
        if it keeps enough."""
        decoded = self._decoded(self.encode(X))
        mean = decoded.mean(axis=0, dtype=np.float64).astype(np.float32)
        if self.coarse_centroids_ is None:
            middles = self.norm_origin_ = mean
        else:
            middles = (self.coarse_centroids_ @ self.rotation_)[CoarseQuantizer(self.coarse_centroids_).assign(X)]
        norms = np.square(decoded - middles, dtype=np.float64).sum(axis=1)
        self.norms_ = np.array([norms.min(), norms.max()], np.float32)
        if self.norm_bits in LEARNED_NORMS:
            self.norm_values_ = learn_values(norms, 2**self.norm_bits)
        if self.norm_bits == 8 and self.n_centroids == SCANNED:
            comparison, origin = ScanComparison.of(X, "l2"), self.norm_origin_
            kept = comparison.kept(self, self.to_faiss())
            self._learn_tables(X, decoded, mean, draw_seed(generator))
            if not comparison.allows(kept, comparison.kept(self, self.to_faiss())):
                self.norm_tables_, self.norm_origin_ = None, origin

    def _learn_tables(self, X: np.ndarray, decoded: np.ndarray, mean: np.ndarray, seed: int) -> None:
        """Learn what `_scanned` wants from rows X (n, d): the norms of decoded rows (n, d') about their mean."""
        self.norm_origin_ = mean
        self.norm_tables_ = learn_tables(np.square(decoded - mean, dtype=np.float64).sum(axis=1), seed)
        self.norm_scale_ = learned_scale(self._scanned("l2"), X @ self.rotation_ - mean)

    def _check_parameters(self) -> None:
        K = check_integer(self.n_centroids, "n_centroids", low=2, high=65536)
        if K & (K - 1):
            raise ValueError(f"n_centroids is {K}; FAISS's codes want a power of two, for example 16 or 256")
        check_integer(self.n_lists, "n_lists", low=0)
        check_integer(self.beam_size, "beam_size", low=1)
        check_integer(self.max_iter, "max_iter", low=0)
        check_real(self.smoothing, "smoothing", low=0, high=1)
        check_choice(self.ranking, "ranking", (True, False, INNER, *KNOWN.values()))
        check_integer(self.max_points_per_centroid, "max_points_per_centroid", low=1)
        check_choice(self.norm_bits, "norm_bits", NORMS)

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) uint8 of rows X (n, d), as FAISS packs them: with `n_lists` the list's number comes first.

        A row encodes alone as in a batch.
        """
        check_is_fitted(self)
        X = check_magnitude(validate_vectors(self, X))
        numbers, lists = self._chosen(X)
        index = self._inner() if self.norm_tables_ is None else self._scanned("l2")  # it stays: it owns its quantizer
        if self.coarse_centroids_ is None or lists is None:
            return packed(index.aq, numbers)
        coarse = self.coarse_centroids_ @ self.rotation_
        origin = 0 if self.norm_origin_ is None else self.norm_origin_
        codes = packed(index.aq, numbers, None if self.norm_tables_ is None else (coarse - origin)[lists])
        return np.hstack([CoarseQuantizer.pack(lists, len(coarse)), codes])

    def _chosen(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Numbers of centroids (n, splits M) and of lists (n,), None without lists, for rows X (n, d)."""
        into = self._into_codes()
        Z = rounded_product(X, into)
        if self.coarse_centroids_ is None:
            return self._numbers(Z), None
        turned = Z if self.metric_ is None else rounded_product(X, self.rotation_.astype(np.float64))
        lists = CoarseQuantizer(self.coarse_centroids_ @ self.rotation_).assign(turned)
        return self._numbers(Z - (self.coarse_centroids_ @ into).astype(np.float32)[lists]), lists

    def _into_codes(self) -> np.ndarray:
        """The matrix (d, d') float64 that leads rows into the space in which codes are chosen."""
        turned = self.rotation_.astype(np.float64)
        return turned if self.metric_ is None else turned @ np.asarray(block_diag(*self.metric_))

    def _numbers(self, Z: np.ndarray) -> np.ndarray:
        """Numbers of centroids (n, splits M) for rows Z (n, d') in the space in which codes are chosen.

        They are chosen about the middle of the first codebook, which carries the mean: FAISS expands squares, and far
        from 0 those have no digits left for what tells rows apart.
        """
        metric, codebooks = self.metric_, self.codebooks_ if self.coding_codebooks_ is None else self.coding_codebooks_
        codebooks = codebooks.copy() if metric is None else codebooks @ metric[:, None]
        middle = codebooks[:, 0].mean(axis=1, dtype=np.float64).astype(np.float32)
        if self.share_:
            middle[:, -1] = 0  # of the errors' column, which rows do not have yet
        codebooks[:, 0] -= middle[:, None]
        Z = Z - middle.ravel()
        if metric is None or not self.share_:
            return steady_numbers(self._coder(codebooks), Z)
        splits, M, _, width = codebooks.shape
        plain = codebooks.copy()
        plain[..., -1] = 0
        numbers, Z = steady_numbers(self._coder(plain, LOOK_BEAM), Z), Z.reshape(-1, splits, width).copy()
        for m, (books, turn) in enumerate(zip(codebooks, metric, strict=True)):
            E = (Z[:, m] - decode(numbers[:, m * M : (m + 1) * M], books))[:, :-1]
            Z[:, m, -1] = turn[-1, -1] * np.sqrt(self.share_) * lengths(E, turn[:-1, :-1])
        return steady_numbers(self._coder(codebooks), Z.reshape(len(Z), -1))

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) float32 that codes, as `encode` gives them, stand for; ValueError for another width or type."""
        check_is_fitted(self)
        codes, width = np.asarray(codes), self._inner().sa_code_size()
        if codes.ndim != 2 or codes.shape[1] != width or codes.dtype != np.uint8:
            raise ValueError(f"codes have shape {codes.shape}, dtype {codes.dtype}; they must be uint8 (n, {width})")
        if self.coarse_centroids_ is not None:  # FAISS would read behind its lists
            n_lists = len(self.coarse_centroids_)
            CoarseQuantizer.unpack(codes[:, : CoarseQuantizer.code_width(n_lists)], n_lists)
        return self._decoded(codes) @ self.rotation_.T

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        """The rotated rows (n, d') that codes stand for."""
        decoded, origin = self._inner().sa_decode(np.ascontiguousarray(codes)), self._origin("l2")
        return decoded if origin is None else decoded + origin

    def scans_fast(self, metric: str) -> bool:
        """Whether an index by `metric` uses FAISS's fast scan by default.

        It needs 16 centroids, by "l2" `norm_bits=8`, by "ip" none, and rows of which it keeps as many neighbours as an
        exact scan, to .005.
        """
        return self.norm_tables_ is not None if metric == "l2" else bool(self.fast_scan_)

    def to_faiss(self, metric: str = "l2", *, fast_scan: bool | None = None) -> faiss.Index:
        """A trained, empty FAISS index with these codes; `metric` is "l2" or "ip".

        By "l2" without `norm_bits` FAISS decodes every code for every query: exact and slow. With them, and by "ip",
        it adds entries of tables, as for product codes. `fast_scan`: FAISS's faster search of 4-bit codes, whose
        distances are rounded; None: where the norms are for it.
        """
        check_is_fitted(self)
        check_choice(metric, "metric", METRIC_TYPES)
        norms = self.norm_tables_ is not None and metric == "l2"
        fast = norms if fast_scan is None else fast_scan
        fits = self.norm_tables_ is not None if metric == "l2" else not self.norm_bits
        if fast and not (fits and self.codebooks_.shape[2] == SCANNED):
            raise ValueError(
                f"fast_scan by {metric!r} needs n_centroids=16 and norm_bits={0 if metric == 'ip' else 8}, and rows of "
                f"which it keeps enough neighbours; this quantizer has n_centroids={self.codebooks_.shape[2]}, "
                f"norm_bits={self.norm_bits}"
            )
        if norms and not fast:
            raise ValueError(
                "fast_scan is False, and 16 centroids with norm_bits=8 have norms that the fast scan alone reads; fit "
                "with norm_bits=4 or 32, or leave fast_scan out"
            )
        inner, origin = self._scanned(metric) if fast else self._inner(metric), self._origin(metric)
        plain = origin is None and not self._is_rotated()
        return inner if plain else behind_rotation(self.rotation_, inner, origin)

    def faiss_codes(self, X: ArrayLike) -> np.ndarray:
        """The same as `encode`: FAISS stores these codes."""
        return self.encode(X)

    def add_to(self, index: faiss.Index, X: ArrayLike) -> None:
        """Add rows X (n, d) to an index made by `to_faiss`, each under the code that `encode` gives it."""
        inner, codes = innermost(index), self.encode(X)
        if isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan):
            add_codes(inner, codes)
        else:
            inner.add_sa_codes(codes)
        index.ntotal = inner.ntotal

    def save(self, path: str | os.PathLike) -> None:
        """Write a folder of `config.json` and `arrays.safetensors`; it appears whole or not at all."""
        save_estimator(self, path, self.KIND)

    @classmethod
    def load(cls, path: Source) -> Self:
        """Read the folder that `save` wrote."""
        return load_estimator(cls, path, cls.KIND)

    def _sums(self, n_splits: int, asked: np.ndarray | None) -> Sums:
        settings = self.n_centroids, self.max_iter, self.beam_size, self.smoothing, bool(self.ranking)
        return Sums(n_splits, self.n_codebooks, *settings, asked)

    def _is_rotated(self) -> bool:
        d, padded = self.rotation_.shape
        return d != padded or not np.array_equal(self.rotation_, np.eye(d))

    def _origin(self, metric: str) -> np.ndarray | None:
        return self.norm_origin_ if metric == "l2" else None

    def _placed(self, metric: str) -> tuple[np.ndarray, faiss.Index | None]:
        """Codebooks, and the flat index of the coarse centroids of the rotated rows, None without lists.

        Both are about the norms' origin, where there is one: lists' middles are moved there, else the first codebook.
        """
        origin, codebooks = self._origin(metric), self.codebooks_
        if self.coarse_centroids_ is None:
            if origin is not None:
                codebooks = codebooks.copy()
                codebooks[:, 0] -= origin.reshape(len(codebooks), 1, -1)
            return codebooks, None
        centroids = self.coarse_centroids_ @ self.rotation_ - (0 if origin is None else origin)
        lists = faiss.IndexFlat(centroids.shape[1], METRIC_TYPES[metric])
        lists.add(np.ascontiguousarray(centroids, np.float32))
        return codebooks, lists

    def _take(self, rotation: np.ndarray | None, inner: faiss.Index) -> None:
        """The fitted values that every trained FAISS index of codes has, but for the codebooks."""
        self.rotation_ = np.eye(inner.d, dtype=np.float32) if rotation is None else rotation
        if isinstance(inner, faiss.IndexIVF):
            if not inner.by_residual:
                raise ValueError("index has by_residual=False; only an inverted file of residuals' codes can be read")
            self.coarse_centroids_ = inner.quantizer.reconstruct_n(0, inner.nlist) @ self.rotation_.T
            self.n_lists = inner.nlist
        self.n_features_in_, self.history_, self.n_iter_ = len(self.rotation_), [], 0
        if isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan) and inner.metric_type == faiss.METRIC_L2:
            self.norm_tables_ = faiss.vector_to_array(inner.aq.norm_tabs).reshape(2, SCANNED)
            self.norm_bits, self.norm_scale_ = 8, int(inner.norm_scale)

    def _scanned(self, metric: str) -> ScannedIndex:
        """The FAISS index of the rotated rows that scans 4-bit codes fast."""
        index = cast(ScannedIndex, self._inner(metric, fast=True))
        if self.norm_tables_ is not None:
            fill_tables(index.aq, self.norm_tables_)
            index.norm_scale = self.norm_scale_
        return index

    @abstractmethod
    def _inner(self, metric: str = "l2", *, fast: bool = False) -> faiss.Index:
        """The FAISS index of the rotated rows; `fast` is for one that scans 4-bit codes."""

    def _search_type(self, metric: str, fast: bool) -> int:
        """How FAISS compares: by tables alone where no norm is needed."""
        by_tables = metric == "ip" and not self.norm_bits
        if fast and not by_tables:
            return faiss.AdditiveQuantizer.ST_norm_rq2x4
        norms = NORMS if self.norm_values_ is None else LEARNED_NORMS
        return getattr(faiss.AdditiveQuantizer, "ST_LUT_nonorm" if by_tables else norms[self.norm_bits])

    def _finished(self, index: faiss.Index, fast: bool) -> faiss.Index:
        """An index with codebooks, with the values of norms; trained."""
        if self.norm_values_ is not None and not fast:
            fill_values(index.aq, self.norm_values_)
        index.is_trained = True
        return index


def inverted(kind: Callable[..., faiss.Index], lists: faiss.Index, *arguments: object) -> faiss.Index:
    """An inverted file of residuals' codes over `lists`, which it owns from then on."""
    index = kind(lists, lists.d, lists.ntotal, *arguments)
    index.own_fields = True
    lists.this.disown()
    return index


def _widened(rotation: np.ndarray, n_splits: int) -> np.ndarray:
    """A rotation (d, d') with a column of zeros after each of `n_splits` parts: the error's, which a query has as 0."""
    parts = np.split(rotation, n_splits, axis=1)
    return np.hstack([np.pad(part, ((0, 0), (0, 1))) for part in parts])
