"""Additive quantization: a vector is a sum of centroids, one from each codebook. FAISS's start and beam search; refits
here.

Encoding and refitting alternate, as in k-means. Given the codes, all codebooks together solve a least squares problem,
whose normal equations are sums over the vectors. Babenko & Lempitsky 2014 (additive quantization); Liu, Shao & Lu 2015
(refitting a residual quantizer).

Codebooks of full width overfit: 8 x 256 centroids of 128 columns are fitted to 16,000 vectors. Three measures reduce
the error of unseen vectors:

- In each round a part of the vectors is replaced by vectors drawn between near ones (`Neighbourhoods`), and the sums of
  earlier rounds are kept with fading weight.
- Codebooks have only the principal axes that get bits.
- The refits between rounds shrink centroids towards zero, a quarter as far as empirical Bayes does (Efron & Morris
  1973), which does not model that codes are chosen to suit the centroids. The last refit does not shrink: shrunk sums
  are too short, most for long vectors, which then crowd among the neighbours of short ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, Self

import faiss
import numpy as np
from scipy.sparse import csr_array

from nearkin._check import check_queries
from nearkin._exact import nearest
from nearkin._types import ArrayLike
from nearkin.contracts import Callback
from nearkin.linalg.batch_free import rounded_product
from nearkin.linalg.orthonormal import nearest_orthogonal, principal_axes, reached
from nearkin.quantization.faiss_bridge import code_bits
from nearkin.statistics import CellSums

_TABLES = 4096  # total centroids up to which FAISS's search by inner products of all pairs is faster
_BUCKETED = range(8, 25)  # beam widths for which 3 of a codebook's 8 buckets suffice
_BUCKETS_PAY = 64  # centroids from which FAISS's search by buckets is quicker; it has .02 % more error
_CACHED = 512  # rows whose products with all centroids stay in the cache
_BLOCK = 64  # rows coded at a time without tables
_LARGEST = 1 << 26  # numbers of the tables that `steady_numbers` takes: a quarter of a gigabyte


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of additive codes, from SIFT, MNIST, GIST, sentences and word vectors."""

    beam: int = 2  # beam width of the start, of the rounds, and of a row's first encoding, which measures its error
    start_iterations: int = 10  # of the start's k-means
    # k-means++ starts where it leaves less than this share of the error: with 200 clusters .57, and 8 bytes keep .342
    clustered: float = 0.8  # instead of .324; with SIFT, GIST, MNIST, words and sentences 1.00 (2026-11-26)
    memory: float = 0.7  # weight of one round's sums in the next round
    share: float = 0.65  # share of |e|^2 added to distances; 1 is right on average, not for the nearest rows
    shrink: float = 0.25  # share of the empirical Bayes shrinkage, in the rounds
    margin: float = 3.0  # keep axes with variance > water level / 3; fewer lose recall, more take time
    sweeps: int = 2  # Gauss-Seidel sweeps of a refit over the codebooks, from those of the last one
    power: float = 0.25  # exponent of the differences' variance in an error's weight; .5 is too much
    least: float = 1e-3  # least variance along an axis: of differences, a share of the mean; explained, of the error's
    column: float = 0.2  # weight of the error's column
    near: int = 8  # neighbours of a row
    group: int = 8_192  # rows searched for neighbours; more would take longer than the codebooks


DEFAULTS = Defaults()


def start(X: np.ndarray, n_codebooks: int, n_centroids: int, seed: int) -> np.ndarray:
    """FAISS's codebooks (M, K, w) of vectors X (n, w): k-means of the residuals of the earlier codebooks, of n beam
    candidates.

    Random first centroids miss e^(-K / c) of c far clusters. If k-means++ (Arthur & Vassilvitskii 2007), which finds
    them, leaves clearly smaller errors, its codebook is the first. It chooses outlying vectors, so later codebooks,
    of residuals without clusters, do not start from it.
    """
    if n_codebooks > 1:
        apart = _trained(X, 1, n_centroids, seed, faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS)
        usual, left = (
            X - books[0][nearest(books[0], X, 1)[1][:, 0]] for books in (_trained(X, 1, n_centroids, seed), apart)
        )
        if np.square(left).sum(dtype=np.float64) < DEFAULTS.clustered * np.square(usual).sum(dtype=np.float64):
            return np.concatenate([apart, _trained(left, n_codebooks - 1, n_centroids, seed)])
    return _trained(X, n_codebooks, n_centroids, seed)


