"""Product codes whose last byte may hold the norm of the row, and the base class shared with `AxisQuantizer`.

A row y decoded from centroids is too short, each row by another factor, because centroids are means. At the true
distance |x - mu| from the mean mu, distances and inner products with queries rank the rows better (norm-explicit
quantization, Dai et al., AAAI 2020, who take lengths about the origin).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import faiss
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearkin._check import (
    check_choice,
    check_codes,
    check_integer,
    check_magnitude,
    check_queries,
    draw_seed,
    validate_vectors,
)
from nearkin._distributed import alone
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES, at_length
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, ignore
from nearkin.linalg.orthonormal import row_length, unit_rows
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import HeldOut
from nearkin.quantization.codebooks import CoarseQuantizer
from nearkin.quantization.faiss_bridge import SCANNED, empty_index, packed
from nearkin.quantization.product import ProductQuantizer
from nearkin.statistics import shared_generator, training_rows

LEVELS = 256  # values of the byte
_CHUNK = 8_192  # rows whose lengths are computed at a time


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of codes with a length; docs/notes/decisions.md has the recall of six sets."""

    clipped: float = 1e-3  # share of lengths beyond either end of the levels
    sample: int = 8_192  # most rows for the mean, the lengths and the choice
    gain: float = 0.005  # least gain in recall of a length in the short fits; their standard error is about .005
    rounds: int = 4  # of these fits, at most
    lists: int = 64  # of these fits, at most
    judged_rows: int = 4_096  # at most, among which they find neighbours


DEFAULTS = Defaults()


