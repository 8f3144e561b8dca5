"""One rotation for vectors that another engine codes: trained for its codec, never worse than none on held-out
vectors."""

import re
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import faiss
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nearkin._check import (
    check_choice,
    check_integer,
    check_magnitude,
    check_names,
    check_not_vanishing,
    check_queries,
    check_vectors,
    draw_seed,
    validate_vectors,
)
from nearkin._estimators import SavedEstimator
from nearkin._fields import counted
from nearkin._threads import serial_products
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback, Codec, ignore
from nearkin.linalg.orthonormal import haar_rotation, nearest_orthogonal
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import HeldOut, Trial, held_out, paired_difference
from nearkin.quantization.order import SCORES, turned_for_order
from nearkin.quantization.product import ProductQuantizer
from nearkin.statistics import Shard, far_rows, shared_generator, whole_rows

Coded = Callable[[np.ndarray], np.ndarray]  # rows (n, d) to their decoded codes (n, d)
Train = Callable[[np.ndarray], Coded]  # rows that the codec learns from to the codec


def _sign(Z: np.ndarray) -> Coded:
    """Sign bits at one length for all rows, whose distances are Hamming distances: "binary quantization"."""
    scale = np.ldexp(np.float32(1), np.frexp(np.abs(Z).mean())[1])  # a power of 2: sums of it are exact
    return lambda rows: np.where(rows > 0, scale, -scale)


def _by_faiss(make: Callable[[int], faiss.Index]) -> Train:
    def train(Z: np.ndarray) -> Coded:
        index = make(Z.shape[1])
        try:
            index.train(np.ascontiguousarray(Z))
        except RuntimeError as error:
            centroids = re.search(r"number of clusters \((\d+)\)", str(error))
            more = f"{2 * int(centroids[1])} or more" if centroids else "more"  # a half and more are learned from
            raise ValueError(f"{counted(len(Z), 'vector')} are left, too few for this codec; give {more}") from error
        return _through(index)

    return train


def _through(index: faiss.Index) -> Coded:
    return lambda rows: index.sa_decode(index.sa_encode(np.ascontiguousarray(rows, np.float32)))


def _by_rows(n_bits: int) -> Train:
    """Equal steps from the least to the largest entry of each row, both kept with its code."""

    def coded(rows: np.ndarray) -> np.ndarray:
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        step = np.maximum((high - low) / (2**n_bits - 1), np.finfo(np.float32).tiny)
        return (low + np.round((rows - low) / step) * step).astype(np.float32)

    return lambda Z: coded


def _by_all(Z: np.ndarray) -> Coded:
    """127 equal steps up to the largest of all entries, either sign: one scale for all columns and rows."""
    step = np.maximum(np.abs(Z).max() / 127, np.finfo(np.float32).tiny)
    return lambda rows: (np.clip(np.round(rows / step), -127, 127) * step).astype(np.float32)


def _rabitq(Z: np.ndarray) -> Coded:
    """Signs of centred rows, scaled so that a row's inner product with its code is its squared norm."""
    mean = Z.mean(axis=0)

    def coded(rows: np.ndarray) -> np.ndarray:
        centred = rows - mean
        signs = np.where(centred > 0, np.float32(1), np.float32(-1))
        products = np.einsum("nd,nd->n", centred, signs)[:, None]
        squares = np.einsum("nd,nd->n", centred, centred)[:, None]
        return (mean + signs * (squares / np.maximum(products, 1e-30))).astype(np.float32)

    return coded


def _product(n_bytes: int) -> Train:
    def make(d: int) -> faiss.Index:
        index = faiss.IndexPQ(d, n_bytes, 8)
        # few iterations of k-means: the codec is trained again for every rotation tried
        index.pq.cp.niter, index.pq.cp.min_points_per_centroid = 10, 1
        return index

    return _by_faiss(make)


NAMED: dict[str, Train] = {
    "sign": _sign,
    "sign-float": _sign,
    "int8": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_8bit)),
    "int4": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_4bit)),
    "int8-all": _by_all,
    "int8-row": _by_rows(8),
    "int4-row": _by_rows(4),
    "rabitq": _rabitq,
}
CODE_QUERIES = ("sign", "int8-all", "int8-row", "int4-row")  # queries are encoded as rows are
ORDER = "trained for order"  # the candidate
HOLD_NORMS = ("rabitq",)  # engines store each row's norm with these codes


