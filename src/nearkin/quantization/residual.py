"""Residual and product residual quantization: codes that add up centroids, over all columns or over parts of them."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import faiss
import numpy as np
from scipy.linalg import block_diag
from sklearn.utils.validation import check_is_fitted

from nearkin import _check
from nearkin._check import draw_seed
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES
from nearkin._threads import serial_products
from nearkin._types import ArrayLike, Fields, Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.batch_free import rounded_product
from nearkin.quantization import faiss_bridge
from nearkin.quantization.additive import AdditiveFit, fill, learn, parts_of, query_moment, steady_numbers
from nearkin.quantization.codebooks import CoarseQuantizer, check_parts, make_room
from nearkin.quantization.order import ordered
from nearkin.quantization.product import ProductQuantizer
from nearkin.statistics import Shard, far_rows, shared_generator, whole_rows

_MOST_POINTS = 256  # rows that are trained on, at most, for each centroid


@dataclass(eq=False, repr=False)
class AbstractAdditiveQuantizer(ReconstructingTransformer):
    """Sums of centroids in `n_splits` parts of rotated vectors; the two classes below have its parameters."""

    KIND: ClassVar[str]
    CODER: ClassVar[str]  # FAISS's name of the quantizer
    coding_codebooks_ = coding_metric_ = coarse_centroids_ = None
    share_ = 0.0
    normalized_ = None  # not known for one that was not fitted here

    n_splits: int = 2
    n_codebooks: int = 4
    n_centroids: int = 256
    rotation: str | None = "procrustes"
    _: KW_ONLY
    beam_size: int = 5
    max_iter: int = 14
    smoothing: float = 0.75
    metric: str = "l2"
    known: bool = False
    n_lists: int = 0
    random_state: Seed = None

    # ---- learning --------------------------------------------------------------------------------------------------

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback | None = None
    ) -> Self:
        """Train on vectors X (n, d), n >= max(n_centroids, n_lists); `callback` is called after each round.

        `queries` (q, d), for `metric="ip"`, are a sample of later queries; without them the vectors are used.

        ValueError or TypeError, before any work, for parameters or data that cannot be used. Among several processes
        each does all the work on the vectors of all.
        """
        self._check_parameters()
        parameter = max(("n_centroids", "n_lists"), key=lambda name: getattr(self, name))
        X = _check.check_magnitude(whole_rows(self, X, min_rows=getattr(self, parameter), parameter=parameter))
        _check.check_not_vanishing(X)
        check_parts(self.n_splits, "n_splits", X.shape[1])
        self.normalized_: bool | None = _check.has_unit_rows(X)
        outside, _ = far_rows(X, Shard.of(X), getattr(self, parameter), np.arange(len(X)))
        X, far = X[~outside] if outside.any() else X, X[outside]
        moment = query_moment(self.metric, X, queries)
        generator = shared_generator(self.random_state)
        limit = _MOST_POINTS * max(self.n_centroids, self.n_lists)
        if len(X) > limit:
            X = X[np.sort(generator.choice(len(X), limit, replace=False))]
        X, apart = rows, far = X.astype(np.float32), far.astype(np.float32)
        self.coarse_centroids_ = None
        if self.n_lists:
            coarse = CoarseQuantizer.train(X, self.n_lists, draw_seed(generator))
            self.coarse_centroids_: np.ndarray | None
            rows, apart = coarse.residuals(X), coarse.residuals(far)
            self.coarse_centroids_ = coarse.centroids
        mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.history_: list[Record] = []

        def record(_: int, entry: Fields) -> None:
            self.history_.append(dict(entry))
            if callback is not None:
                callback(len(self.history_), entry)

        products = X.shape[0] * X.shape[1] ** 2
        with serial_products(products):
            learned = self._learn(rows - mean, moment, draw_seed(generator), record)
        self.n_iter_: int = len(self.history_)
        self.coding_metric_: np.ndarray | None
        self.share_: float
        rotation, codebooks, self.coding_metric_, self.share_ = learned
        if len(apart):
            first = codebooks[:, 0, :, : codebooks.shape[3] - bool(self.share_)]
            Z, outer = ((part - mean) @ rotation for part in (rows, apart))
            first[:] = make_room(first, Z, outer, draw_seed(generator))
        if self.share_:  # a column of zeros after each part: the error's, which a query has as 0
            parts = np.split(rotation, len(codebooks), axis=1)
            rotation = np.hstack([np.pad(part, ((0, 0), (0, 1))) for part in parts])
        self.rotation_ = rotation
        codebooks[:, 0] += (mean @ self.rotation_).reshape(len(codebooks), 1, -1)  # the first codebook carries the mean
        self.codebooks_, self.coding_codebooks_ = codebooks, None
        if self.known:
            with serial_products(products):
                self._learn_order(X, generator)
        return self

    def _learn(self, X: np.ndarray, moment: np.ndarray | None, seed: int, callback: Callback) -> AdditiveFit:
        """The fit to centred rows X (n, d) float32; `moment` (d, d) is that of `query_moment`."""
        if self.n_splits == 1:  # a rotation of all columns changes no sum
            return learn(X, np.eye(X.shape[1], dtype=np.float32), False, self, moment, seed, callback)
        start, rounds = (None, 1) if self.rotation is None else ("procrustes", 10)
        first = ProductQuantizer(self.n_splits, self.n_centroids, start, random_state=seed, max_iter=rounds).fit(X)
        return learn(X, first.rotation_, self.rotation is not None, self, moment, seed, callback)

    def _learn_order(self, X: np.ndarray, generator: np.random.Generator) -> None:
        """Search rows X (n, d) by codebooks trained for their order; the first codebooks still choose the codes."""
        (numbers, lists), centres = self._chosen(X), None
        if self.coarse_centroids_ is not None and lists is not None:
            centres = (self.coarse_centroids_ @ self.rotation_)[lists]
        self.coding_codebooks_: np.ndarray | None = self.codebooks_
        self.codebooks_: np.ndarray = ordered(
            self.codebooks_, numbers, X @ self.rotation_, centres, self.metric == "ip", generator
        )

    def _check_parameters(self) -> None:
        K = _check.check_integer(self.n_centroids, "n_centroids", low=2, high=65536)
        if K & (K - 1):
            raise ValueError(f"n_centroids is {K}; FAISS's codes want a power of two, for example 16 or 256")
        _check.check_integer(self.n_codebooks, "n_codebooks", low=1)
        _check.check_choice(self.rotation, "rotation", (None, "procrustes"))
        _check.check_integer(self.n_lists, "n_lists", low=0)
        _check.check_integer(self.beam_size, "beam_size", low=1)
        _check.check_integer(self.max_iter, "max_iter", low=0)
        _check.check_real(self.smoothing, "smoothing", low=0, high=1)
        _check.check_choice(self.metric, "metric", METRIC_TYPES)
        _check.check_choice(self.known, "known", (False, True))

    # ---- coding ----------------------------------------------------------------------------------------------------

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) uint8 of vectors X (n, d) as FAISS packs them, with `n_lists` after the list's number."""
        check_is_fitted(self)
        X = _check.check_magnitude(_check.validate_vectors(self, X))
        numbers, lists = self._chosen(X)
        codes = faiss.pack_bitstrings(numbers, faiss_bridge.code_bits(self.n_centroids))
        return codes if lists is None else np.hstack([CoarseQuantizer.pack(lists, self.n_lists), codes])

    def _chosen(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Numbers of centroids (n, splits M) and of lists (n,), None without lists, for rows X (n, d)."""
        turned = self.rotation_.astype(np.float64)
        into = turned if self.coding_metric_ is None else turned @ np.asarray(block_diag(*self.coding_metric_))
        Z = rounded_product(X, into)
        if self.coarse_centroids_ is None:
            return self._numbers(Z), None
        rotated = Z if self.coding_metric_ is None else rounded_product(X, turned)
        lists = CoarseQuantizer(self.coarse_centroids_ @ self.rotation_).assign(rotated)
        return self._numbers(Z - (self.coarse_centroids_ @ into).astype(np.float32)[lists]), lists

    def _numbers(self, Z: np.ndarray) -> np.ndarray:
        """Numbers of centroids (n, splits M) for rows Z (n, d') in the space in which codes are chosen, about the
        middle of the first codebook, which carries the mean: FAISS expands squares, which lose digits far from 0."""
        metric = self.coding_metric_
        codebooks = self.codebooks_ if self.coding_codebooks_ is None else self.coding_codebooks_
        codebooks = codebooks.copy() if metric is None else codebooks @ metric[:, None]
        middle = np.median(codebooks[:, 0], axis=1)  # some centroids may be those of far vectors
        if self.share_:
            middle[:, -1] = 0  # the errors' column, which rows do not have yet
        codebooks[:, 0] -= middle[:, None]
        return steady_numbers(
            Z - middle.ravel(), codebooks, self.beam_size, metric if self.share_ else None, self.share_
        )

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Vectors (n, d) float32 of codes, as `encode` gives them; ValueError or TypeError for others."""
        check_is_fitted(self)
        codes = _check.check_codes(codes, self._inner().sa_code_size())
        if self.coarse_centroids_ is not None:  # FAISS would read behind its lists
            n_lists = len(self.coarse_centroids_)
            CoarseQuantizer.unpack(codes[:, : CoarseQuantizer.code_width(n_lists)], n_lists)
        return self._decoded(codes) @ self.rotation_.T

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        """The rotated rows (n, d') of codes."""
        return self._inner().sa_decode(np.ascontiguousarray(codes))

    # ---- FAISS and folders -----------------------------------------------------------------------------------------

    @property
    def ranks_by(self) -> tuple[str, ...]:
        """The metric by whose scores codebooks are trained to order vectors (`known`)."""
        return (self.metric,) if self.known else ()

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty FAISS index with these codes; `metric` is "l2" or "ip".

        By "l2" FAISS decodes every code for every query: exact and slow. By "ip" it adds entries of tables, as for
        product codes.
        """
        check_is_fitted(self)
        _check.check_choice(metric, "metric", METRIC_TYPES)
        inner, R = self._inner(metric, encodes=True), self.rotation_
        return inner if np.array_equal(R, np.eye(len(R))) else faiss_bridge.behind_rotation(R, inner)

    @classmethod
    def from_faiss(cls, index: faiss.Index) -> Self:
        """The quantizer inside a trained FAISS index of such codes, inverted or not, rotated only if there are splits.

        TypeError for another index, ValueError for one that keeps norms in its codes. `beam_size` is the index's.
        """
        R, inner = faiss_bridge.front_rotation(index)  # `index` stays: it owns what `inner` reads
        if not isinstance(inner, cls._kind(False) | cls._kind(True)):
            raise TypeError(f"index holds a faiss.{type(inner).__name__}; it must be an Index{cls.CODER}")
        coder = faiss.downcast_AdditiveQuantizer(inner.aq)
        if coder.norm_bits:
            raise ValueError(
                "index keeps a norm in each code; nearkin keeps norms in its index: Index.build(norms=True)"
            )
        parts = parts_of(coder)
        bits = {int(b) for part in parts for b in faiss.vector_to_array(part.nbits)}
        if len(bits) != 1 or (R is not None and not cls.CODER.startswith("Product")):
            raise ValueError(
                f"index has a rotation or codebooks of {sorted(bits)} bits; it must have none, and one size"
            )
        M, K, made = parts[0].M, 2 ** bits.pop(), cls()
        made.n_codebooks, made.n_centroids, made.beam_size = M, K, parts[0].max_beam_size
        if cls.CODER.startswith("Product"):
            made.n_splits, made.rotation = len(parts), None if R is None else "procrustes"
        made.codebooks_ = np.stack([faiss.vector_to_array(part.codebooks).reshape(M, K, -1) for part in parts])
        made.rotation_ = np.eye(inner.d, dtype=np.float32) if R is None else R
        if (lists := faiss_bridge.lists_of(inner, R)) is not None:
            made.coarse_centroids_, made.n_lists = lists, len(lists)
        made.n_features_in_, made.history_, made.n_iter_ = len(made.rotation_), [], 0
        return made

    @classmethod
    def _kind(cls, inverted: bool) -> type[Any]:
        """FAISS's class of index."""
        return getattr(faiss, f"Index{'IVF' if inverted else ''}{cls.CODER}")

    def _shape(self, splits: int, M: int) -> tuple[int, ...]:
        """The sizes that FAISS's constructors take between the width and the bits."""
        return (splits, M) if self.CODER.startswith("Product") else (M,)

    def _inner(self, metric: str = "l2", *, encodes: bool = False) -> faiss.Index:
        """The FAISS index of the rotated rows; `encodes` is for one that will add vectors."""
        splits, M, K, width = self.codebooks_.shape
        by = faiss.AdditiveQuantizer.ST_LUT_nonorm if metric == "ip" else faiss.AdditiveQuantizer.ST_decompress
        shape = (*self._shape(splits, M), faiss_bridge.code_bits(K), METRIC_TYPES[metric], by)
        if self.coarse_centroids_ is None:
            index = self._kind(False)(splits * width, *shape)
        else:
            centroids = self.coarse_centroids_ @ self.rotation_
            index = faiss_bridge.with_lists(self._kind(True), centroids, metric, *shape)
        fill(faiss.downcast_AdditiveQuantizer(index.aq), self.codebooks_, self.beam_size, encodes=encodes)
        index.is_trained = True
        return index


@dataclass(eq=False, repr=False)
class ProductResidualQuantizer(AbstractAdditiveQuantizer):
    """Cut rotated vectors into `n_splits` parts and code each by a sum of `n_codebooks` centroids.

    Recall, training time and encoding time lie between those of product (`n_codebooks=1`) and residual codes
    (`n_splits=1`). The rotation starts as that of a product quantizer of `n_splits` subspaces, and is then turned to
    the codes (Procrustes) between refits of the codebooks.

    Parameters
    ----------
    n_splits, n_codebooks: parts, and codebooks M of each. With 256 centroids a code has n_splits * n_codebooks bytes.
    rotation: "procrustes", or None for the given axes.
    n_centroids, beam_size, max_iter, smoothing, metric, known, n_lists, random_state: as those of
        `ResidualQuantizer`.

    Attributes
    ----------
    codebooks_: (n_splits, M, K, d'/n_splits) float32.
    coding_codebooks_: the codebooks that choose codes if they differ, or None.
    rotation_: (d, d') float32; d' > d only where n_splits does not divide d, or with the column of errors.
    coding_metric_, share_: (n_splits, w, w) and a float, those of `AdditiveFit`.
    coarse_centroids_: (n_lists, d) float32, or None.
    history_, normalized_, n_iter_, n_features_in_: as in `ProductQuantizer`.

    References
    ----------
    Chen, Guan & Wang (2010), as in `ResidualQuantizer`; Ge et al. (2013), as in `ProductQuantizer`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> prq = nk.quantization.ProductResidualQuantizer(2, 2, n_centroids=16, random_state=0).fit(X)
    >>> prq.encode(X).shape
    (500, 2)
    """

    KIND: ClassVar[str] = "product residual quantizer"
    CODER: ClassVar[str] = "ProductResidualQuantizer"


@dataclass(eq=False, repr=False)
class ResidualQuantizer(AbstractAdditiveQuantizer):
    """Code a vector by a sum of `n_codebooks` centroids of full width (Chen, Guan & Wang 2010): one split.

    At equal bytes its recall is higher than a product quantizer's, above all at few bytes. Encoding takes tens of times
    longer, and so does search by plain FAISS. FAISS trains the start and searches the codes by beams; all
    codebooks are then refitted together, a few rounds.

    Parameters
    ----------
    n_codebooks: M. With 256 centroids it is the number of bytes of a code.
    n_centroids: K of every codebook, a power of two.
    beam_size: partial sums kept at each codebook while a vector is encoded; more are slower and better.
    max_iter: rounds of refitting.
    smoothing: share of the vectors, 0 to 1, that a round replaces by vectors drawn between near ones. More is better
        for unseen vectors, less for training vectors.
    metric: "l2": errors are weighted by the differences between near vectors, and one more column holds a vector's
        distance from its code, which searches by "l2" add. "ip", for searches by inner product or cosine: errors are
        weighted by the spread of the queries given to `fit`, else of the vectors. With `known`, "l2" is for cosine too
        where vectors share a direction.
    known: for an index of the training vectors. Codebooks are then trained until distances, or inner products, to those
        vectors rank correctly, which lowers the recall of other vectors.
    n_lists: inverted lists; 0 for none. With them the residual to the nearest of `n_lists` coarse centroids is coded, a
        code begins with the number of that list, and a search visits some of the lists.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    codebooks_: (1, M, K, d) float32.
    rotation_: (d, d), the identity.
    coarse_centroids_, history_, normalized_, n_features_in_: as in `ProductResidualQuantizer`.

    References
    ----------
    Chen, Guan & Wang (2010), Approximate nearest neighbor search by residual vector quantization.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> nk.quantization.ResidualQuantizer(n_codebooks=4, n_centroids=16, random_state=0).fit(X).encode(X).shape
    (500, 2)
    """

    KIND: ClassVar[str] = "residual quantizer"
    CODER: ClassVar[str] = "ResidualQuantizer"

    n_codebooks: int = 8
    n_splits: int = field(default=1, init=False)
    rotation: str | None = field(default=None, init=False)
    max_iter: int = field(default=18, kw_only=True)