class AbstractLengthCodes(ReconstructingTransformer):
    """A product code (n, n_bytes) uint8 in a rotated space; its last byte is the number of a length if `lengths_` has
    any."""

    n_bytes: int
    n_features_in_: int
    normalized_: bool | None
    rotation_: np.ndarray
    codebooks_: np.ndarray
    mean_: np.ndarray
    length_: float | None
    lengths_: np.ndarray

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) float32 of codes, at their own length; ValueError for codes of another width."""
        check_is_fitted(self)
        codes = check_codes(codes, self.n_bytes)
        rows = self.codebooks_[np.arange(self.n_bytes), codes].reshape(len(codes), -1)
        return self.restored(rows, codes) @ self.rotation_.T

    def restored(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Decoded rows (n, d') in the rotated space, of codes (n, n_bytes), at their own length."""
        return self.at_lengths(rows, codes, self.length_centre)

    @property
    def length_centre(self) -> np.ndarray:
        """The rows' mean (d',) in the rotated space."""
        return self.mean_ @ self.rotation_

    def at_lengths(self, rows: np.ndarray, codes: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Decoded rows (n, d) at their own length, about the rows' mean `centre` (d,) in their space."""
        if len(self.lengths_):
            return centre + unit_rows(rows - centre) * self.lengths_[codes[:, -1]][:, None]
        return rows if self.length_ is None else at_length(rows, self.length_)

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty `faiss.IndexPQ` behind the rotation, for the very same codes; `metric` is "l2" or "ip".

        FAISS does not rescale rows to their length: its recall is below that of `nk.Index`.
        """
        check_is_fitted(self)
        check_choice(metric, "metric", METRIC_TYPES)
        return empty_index(self.rotation_, self.codebooks_, None, metric, fast_scan=False)

    def _check_loaded(self) -> None:
        d, (M, K, width) = self.n_features_in_, self.codebooks_.shape
        shapes = self.rotation_.shape, self.mean_.shape, self.lengths_.shape
        if (M, K) not in ((self.n_bytes, LEVELS), (2 * self.n_bytes, SCANNED)) or shapes not in [
            ((d, M * width), (d,), (n,)) for n in (0, LEVELS)
        ]:
            raise ValueError(f"codebooks_ is {self.codebooks_.shape}, and rotation_, mean_ and lengths_ are {shapes}")
        super()._check_loaded()
        self.decode(self.encode(np.zeros((1, d), np.float32)))

    def length_codes(self, X: np.ndarray) -> np.ndarray:
        """The last byte (n,) of rows X (n, d): the level nearest to the row's length about the mean."""
        return np.searchsorted((self.lengths_[1:] + self.lengths_[:-1]) / 2, lengths(X, self.mean_)).astype(np.uint8)

    def recall(self, rows: np.ndarray, queries: np.ndarray | None = None) -> float:
        """Recall of queries (q, d), or of the first rows (n, d), among other rows, compared as `nk.Index` does."""
        split = min(OF_TRIALS.queries, len(rows) // 2)
        asked = rows[:split] if queries is None else queries[:: -(-len(queries) // OF_TRIALS.queries)]
        held = HeldOut.of(rows[split : split + DEFAULTS.judged_rows], asked)
        return float(held.recall(self.decode(self.encode(held.rows))).mean())


def length_levels(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Levels (256,) for lengths of rows X (n, d) about their mean (d,), in equal ratios; 0 is for a row at the mean."""
    found = lengths(X, mean)
    low, high = np.quantile(found[found > 0], [DEFAULTS.clipped, 1 - DEFAULTS.clipped]) if found.any() else (1.0, 1.0)
    return np.r_[0, np.geomspace(low, high, LEVELS - 1)].astype(np.float32)


def lengths(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """|x - mean| (n,) float64 of rows X (n, d), independent of the batch."""
    found = np.empty(len(X))
    for first in range(0, len(X), _CHUNK):
        centred = X[first : first + _CHUNK].astype(np.float64) - mean
        np.sqrt(np.square(centred).sum(axis=1), out=found[first : first + _CHUNK])
    return found


@dataclass(eq=False, repr=False)
class NormExplicitQuantizer(AbstractLengthCodes):
    """Codes of `n_bytes` bytes: `ProductQuantizer`'s, of which the last may hold the row's length about the mean.

    Decoded rows are too short, each by a different factor; rescaled to their true length they are ranked better. At
    equal bytes, one byte of length raises the recall of ten neighbours by up to 7 points by distance and 10 by inner
    product (image descriptors; docs/notes/decisions.md). Two short fits decide whether the byte is used.
    Rows of one length need none: without a byte of length the codes are those of `ProductQuantizer`.

    Parameters
    ----------
    n_bytes: bytes of a code; at most the number of columns, of 16 centroids half of it.
    n_centroids: 256, one byte each, or 16, half a byte each.
    n_lists: number of inverted lists; 0 for none. A code begins with the number of its list, in further bytes.
    max_iter: rounds of learning, at most.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    rotation_ (d, d') float32: rows are quantized as `X @ rotation_`.
    codebooks_ (M, n_centroids, w) float32: centroids of rotated rows, 1 or 2 codes a byte; 0 for the byte of length.
    coarse_centroids_ (n_lists, d) float32, or None.
    mean_ (d,) float32: of the rows.
    length_: length of all rows, None where rows have different lengths.
    lengths_ (256,) float32: the lengths that the last byte names; empty (0,) without such a byte.
    normalized_: whether the rows that it was fitted on had length 1.
    history_, trials_, n_iter_, fast_scan_: of the fit of the product codes.
    n_features_in_.

    References: Dai et al. 2020 (norm-explicit quantization); Ge et al. 2013 (OPQ).

    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> NormExplicitQuantizer(n_bytes=4, random_state=0).fit(X).encode(X).shape
    (500, 4)
    """

    KIND = "norm-explicit quantizer"
    coarse_centroids_ = fast_scan_ = None  # older folders do not have them

    n_bytes: int = 8
    n_centroids: int = 256
    _: KW_ONLY
    n_lists: int = 0
    max_iter: int = 30
    random_state: Seed = None

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> Self:
        """Learn from rows X (n, d); of fewer than 256 rows, as many centroids.

        `queries` and `callback` are those of `ProductQuantizer.fit`; the queries also decide whether a byte holds the
        length. Among several processes X is this one's part of the rows, and all end with the same quantizer.
        ValueError or TypeError for what cannot be used.
        """
        n_bytes = check_integer(self.n_bytes, "n_bytes", low=1)
        check_choice(self.n_centroids, "n_centroids", (SCANNED, LEVELS))
        X, shard = training_rows(self, X)
        most = X.shape[1] // self._codes_a_byte
        if n_bytes > most:
            half = "half " if self._codes_a_byte == 2 else ""
            raise ValueError(
                f"n_bytes is {n_bytes}, more than {half}the {X.shape[1]} columns of X; give at most {most}"
            )
        check_magnitude(X)
        asked = None if queries is None else check_queries(queries, X.shape[1]).astype(np.float32)
        generator = shared_generator(self.random_state)
        seed = draw_seed(generator)
        chosen = np.sort(generator.choice(shard.total, min(shard.total, DEFAULTS.sample), replace=False))
        sample = generator.permutation(shard.rows(X, chosen).astype(np.float32))  # the first rows are queries
        with_length = n_bytes > 1 and self._length_pays(sample, asked, seed)
        product = ProductQuantizer(
            (n_bytes - with_length) * self._codes_a_byte, min(self.n_centroids, max(2, shard.total)),
            n_lists=self.n_lists, max_iter=self.max_iter, random_state=seed,
        )  # fmt: skip
        self._take(product.fit(X, queries=queries, callback=callback), sample, with_length)
        return self

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_bytes) uint8 of rows X (n, d); with `n_lists`, the bytes of the list's number come first."""
        check_is_fitted(self)
        X = check_magnitude(validate_vectors(self, X))
        codes = self._product.encode(X)
        if len(self.lengths_):
            level = self.length_codes(X)
            codes = np.column_stack([codes, level] if self._codes_a_byte == 1 else [codes, level % 16, level // 16])
        return packed(codes, len(self.codebooks_), 8 // self._codes_a_byte)

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) float32 of codes, at their own length; ValueError for codes of another width."""
        check_is_fitted(self)
        lists = CoarseQuantizer.code_width(self.n_lists) if self.n_lists else 0
        codes = check_codes(codes, lists + self.n_bytes)
        own = np.ascontiguousarray(codes[:, lists:])
        numbers = faiss.unpack_bitstrings(own, len(self.codebooks_), 8 // self._codes_a_byte)
        numbers = np.hstack([codes[:, :lists], numbers.astype(np.uint8)])
        return self.at_lengths(self._whole.decode(numbers), codes, self.mean_)

    def scans_fast(self, metric: str) -> bool:
        """Whether an index by `metric` uses FAISS's fast scan by default: 16 centroids, and `fast_scan_` is true."""
        return bool(self.fast_scan_ and self.fast_scan_[metric])

    def to_faiss(self, metric: str = "l2", *, fast_scan: bool = False) -> faiss.Index:
        """A trained, empty FAISS index for the very same codes, as `ProductQuantizer.to_faiss` makes it.

        FAISS does not rescale rows to their length: its recall is below that of `nk.Index`.
        """
        check_is_fitted(self)
        return self._whole.to_faiss(metric, fast_scan=fast_scan)

    def _length_pays(self, sample: np.ndarray, queries: np.ndarray | None, seed: int) -> bool:
        """Whether a byte of length raises the recall of short fits on the sample; the same in every process."""
        if row_length(sample) is not None or len(sample) <= LEVELS:
            return False
        recall = []
        with alone():
            for with_length in (False, True):
                short = ProductQuantizer(
                    (self.n_bytes - with_length) * self._codes_a_byte, self.n_centroids, init="pca",
                    n_lists=min(self.n_lists, DEFAULTS.lists), max_iter=min(DEFAULTS.rounds, self.max_iter),
                    random_state=seed,
                )  # fmt: skip
                judged = NormExplicitQuantizer(self.n_bytes, self.n_centroids, n_lists=short.n_lists)
                judged.n_features_in_ = sample.shape[1]
                judged._take(short.fit(sample), sample, with_length)
                recall.append(judged.recall(sample, queries))
        return recall[1] - recall[0] > DEFAULTS.gain

    def _take(self, product: ProductQuantizer, sample: np.ndarray, with_length: bool) -> None:
        """Attributes of the fitted product codes; a byte of the length is a codebook of zeros on columns of zeros."""
        self.rotation_, books = product.rotation_, product.codebooks_
        self.coarse_centroids_, self.fast_scan_ = product.coarse_centroids_, product.fast_scan_
        more = self.n_centroids - books.shape[1]  # few rows: repeat the last centroid, which no row then chooses
        self.codebooks_ = np.pad(books, ((0, 0), (0, more), (0, 0)), "edge")
        self.mean_ = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.length_, self.lengths_ = None, np.empty(0, np.float32)
        self.normalized_, self.history_ = product.normalized_, product.history_
        self.trials_, self.n_iter_ = product.trials_, product.n_iter_
        if with_length:
            self.rotation_ = np.pad(self.rotation_, ((0, 0), (0, self._codes_a_byte * books.shape[2])))
            self.codebooks_ = np.pad(self.codebooks_, ((0, self._codes_a_byte), (0, 0), (0, 0)))
            self.lengths_ = length_levels(sample, self.mean_)
        else:
            self.length_ = row_length(sample, bool(self.normalized_))
        self._split()

    @property
    def product(self) -> ProductQuantizer:
        """The product codes in front of the length; all of the code where no byte holds one."""
        check_is_fitted(self)
        return self._product

    @property
    def _codes_a_byte(self) -> int:
        return 2 if self.n_centroids == SCANNED else 1

    def _check_loaded(self) -> None:
        if self.n_lists != (0 if self.coarse_centroids_ is None else len(self.coarse_centroids_)):
            raise ValueError(f"n_lists is {self.n_lists}, and coarse_centroids_ has another number")
        self._split()
        super()._check_loaded()

    def _split(self) -> None:
        """The product codes as FAISS has them, and those without the length."""
        books, R, coarse = self.codebooks_, self.rotation_, self.coarse_centroids_
        self._whole = self._product = ProductQuantizer.from_arrays(books, R, coarse)
        if len(self.lengths_):
            books = books[: -self._codes_a_byte]
            self._product = ProductQuantizer.from_arrays(books, R[:, : books[:, 0].size], coarse)