def find_codec(codec: str | Codec | faiss.Index, d: int) -> Train:
    """The codec that `Rotation(codec=...)` names, for vectors of d columns; ValueError or TypeError for none: a name in
    `NAMED`, "pq8" with a number that divides d, a FAISS index, or an object with encode and decode."""
    if isinstance(codec, str):
        if codec in NAMED:
            return NAMED[codec]
        if codec.startswith("pq") and codec[2:].isdigit() and 0 < int(codec[2:]) <= d and d % int(codec[2:]) == 0:
            return _product(int(codec[2:]))
        names = ", ".join(map(repr, NAMED))
        raise ValueError(f"codec is {codec!r}; it must be one of {names}, or 'pq' and bytes that divide d={d}: 'pq8'")
    if isinstance(codec, faiss.Index):
        if codec.d != d:
            raise ValueError(f"codec is an index of {counted(codec.d, 'column')}; X has {d}")
        return (lambda Z: _through(codec)) if codec.is_trained else _by_faiss(lambda _: faiss.clone_index(codec))
    if isinstance(codec, Codec):
        return lambda Z: lambda rows: np.asarray(codec.decode(codec.encode(rows)), np.float32)
    raise TypeError(f"codec is a {type(codec).__name__}; it must be a name, a faiss.Index or have encode and decode")