def _trained(X: np.ndarray, n_codebooks: int, n_centroids: int, seed: int, init: int = 0) -> np.ndarray:
    """FAISS's codebooks (M, K, w); `init` is its way to choose first centroids, 0 for at random."""
    quantizer = faiss.ResidualQuantizer(X.shape[1], n_codebooks, code_bits(n_centroids))
    quantizer.train_type = faiss.ResidualQuantizer.Train_default
    quantizer.max_beam_size = min(DEFAULTS.beam, n_centroids**n_codebooks)
    quantizer.cp.seed, quantizer.cp.niter = seed & 0x7FFFFFFF, DEFAULTS.start_iterations
    quantizer.cp.init_method = init
    quantizer.cp.min_points_per_centroid = 1
    quantizer.cp.max_points_per_centroid = -(-len(X) // n_centroids)
    quantizer.train(np.ascontiguousarray(X))
    return faiss.vector_to_array(quantizer.codebooks).reshape(n_codebooks, n_centroids, X.shape[1]).copy()


def encode(X: np.ndarray, codebooks: np.ndarray, beam: int) -> np.ndarray:
    """Codes (n, M) int32 of vectors X (n, w) by FAISS's beam search, which keeps the `beam` best partial sums."""
    M, K, width = codebooks.shape
    quantizer = faiss.ResidualQuantizer(width, M, code_bits(K))
    fill(quantizer, codebooks[None], beam)
    return _numbers(quantizer, np.ascontiguousarray(X), _CACHED)


def decode(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """The sums (n, w) of the centroids that codes (n, M) name."""
    total = codebooks[0][codes[:, 0]]
    for centroids, own in zip(codebooks[1:], codes.T[1:], strict=True):
        total = total + centroids[own]
    return total


def parts_of(quantizer: faiss.AdditiveQuantizer) -> list[faiss.AdditiveQuantizer]:
    """The quantizers of the parts of a vector, or the one of the whole vector; `quantizer` owns them."""
    if not isinstance(quantizer, faiss.ProductAdditiveQuantizer):
        return [quantizer]
    return [faiss.downcast_AdditiveQuantizer(quantizer.subquantizer(m)) for m in range(quantizer.nsplits)]


def fill(quantizer: faiss.AdditiveQuantizer, codebooks: np.ndarray, beam: int, *, encodes: bool = True) -> None:
    """Give FAISS's quantizer codebooks (splits, M, K, w) and a beam, never wider than there are codes. Unless it
    `encodes`, it gets no tables of products, which take longer than to decode some thousand vectors."""
    _, M, K, _ = codebooks.shape
    for part, books in zip(parts_of(quantizer), codebooks, strict=True):
        faiss.copy_array_to_vector(np.ascontiguousarray(books, np.float32).ravel(), part.codebooks)
        part.max_beam_size, part.is_trained = min(beam, K**M), True
        if not isinstance(part, faiss.ResidualQuantizer):
            continue
        part.train_type |= faiss.ResidualQuantizer.Skip_codebook_tables  # else FAISS makes them whenever it reads one
        if beam in _BUCKETED and K >= _BUCKETS_PAY:
            part.approx_topk_mode = faiss.APPROX_TOPK_BUCKETS_B8_D3
        if encodes and M * K <= _TABLES:
            part.use_beam_LUT = 1
            part.compute_codebook_tables()
    if isinstance(quantizer, faiss.ProductAdditiveQuantizer):
        faiss.copy_array_to_vector(np.ascontiguousarray(codebooks, np.float32).ravel(), quantizer.codebooks)
        quantizer.is_trained = True


def beam_search(
    quantizer: faiss.ResidualQuantizer, X: np.ndarray, products: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n, beam, M) int32 of the centroids whose sums are nearest to vectors X (n, w) float32, nearest first,
    and the squared errors (n, beam); `products` (n, M K) float32 are the vectors' with all centroids."""
    beam, norms = quantizer.max_beam_size, np.einsum("nw,nw->n", X, X)
    numbers, errors = np.empty((len(X), beam, quantizer.M), np.int32), np.empty((len(X), beam), np.float32)
    out = map(faiss.swig_ptr, (numbers, errors))
    quantizer.refine_beam_LUT(len(X), *map(faiss.swig_ptr, (norms, products)), beam, *out)
    return numbers, errors


def steady_numbers(
    Z: np.ndarray, codebooks: np.ndarray, beam: int, turns: np.ndarray | None = None, share: float = 0.0
) -> np.ndarray:
    """Numbers of centroids (n, splits M) int32 for vectors Z (n, splits w) under codebooks (splits, M, K, w). FAISS's
    own products are rounded by a row's place in its batch, and equal rows got different codes where centroids tie: so
    they are formed here. Beyond `_LARGEST` numbers of tables they are FAISS's, in blocks of one size.

    With `turns` (splits, w, w), which vectors were multiplied by, the last column of a part is its error's, by `share`:
    a first encoding, by a narrow beam, measures it.
    """
    splits, M, _, width = codebooks.shape
    coders, plain = _coders(codebooks, beam), codebooks.copy()
    plain[..., -1] = 0
    first_coders = [] if turns is None else _coders(plain, min(beam, DEFAULTS.beam))
    numbers = np.empty((len(Z), splits, M), np.int32)
    for part, books in enumerate(codebooks):
        flat = books.reshape(-1, width).T.astype(np.float64)
        for first in range(0, len(Z), _CACHED):
            some = slice(first, first + _CACHED)
            rows = Z[some, part * width : (part + 1) * width].astype(np.float32)
            products = rounded_product(rows, flat)
            if turns is not None:
                turn, found = turns[part], _nearest(first_coders[part], rows, products)
                errors = lengths((rows - decode(found, books))[:, :-1], turn[:-1, :-1])
                rows[:, -1] = turn[-1, -1] * np.sqrt(share) * errors
                products += rows[:, -1:] * books[..., -1].ravel()
            numbers[some, part] = _nearest(coders[part], rows, products)
    return numbers.reshape(len(Z), -1)


def _nearest(quantizer: faiss.ResidualQuantizer, X: np.ndarray, products: np.ndarray) -> np.ndarray:
    """The first of `beam_search` (n, M)."""
    if quantizer.use_beam_LUT:
        return beam_search(quantizer, X, products)[0][:, 0]
    padded = np.pad(X, ((0, -len(X) % _BLOCK), (0, 0)))
    return _numbers(quantizer, padded, _BLOCK)[: len(X)]


def _coders(codebooks: np.ndarray, beam: int) -> list[faiss.ResidualQuantizer]:
    return _made_coders(codebooks.shape, codebooks.astype(np.float32, copy=False).tobytes(), beam)


@lru_cache(maxsize=2)  # one vector at a time would wait for tables of products each time
def _made_coders(shape: tuple[int, ...], codebooks: bytes, beam: int) -> list[faiss.ResidualQuantizer]:
    """FAISS's quantizer of each part, with float32 codebooks of this shape (splits, M, K, w)."""
    coders, (_, M, K, width) = list[faiss.ResidualQuantizer](), shape
    for books in np.frombuffer(codebooks, np.float32).reshape(shape):
        coders.append(faiss.ResidualQuantizer(width, M, code_bits(K)))
        fill(coders[-1], books[None], beam, encodes=False)
        if K * K * M * (M - 1) // 2 <= _LARGEST:
            coders[-1].use_beam_LUT = 1
            coders[-1].compute_codebook_tables()
    return coders


def _numbers(quantizer: faiss.AdditiveQuantizer, X: np.ndarray, n_rows: int) -> np.ndarray:
    """Numbers of centroids (n, codebooks) int32 of rows X (n, d), `n_rows` at a time."""
    codes = np.empty((len(X), quantizer.code_size), np.uint8)
    for first in range(0, len(X), n_rows):
        codes[first : first + n_rows] = quantizer.compute_codes(X[first : first + n_rows])
    return faiss.unpack_bitstrings(codes, quantizer.M, int(faiss.vector_to_array(quantizer.nbits)[0]))


@dataclass(frozen=True)
class CodeSums:
    """`sums` (M, K, w) and `counts` (M, K) of the vectors that chose each centroid; `pairs` (M K, M K) float32: how
    many vectors chose each pair of centroids, B^T B for codes as indicators B; `n`: vectors."""

    sums: np.ndarray
    counts: np.ndarray
    pairs: np.ndarray
    n: float

    @classmethod
    def of(cls, X: np.ndarray, codes: np.ndarray, n_centroids: int) -> Self:
        """Sums of vectors X (n, w) and their codes (n, M)."""
        cells = CellSums(codes.shape[1], n_centroids, X.shape[1]).update(X, codes)
        return cls(cells.sums, cells.counts, _pairs(codes, n_centroids), float(len(X)))

    def after(self, older: Self, weight: float) -> Self:
        """These sums plus `weight` times `older`."""
        pairs = np.float32(weight) * older.pairs + self.pairs
        sums, counts = (weight * old + new for old, new in ((older.sums, self.sums), (older.counts, self.counts)))
        return type(self)(sums, counts, pairs, weight * older.n + self.n)

    def refit(self, codebooks: np.ndarray, error: np.ndarray, shrink: float = 1.0) -> np.ndarray:
        """Codebooks (M, K, w) for these codes, of a smaller ||X - sum_m C_m[codes_m]||^2, by sweeps of Gauss-Seidel
        over the codebooks: B^T B C = B^T X, of which a codebook's own part is diagonal.

        A centroid that n_k vectors chose is then n_k / (n_k + `shrink` s_j / v_j) times that along axis j, s_j the
        variance of the error (`error` (w,) is its mean square), v_j that of the codebook's centroids less what s_j
        explains of it: with 1 the posterior mean of a centroid from N(0, v_j) along principal axes. With 0 the error
        cannot rise. A centroid that no vector chose stays.
        """
        (M, K, _), n = codebooks.shape, self.n
        counts, flat = self.counts[..., None], codebooks.reshape(M * K, -1).astype(np.float32)
        noise = error * n / max(n - M * K, n / 4)
        for _ in range(DEFAULTS.sweeps if M > 1 else 1):
            for m in range(M):
                own = slice(m * K, (m + 1) * K)
                others = self.pairs[own] @ flat - counts[m] * flat[own]
                sums, chosen = self.sums[m] - others, counts[m] > 0
                mean = sums / np.where(chosen, counts[m], 1)
                weight = np.float64(0)
                if shrink:
                    spread = (counts[m] / n * np.square(mean)).sum(axis=0) - K / n * noise
                    least = np.maximum(DEFAULTS.least * noise, np.finfo(float).tiny)
                    weight = shrink * noise / np.maximum(spread, least)
                flat[own] = np.where(chosen, sums / np.where(chosen, counts[m] + weight, 1), flat[own])
        return flat.reshape(codebooks.shape)


@dataclass(frozen=True)
class Neighbourhoods:
    """Vectors X (n, d) float32 and the numbers (n, k) of vectors near each, k = 8, or all others of fewer vectors."""

    X: np.ndarray = field(repr=False)
    near: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, X: np.ndarray, n_axes: int, axes: np.ndarray, generator: np.random.Generator) -> Self:
        """Near by the first `n_axes` columns of X `axes`; of many vectors in groups drawn at random."""
        Z, order = X @ axes[:, :n_axes], generator.permutation(len(X))
        near = np.empty((len(X), min(DEFAULTS.near, len(X) - 1)), np.int64)
        for group in np.array_split(order, -(-len(X) // DEFAULTS.group)):
            found = nearest(Z[group], Z[group], near.shape[1] + 1)[1]
            near[group] = group[found[:, 1:]]  # the first is the row itself, or one equal to it
        return cls(X, near)

    def drawn(self, generator: np.random.Generator) -> np.ndarray:
        """A new vector (n, d) for each: rotated by a random angle, about its neighbourhood's mean, towards a neighbour.

        m + cos(t) (x - m) + sin(t) (x' - m), t uniform up to a right angle: of independent x and x' of one
        covariance it keeps that covariance, where a mean of the two would have less: it loses .8 points of SIFT.
        """
        n, k = self.near.shape
        mean = self.X / np.float32(k + 1)
        for j in range(k):
            mean += self.X[self.near[:, j]] / np.float32(k + 1)
        angle = generator.uniform(0, np.pi / 2, (n, 1)).astype(np.float32)
        other = self.X[self.near[np.arange(n), generator.integers(k, size=n)]]
        return mean + np.cos(angle) * (self.X - mean) + np.sin(angle) * (other - mean)

    def differences(self) -> np.ndarray:
        """Second moment (d, d) of the differences between vectors and their nearest."""
        between = self.X - self.X[self.near[:, 0]]
        return (between.T @ between).astype(np.float64) / len(between)


@dataclass
class Part:
    """One part of a vector. `turn` (w, w) multiplies vectors before encoding; the r axes that get bits come first.

    `codebooks` (M, K, r) are along those. With `column`, its weight, they have after the others the column of the
    error's norm, less `middle`.
    """

    turn: np.ndarray
    codebooks: np.ndarray
    spread: float = 0.0
    column: float = 0.0
    middle: float = 0.0
    sums: CodeSums | None = None

    @classmethod
    def start(cls, Z: np.ndarray, moment: np.ndarray | None, products: bool, shape: tuple[int, int], seed: int) -> Self:
        """The start for centred vectors Z (n, w) and (M, K) centroids. `moment` (w, w) weights the errors: with
        `products` that of the queries of a search by inner product, else of the differences between near vectors; None
        for none."""
        spread, (M, K) = 0.0, shape
        if products and moment is not None:
            moments, vectors = np.linalg.eigh(moment)
            weighted = ((vectors * _weights(moments)) @ vectors.T).astype(np.float32)
            axes, variances = principal_axes(Z @ weighted)
            turn = weighted @ axes
        else:
            turn, _ = principal_axes(Z)
            if moment is not None:
                own = np.einsum("wa,wv,va->a", turn, moment, turn)
                spread, turn = float(own.mean()), turn * _weights(own).astype(np.float32)
            variances = np.square(Z @ turn).mean(axis=0, dtype=np.float64)
            order = np.argsort(-variances, kind="stable")
            turn, variances = turn[:, order], variances[order]
        width, turn = reached(variances, M * (K.bit_length() - 1), DEFAULTS.margin), np.ascontiguousarray(turn)
        return cls(turn, start(Z @ turn[:, :width], M, K, seed), spread)

    @property
    def reach(self) -> int:
        """r, how many axes the codebooks have."""
        return self.codebooks.shape[2] - bool(self.column)

    def code(self, Z: np.ndarray, beam: int, twice: bool) -> tuple[np.ndarray, np.ndarray]:
        """Vectors (n, r), or (n, r + 1) with the column, to fit codebooks to, and codes (n, M)."""
        X = Z @ self.turn[:, : self.reach]
        plain = np.ascontiguousarray(self.codebooks[:, :, : self.reach])
        codes = encode(X, plain, min(beam, DEFAULTS.beam) if self.column else beam)
        if not self.column:
            return X, codes
        error = self.column * np.sqrt(DEFAULTS.share) * self.errors(Z, codes) - self.middle
        X = np.hstack([X, error[:, None].astype(np.float32)])
        return X, encode(X, self.codebooks, beam) if twice else codes

    def add_column(self, Z: np.ndarray) -> None:
        """Fill the error's column, zero so far, from the residuals of vectors Z (n, w)."""
        error = self.errors(Z, self.code(Z, DEFAULTS.beam, False)[1])
        size = float(np.sqrt(np.square(error).mean(dtype=np.float64)))
        # if all rows are equal or encoded exactly, any weight works
        shorter = size / np.sqrt(self.spread) if size and self.spread else 1.0
        self.column = float(DEFAULTS.column * np.sqrt(DEFAULTS.share) * shorter)
        self.middle = float(self.column * np.sqrt(DEFAULTS.share) * error.mean(dtype=np.float64))
        self.codebooks = np.pad(self.codebooks, ((0, 0), (0, 0), (0, 1)))

    def refit(self, X: np.ndarray, codes: np.ndarray, memory: float, shrink: float) -> None:
        """Refit the codebooks to vectors and codes as `code` gives them; sums of rounds before count `memory` times."""
        sums = CodeSums.of(X, codes, self.codebooks.shape[1])
        self.sums = sums if self.sums is None or not memory else sums.after(self.sums, memory)
        error = np.square(X - decode(codes, self.codebooks)).mean(axis=0, dtype=np.float64)
        self.codebooks = self.sums.refit(self.codebooks, error, shrink)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """Vectors (n, w) of codes."""
        sums = decode(codes, np.ascontiguousarray(self.codebooks[:, :, : self.reach]))
        return sums @ np.linalg.inv(self.turn)[: self.reach]

    def errors(self, Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Norms (n,) of what codes leave of vectors Z (n, w)."""
        return np.linalg.norm(Z - self.decoded(codes), axis=1)

    def settled(self) -> tuple[np.ndarray, np.ndarray]:
        """Codebooks (M, K, w or w + 1) in the space that is searched, and the matrix (as wide) that leads to codes."""
        metric, plain = self.turn, self.codebooks[:, :, : self.reach].astype(np.float64)
        codebooks = (plain @ np.linalg.inv(metric.astype(np.float64))[: self.reach]).astype(np.float32)
        if self.column:
            metric = np.pad(metric, ((0, 1), (0, 1)))
            metric[-1, -1] = self.column
            sizes = self.codebooks[:, :, self.reach :] / np.float32(self.column)
            sizes[0] += np.float32(self.middle / self.column)
            codebooks = np.concatenate([codebooks, sizes], axis=2)
        return codebooks, metric


class Settings(Protocol):
    """The settings of a fit: those of `ResidualQuantizer` and `ProductResidualQuantizer`."""

    n_splits: int
    n_codebooks: int
    n_centroids: int
    max_iter: int
    beam_size: int
    smoothing: float
    metric: str


class AdditiveFit(NamedTuple):
    """Rotation (d, d'), codebooks (n_splits, M, K, w) in the space that is searched, the matrices `metric` (n_splits,
    w, w) that lead to the space in which codes are chosen, and the share of |e|^2 that the column of errors adds to
    distances, 0 without it."""

    rotation: np.ndarray
    codebooks: np.ndarray
    metric: np.ndarray
    share: float


def query_moment(metric: str, X: np.ndarray, queries: ArrayLike | None) -> np.ndarray | None:
    """The second moment (d, d) float64 of the queries, or of vectors X (n, d); None where distances rank."""
    if metric != "ip":
        if queries is not None:
            raise ValueError(f"queries are for metric='ip'; metric is {metric!r}: leave them out")
        return None
    Q = X if queries is None else check_queries(queries, X.shape[1])
    return (Q.T @ Q).astype(np.float64) / len(Q)


def learn(
    X: np.ndarray,
    rotation: np.ndarray,
    turns: bool,
    settings: Settings,
    moment: np.ndarray | None,
    seed: int,
    callback: Callback,
) -> AdditiveFit:
    """Fit centred vectors X (n, d) float32 with the quantizer's quantizer. The last round encodes as later vectors are
    encoded: wider beams there lower the recall. Errors are weighted by the differences of near vectors, and a column
    holds their size; `moment` (d, d), the second moment of the queries of a search by inner product, gives the
    weights instead, without a column.

    With `turns` the rotation is fitted to the codes (Procrustes) between refits. `callback(round, record)` is called
    with the distortion of each round before its refit.
    """
    generator = np.random.default_rng(seed)
    near = None
    if settings.max_iter > 1:
        axes, variances = principal_axes(X)
        bits = settings.n_splits * settings.n_codebooks * (settings.n_centroids.bit_length() - 1)
        near = Neighbourhoods.of(X, reached(variances, bits), axes, generator)
    parts = _parts(X, near, rotation, settings, moment, seed)
    for index in range(settings.max_iter):
        rows = X if index == 0 else _augmented(X, near, settings.smoothing, generator)
        error, codes = _round(parts, rows @ rotation, settings, index)
        callback(index + 1, {"objective": error, "distortion": error, "total": settings.max_iter})
        if turns and index < settings.max_iter - 1:
            decoded = np.hstack([part.decoded(own) for part, own in zip(parts, codes, strict=True)])
            cross = rows.T @ decoded / np.float32(len(rows))
            rotation = nearest_orthogonal(cross.astype(np.float64)).astype(np.float32)
    codebooks, metrics = (np.stack(found) for found in zip(*(part.settled() for part in parts), strict=True))
    return AdditiveFit(rotation, codebooks, metrics, DEFAULTS.share if parts[0].column else 0.0)


def _round(parts: list[Part], Z: np.ndarray, settings: Settings, index: int) -> tuple[float, list[np.ndarray]]:
    """Code rotated rows Z (n, d') and refit the parts: the mean squared error before, and the codes (n, M) of each. The
    last round codes rows as later rows are coded, and does not shrink."""
    codes, error, last = [], 0.0, index == settings.max_iter - 1
    adds = index == 1 and settings.metric == "l2"  # errors need the codes of round 0
    for part, own in zip(parts, _split(Z, settings.n_splits), strict=True):
        if adds:
            part.add_column(own)
        targets, chosen = part.code(own, settings.beam_size if last else DEFAULTS.beam, last)
        error += float(np.square(part.errors(own, chosen), dtype=np.float64).mean())
        part.refit(targets, chosen, DEFAULTS.memory if index > 1 else 0.0, DEFAULTS.shrink if index and not last else 0)
        codes.append(chosen)
    return error, codes


def _parts(
    X: np.ndarray,
    near: Neighbourhoods | None,
    rotation: np.ndarray,
    settings: Settings,
    moment: np.ndarray | None,
    seed: int,
) -> list[Part]:
    products, shape = moment is not None, (settings.n_codebooks, settings.n_centroids)
    if moment is None and near is not None:
        moment = near.differences()
    moment = None if moment is None else rotation.T @ moment @ rotation
    own = np.split(np.arange(rotation.shape[1]), settings.n_splits)
    return [
        Part.start(Z, None if moment is None else moment[np.ix_(own[m], own[m])], products, shape, seed + m)
        for m, Z in enumerate(_split(X @ rotation, settings.n_splits))
    ]


def _augmented(
    X: np.ndarray, near: Neighbourhoods | None, smoothing: float, generator: np.random.Generator
) -> np.ndarray:
    """Rows X (n, d), of which a share `smoothing` is replaced by rows drawn between near ones."""
    if near is None or not smoothing:
        return X
    fresh, taken = near.drawn(generator), generator.random((len(X), 1)) < smoothing
    return np.where(taken, fresh, X)


def _split(Z: np.ndarray, n_splits: int) -> Iterator[np.ndarray]:
    """Columns of each part of rotated rows Z (n, d')."""
    return map(np.ascontiguousarray, np.split(Z, n_splits, axis=1))


def _weights(spread: np.ndarray) -> np.ndarray:
    """Weights of errors along axes of this spread (w,)."""
    mean = float(spread.mean())
    return np.maximum(spread / mean, DEFAULTS.least) ** DEFAULTS.power if mean > 0 else np.ones(len(spread))


def lengths(E: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Lengths (n,) float32 of errors E (n, w) made after vectors were multiplied by `turn` (w, w), orthogonal
    columns."""
    return np.sqrt(np.square(E / np.sqrt(np.square(turn).sum(axis=0))).sum(axis=1))


def _pairs(codes: np.ndarray, K: int) -> np.ndarray:
    """B^T B (M K, M K) float32: how many rows chose each pair of centroids."""
    n, M = codes.shape
    places = (codes + K * np.arange(M)).ravel()
    B = csr_array((np.ones(n * M, np.float32), places, M * np.arange(n + 1)), shape=(n, M * K))
    return (B.T @ B).toarray()  # whole numbers, so exact