@dataclass(eq=False, repr=False)
class Rotation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """Rotate vectors so that an engine's own codes have a higher recall; distances do not change.

    Training needs only the codec's reconstructions: decode the codes of X R, fit a rotation of X to them (Procrustes),
    and repeat, as in OPQ and ITQ. Rotations trained from several starts are compared on held-out vectors with no
    rotation, a random one and the principal axes. For signs and RaBitQ the best of these is refined by gradients of the
    rank correlation of scores and distances among near vectors (`order.py`). The rotation of highest recall wins; if it
    was trained, it is fitted further on all vectors.

    Where the covariance is isotropic no direction is better than another: the identity is returned, with a warning.

    Parameters
    ----------
    codec: how the engine encodes vectors: "sign" (compared by Hamming distance), "sign-float" (with queries in floats),
        "int8", "int4" (equal steps from a column's least to its largest), "int8-all" (one scale for all
        columns), "int8-row", "int4-row" (from a vector's least to its largest; in these three queries
        are coded too), "rabitq", "pq8" (product codes of 8 bytes; any number that divides d), a `faiss.Index` with
        sa_encode, trained or not, or an object with encode and decode, which `save` leaves out.
    max_iter: Procrustes rounds from each start.
    center: subtract the mean of the vectors first. It raises the recall of sign bits (SIFT: 0.43 of ten instead of
        0.42). Distances do not change; inner products and angles do.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    rotation_: (d, d) float32.
    mean_: (d,) float32, zeros without `center`.
    chosen_: the name of the winner: "none", "random", "pca", "trained from ..." one of these, or "trained for order".
    trials_: a record of each; its value is the recall of the 10 nearest held-out vectors without rescoring, on the
        queries that chose the winner.
    gain_: the winner's recall minus that without rotation, on other queries, before the fit on all vectors.
    gain_interval_: the ends of its 95 % interval, paired by query.
    n_iter_, n_features_in_: rounds done, columns.

    References
    ----------
    Gong & Lazebnik (2011), Iterative quantization; Ge et al. (2013), Optimized product quantization.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 8)) * np.arange(1, 9)
    >>> turned = nk.Rotation("int8", max_iter=2, random_state=0).fit(X).transform(X)
    >>> bool(np.allclose(np.linalg.norm(turned[0] - turned[1]), np.linalg.norm(X[0] - X[1]), rtol=1e-5))
    True
    """

    KIND: ClassVar[str] = "rotation"

    codec: str | Codec | faiss.Index = "sign"
    _: KW_ONLY
    max_iter: int = 20
    center: bool = False
    random_state: Seed = None

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback | None = None
    ) -> Self:
        """Train on vectors X (n, d), 18,384 of them at most: two thirds train, the others measure recall.

        `queries` (m, d), at least 20, measure recall if later queries differ from the vectors. `callback(step,
        record)` is called with the record of each rotation that is tried. ValueError or TypeError, before any work, for
        a codec or vectors that cannot be used.
        """
        check_integer(self.max_iter, "max_iter", low=1)
        check_choice(self.center, "center", (False, True))
        X = check_not_vanishing(check_magnitude(whole_rows(self, X, min_rows=2)))
        train, d = find_codec(self.codec, X.shape[1]), X.shape[1]
        asked = None if queries is None else check_queries(queries, d, min_rows=20).astype(np.float32)
        generator = shared_generator(self.random_state)
        order = generator.permutation(len(X))[: 16_384 + 2 * OF_TRIALS.queries]
        X = X[order].astype(np.float32)
        X = X[~far_rows(X, Shard.of(X), 2, order)[0]]
        self.rotation_: np.ndarray = np.eye(d, dtype=np.float32)
        mean = X.mean(axis=0, dtype=np.float64) if self.center else np.zeros(d)
        self.mean_: np.ndarray = mean.astype(np.float32)
        self.n_iter_: int = self.max_iter
        self.chosen_: str = "none"
        self.trials_: list[Record] = []
        self.gain_: float = 0.0
        self.gain_interval_: tuple[float, float] = (0.0, 0.0)
        if _is_isotropic(X):
            warnings.warn("the covariance of X is isotropic: no rotation is better than none", stacklevel=2)
            return self
        with serial_products(X.shape[0] * d**2):
            self._choose(X, train, generator, asked, callback or ignore)
        return self

    def _choose(
        self, X: np.ndarray, train: Train, generator: np.random.Generator, asked: np.ndarray | None, callback: Callback
    ) -> None:
        codec = self.codec if isinstance(self.codec, str) else ""
        held = _CodedRows(X - self.mean_, train, codec, None if asked is None else asked - self.mean_)
        starts = _starts(held.learned_from, draw_seed(generator))
        candidates = dict(starts)
        trial = Trial[str](callback, 2 * len(starts) + (codec in SCORES))
        for name, R in starts.items():  # all cost the same to who asks for a rotation; of equals "none" is the first
            trial.add(name, held.recall(R, 0))
        for name, R in starts.items():
            R = candidates[f"trained from {name}"] = self._learn(held.learned_from, R, train, draw_seed(generator))
            trial.add(f"trained from {name}", held.recall(R, 0))
        if codec in SCORES:  # a goal that reconstructions miss: from the best so far
            R = candidates[ORDER] = _ordered(held.learned_from, candidates[trial.best()], codec, generator)
            trial.add(ORDER, held.recall(R, 0))
        self.chosen_, self.trials_ = trial.winner(), trial.table()
        R = candidates[self.chosen_]
        plain = _CodedRows(X, train, codec, asked) if self.center else held
        gain = paired_difference(held.recall(R, 1), plain.recall(starts["none"], 1))
        self.gain_, self.gain_interval_ = gain.mean, (gain.low, gain.high)
        everything = X - self.mean_
        if self.chosen_.startswith("trained from"):  # the choice is made: fit on all rows
            R = self._learn(everything, R, train, draw_seed(generator))
        elif self.chosen_ == ORDER:
            R = _ordered(everything, R, codec, generator)
        self.rotation_ = R

    def _learn(self, X: np.ndarray, R: np.ndarray, train: Train, seed: int) -> np.ndarray:
        """The rotation after `max_iter` rounds from R; codebooks of product codes stay warm from round to round."""
        if isinstance(self.codec, str) and self.codec.startswith("pq") and len(X) >= 256:
            learner = ProductQuantizer(int(self.codec[2:]), init="identity", max_iter=self.max_iter, random_state=seed)
            return R @ learner.fit(X @ R).rotation_
        return turned(X, R, train, self.max_iter)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """X R (n, d), or (X - mean) R with `center`, float32 or float64 as X is."""
        check_is_fitted(self)
        check_names(self, X)
        X = validate_vectors(self, X)
        return ((X.astype(np.float64) - self.mean_) @ self.rotation_).astype(X.dtype)

    def inverse_transform(self, Z: ArrayLike) -> np.ndarray:
        """Vectors (n, d) whose `transform` are Z (n, d)."""
        check_is_fitted(self)
        Z = check_vectors(
            Z, name="Z", n_features=self.n_features_in_
        )  # its columns have other names than those of `fit`
        return (Z.astype(np.float64) @ self.rotation_.T + self.mean_).astype(Z.dtype)

    @property
    def _n_features_out(self) -> int:
        return self.rotation_.shape[1]


def turned(X: np.ndarray, R: np.ndarray, train: Train, rounds: int) -> np.ndarray:
    """R (d, d) after rounds of: decode the codes of X R, and fit a rotation of X to them."""
    for _ in range(rounds):
        Z = X @ R
        R = nearest_orthogonal((X.T @ train(Z)(Z)).astype(np.float64)).astype(np.float32)
    return R


def _ordered(X: np.ndarray, R: np.ndarray, codec: str, generator: np.random.Generator) -> np.ndarray:
    """`turned_for_order` of rows X (n, d) about the point about which the codec takes signs."""
    return turned_for_order(X - X.mean(axis=0) if codec in HOLD_NORMS else X, R, codec, generator)


class _CodedRows:
    """Rows to learn from, and rows and queries that measure recall. Queries are compared as the codec's engines do: as
    bits for "sign", for "rabitq" with each row's own norm."""

    def __init__(self, X: np.ndarray, train: Train, codec: str, asked: np.ndarray | None = None) -> None:
        queries, X = held_out(X, asked, 2 * OF_TRIALS.queries)  # half for the choice, half for the gain
        self.train, self.codec = train, codec
        self.learned_from, self.rows = np.split(X, [max(1, 2 * len(X) // 3)])
        self.parts = [HeldOut.of(self.rows, queries[part::2]) for part in (0, 1)]

    def recall(self, R: np.ndarray, part: int) -> np.ndarray:
        """Recall (q,) of every second query, from the first or the second on."""
        held = self.parts[part]
        Q = held.queries @ R
        everything = np.concatenate([self.learned_from, self.rows]) @ R
        coded: Coded = self.train(everything)  # as an engine learns from the rows that it codes
        Z = everything[len(self.learned_from) :]
        Y = coded(Z)
        if self.codec in CODE_QUERIES:
            Q = coded(Q)
        elif self.codec in HOLD_NORMS:
            # |q - y|^2 + h^2 has the same order as |x|^2 - 2 <q, y>, about the mean
            mean = everything.mean(axis=0)
            excess = np.square(Z - mean).sum(axis=1) - np.square(Y - mean).sum(axis=1)
            Y = np.column_stack([Y, np.sqrt(excess - excess.min())])
            Q = np.column_stack([Q, np.zeros(len(Q), np.float32)])
        return held.recall(Y, Q)


def _starts(X: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Rotations that are compared and learned from: (d, d) float32 each, "none" first."""
    d = X.shape[1]
    axes = np.linalg.eigh(np.cov(X.T.astype(np.float64), bias=True).reshape(d, d))[1][:, ::-1]
    made = {"none": np.eye(d), "random": haar_rotation(d, seed), "pca": axes}
    return {name: np.ascontiguousarray(R, np.float32) for name, R in made.items()}


def _is_isotropic(X: np.ndarray) -> bool:
    """Whether the eigenvalues of the covariance lie within what n draws of one variance give (Marchenko & Pastur)."""
    n, d = X.shape
    if d == 1:
        return True
    values = np.linalg.eigvalsh(np.cov(X.T.astype(np.float64)))
    if values[-1] <= 0 or d >= n / 2:
        return bool(values[-1] <= 0)
    spread = ((1 + np.sqrt(d / n)) / (1 - np.sqrt(d / n))) ** 2
    # up to a tenth above the spread that chance explains all directions are equal
    return bool(values[-1] <= 1.1 * spread * max(values[0], 0))
