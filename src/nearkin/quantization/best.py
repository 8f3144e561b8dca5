"""The codecs in one table, by their names as methods of `nearkin compress`, and the choice of one at a size in bytes.

`Index.build(X, n_bytes)`, `nearkin compress` and `nearkin sweep` take the choice of `best`: it screens each candidate
by a short fit on few vectors, a `Trial` compares their recall query by query, and the winner alone is fitted in
full."""

import math
import warnings
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator

from nearkin import _check
from nearkin._faiss import compared as decoded_by_faiss
from nearkin._fields import counted
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback, Quantizer, VectorCodes, ignore
from nearkin.contracts import Codec as Decoding
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.trial import HeldOut, Trial, held_out, mean_interval
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.faiss_bridge import code_bits
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import AbstractAdditiveQuantizer, ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from nearkin.statistics import whole_rows

SUMS = {"product-residual": 4, "product-residual-long": 8}  # codebooks of a part, about: more are slower and find more
SCALARS = {"int4": 4, "int6": 6, "int8": 8, "float16": 16}  # bits of a column
HASHERS = {
    "lsh": "RandomHyperplanes",
    "signs": "Signs",
    "pca-hash": "PCAHash",
    "itq": "ITQ",
    "one": "OnE",
    "oge": "OgE",
}
_ANY_BITS = ("lsh", "itq")  # hashes that may have more bits than there are columns
NORMS = "-norms"  # ending of the names of codecs with a byte for the norm of each vector
ALIASES = {"pq": "none", "opq": "product", "rq": "residual", "lsq": "residual", "sq8": "int8"}  # the field's names
_ROTATIONS = ("givens-random", "givens-greedy", "givens-steepest", "cayley")
_LONGEST = 32  # most codebooks of a residual code: longer ones are searched too slowly
# Seconds of two cores for each column of a row and of a centroid that it is compared with. Predicted seconds of 22 fits
# of 64 to 512 columns in 8 to 16 bytes were within a factor of 2.5 of those of an AMD EPYC (2026-11-26).
_LEARNING, _ENCODING = 6e-10, 6e-11
_OVERHEAD = 400  # columns more, for what does not depend on their number
TRAINED = 65_536  # vectors of a fit, at most: 256 for each of 256 centroids, FAISS's own limit
FEWEST = 256  # vectors that centroids of a byte are trained on, at least
MINUTE, TIMES = 60.0, 3  # predicted seconds that are never too long, nor are these times those of product codes
_LEVELLED = 8_192  # vectors whose norms decide the levels, at most
_LISTS = 64  # of short fits, at most
_SCREENED = 4_096  # rows of a short fit, and rows to be found, at most
_SHORT = {"max_iter": 4, "beam_size": 8}  # settings of a short fit
_TIE = 0.01  # smaller differences in recall of short fits are ties, as everywhere in the docs
_TRAINED_FOR = 16_384  # rows of the index that codes can be trained for, at most
_KNOWN = 0.5  # if this share of the index's rows is learned from, codes are trained for these rows


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the comparison; `python -m benchmarks codecs` measures it as a whole."""

    beam_size: int = 16  # of additive codes: SIFT in 8 bytes .6430, with 8 .6318; GIST .5242, .5267 (2026-11)


DEFAULTS = Defaults()


@dataclass(frozen=True)
class Size:
    """The size of a code, and what searches it: bytes, centroids of a codebook, inverted lists, metric; and a seed.

    >>> Size(8).n_codes, Size(8, n_centroids=16).n_codes
    (8, 16)
    """

    n_bytes: int = 16
    n_centroids: int = 256
    n_lists: int = 0
    metric: str = "l2"
    random_state: Seed = None

    @property
    def n_codes(self) -> int:
        """Numbers of centroids that fill the bytes; ValueError if no whole number does."""
        n_bytes = _check.check_integer(self.n_bytes, "n_bytes", low=1)
        bits = code_bits(_check.check_integer(self.n_centroids, "n_centroids", low=2, high=65536))
        if 8 * n_bytes % bits:
            more = f"({self.n_centroids} centroids); give a multiple of {bits // math.gcd(bits, 8)}"
            raise ValueError(f"n_bytes is {n_bytes}, no whole number of {bits}-bit codes {more}")
        return 8 * n_bytes // bits

    @property
    def sums(self) -> dict[str, tuple[int, int]]:
        """Parts, and codebooks of each part, of the sums of centroids of at most this size, by name."""
        made: dict[str, tuple[int, int]] = {}
        for name, target in SUMS.items():
            used = [chain for _, chain in made.values()]
            chain = _chain(self.n_codes, target, used)
            if chain not in used and (splits := self.n_codes // chain) > 1:
                made[name] = splits, chain
        return made | ({"residual": (1, self.n_codes)} if 1 < self.n_codes <= _LONGEST else {})


class Codec(NamedTuple):
    """What makes the unfitted quantizer of a `Size`; the metrics of its codes, the default first; centroids that a part
    of a vector is compared with at a time; and bytes for the norm, 1 or 0."""

    name: str
    make: Callable[[Size], Any]
    metrics: tuple[str, ...] = ("l2", "ip", "cosine")
    compared: int = 256
    norm: int = 0

    def unfitted(self, size: Size, **settings: object) -> BaseEstimator:
        """The quantizer, with those of the settings that it has; ValueError if there is none of this size."""
        quantizer = self.make(self._own(size))
        for name in ("n_centroids", "n_lists"):
            if getattr(size, name) != getattr(Size, name) and name not in quantizer.get_params():
                raise ValueError(f"{name} is for product and residual codes; leave it out with method {self.name}")
        return quantizer.set_params(**{name: settings[name] for name in settings.keys() & quantizer.get_params()})

    def fits(self, size: Size, d: int) -> bool:
        """Whether there are codes of this size for d columns: every part of a vector has a column, or a bit has one."""
        own, name = self._own(size), self.name.removesuffix(NORMS)
        if own.n_bytes < 1 or name in (*SCALARS, *_ANY_BITS):
            return own.n_bytes > 0
        if name in HASHERS:
            return own.n_bytes == -(-d // 8) or (own.n_bytes < d / 8 and name != "signs")
        if name in (*SUMS, "residual"):
            return name in own.sums and own.sums[name][0] <= d
        return (own.n_bytes if name == "axes" else own.n_codes) <= d

    def nearest(self, size: Size, d: int) -> int:
        """The bytes of codes for d columns that are nearest to the size's; ValueError if there are none."""
        step = code_bits(size.n_centroids) // math.gcd(code_bits(size.n_centroids), 8)
        sizes = range(self.norm + step, 24 * d + 4 * _LONGEST, step)  # a part has 12 codebooks of 2 bytes at most
        for n_bytes in sorted(sizes, key=lambda n_bytes: abs(n_bytes - size.n_bytes)):
            if self.fits(replace(size, n_bytes=n_bytes), d):
                return n_bytes
        raise ValueError(f"method {self.name} has no codes for {counted(d, 'column')}; leave out method")

    def chain(self, size: Size) -> int:
        """The cost of a search: how many centroids are added up in a part of a vector."""
        return self._own(size).sums.get(self.name.removesuffix(NORMS), (1, 1))[1]

    def seconds(self, size: Size, learned: int, encoded: int, d: int) -> float:
        """Predicted seconds of two cores to train on and to encode numbers of vectors of d columns; a rotation takes as
        long as a codebook."""
        chain = self.chain(size)
        return ((chain + 1) * learned * _LEARNING + chain * encoded * _ENCODING) * self.compared * (d + _OVERHEAD)

    def _own(self, size: Size) -> Size:
        return replace(size, n_bytes=size.n_bytes - self.norm)


def _product(rotation: str | None, size: Size) -> ProductQuantizer:
    more: Any = {"n_lists": size.n_lists, "random_state": size.random_state}
    return ProductQuantizer(size.n_codes, size.n_centroids, rotation, **more)


def _sum(name: str, size: Size) -> ProductResidualQuantizer | ResidualQuantizer:
    if name not in size.sums:
        raise ValueError(f"n_bytes is {size.n_bytes}; {name} has no such code: residual has 2 to {_LONGEST} codebooks")
    (splits, chain), metric = size.sums[name], "l2" if size.metric == "l2" else "ip"
    more: Any = {"metric": metric, "n_lists": size.n_lists, "random_state": size.random_state}
    if name == "residual":
        return ResidualQuantizer(chain, size.n_centroids, **more)
    return ProductResidualQuantizer(splits, chain, size.n_centroids, **more)


def _hasher(name: str, size: Size) -> Any:
    return getattr(import_module("nearkin.hashing"), name)(n_bits=8 * size.n_bytes, random_state=size.random_state)


def _chain(units: int, target: int, used: Container[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)


_PLAIN = (
    Codec("product", partial(_product, "procrustes")),
    Codec("none", partial(_product, None)),
    Codec("axes", lambda size: AxisQuantizer(size.n_bytes), compared=64),
    *(Codec(name, partial(_sum, name)) for name in (*SUMS, "residual")),
)
CODECS = {
    codec.name: codec
    for codec in (
        *_PLAIN,
        *(one._replace(name=one.name + NORMS, metrics=("l2", "ip"), norm=1) for one in _PLAIN if one.name != "none"),
        *(Codec(name, lambda _, bits=bits: ScalarQuantizer(bits), compared=16) for name, bits in SCALARS.items()),
        *(Codec(name, partial(_product, name)) for name in _ROTATIONS),
        *(Codec(name, partial(_hasher, made), ("hamming",)) for name, made in HASHERS.items()),
    )
}


def candidates(n_bytes: int, d: int, *, norms: bool, half: bool = True) -> list[str]:
    """The codecs of at most `n_bytes` a vector of d columns, the cheapest first, a byte a column at most; floats of
    `half` precision, or 8 bits where these do not suffice, if that many bytes are there. With `norms`, for vectors of
    different norms, a byte may be the norm's."""
    size = Size(min(n_bytes, d))
    axes = ["axes"] if d <= 8 * n_bytes else []
    fitting = [name for name, bits in SCALARS.items() if bits * d <= 8 * n_bytes and (half or name != "float16")]
    if "float16" in fitting:  # nothing finds more
        return ["float16"]
    names = ["product", "none", *axes, *fitting[-1:], *size.sums]
    if norms and size.n_bytes > 1:
        shorter = replace(size, n_bytes=size.n_bytes - 1).sums
        names += [name + NORMS for name in ("product", *axes, *shorter)]
    return sorted(names, key=lambda name: CODECS[name].chain(size))


@dataclass(frozen=True)
class Screening:
    """Vectors to train on, and the held-out queries that compare the codes. One half of given queries may decide
    between starts within a fit. A share `known` of the vectors to be found is trained on, as it will be in an index
    of `n_vectors` vectors."""

    train: np.ndarray
    held: HeldOut
    given: np.ndarray | None
    known: float

    @classmethod
    def of(
        cls, X: np.ndarray, queries: ArrayLike | None, n_vectors: int, metric: str, ranked: str, generator: Generator
    ) -> Self:
        """Of vectors X (n, d), of norm 1 already for "cosine", queries (q, d) or None for vectors held out. Decoded
        vectors are `ranked` by "l2" or "ip"."""
        order, given = generator.permutation(len(X)), None
        if queries is None:
            chosen, order = held_out(order)
            asked = X[chosen]
        else:
            queries = _check.check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = unit_rows(queries) if metric == "cosine" else queries
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = held_out(order, queries[:half])[0], queries[half:]
        known = min(len(X), _TRAINED_FOR) / n_vectors  # part of the index's rows
        unseen = min(round((1 - known) * min(_SCREENED, len(order))), len(order) // 4)
        found = min(_SCREENED, len(order) if known == 1 else round(unseen / (1 - known)))
        train = order[unseen : unseen + _SCREENED]
        rows = X[np.concatenate([order[:unseen], train[: found - unseen]])]
        return cls(X[train], HeldOut.among(rows, asked, ranked), given, known)

    def compared(
        self, names: list[str], size: Size, smoothing: float, n_known: int, callback: Callback
    ) -> list[Record]:
        """The records of short fits of these codecs, the winner first; `n_known` is that of `_lengthened`."""
        trial = Trial[str](callback, len(names))
        for codec in (CODECS[name] for name in names):
            recall, n_bytes = self.recall(codec, size, smoothing=smoothing, **_SHORT)
            more: Record = {"interval": mean_interval(recall), "bytes": n_bytes, "rows": len(self.train)}
            trial.add(codec.name, recall, codec.chain(size) + codec.norm, **more)
        winner = _lengthened(trial, size, n_known)
        records: list[Record] = [row | {"lead": [*trial.lead(winner, row["candidate"])]} for row in trial.table(winner)]
        return sorted(records, key=lambda record: (not record["won"], -record["value"]))

    def recall(self, codec: Codec, size: Size, **settings: Any) -> tuple[np.ndarray, int]:
        """The recall (q,) without rescoring of a codec after a short fit, and its bytes a vector."""
        size = replace(size, n_lists=min(size.n_lists, _LISTS))
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the last fit names far vectors right
            fitted, norms = fitted_codec(codec, size, self.train, self.given, **settings)
        held, codes = self.held, fitted.encode(self.held.rows)
        n_bytes = codes.shape[1] + codec.norm
        if norms is None and held.metric not in fitted.ranks_by:
            norms = Norms.shared(held.rows, bool(fitted.normalized_))
        if norms is None and isinstance(fitted, AbstractAdditiveQuantizer):  # the index adds its column of errors
            index = fitted.to_faiss(held.metric)
            fitted.add_to(index, held.rows)
            return held.recall(*decoded_by_faiss(index, held.queries)), n_bytes
        rows = cast(Decoding, fitted).decode(codes)
        rows = rows if norms is None else norms.restored(rows, held.rows)
        return held.recall(rows, widened(held.queries, rows.shape[1])), n_bytes


def fitted_codec(
    codec: Codec,
    size: Size,
    X: np.ndarray,
    queries: np.ndarray | None = None,
    callback: Callback = ignore,
    **settings: Any,
) -> tuple[VectorCodes, Norms | None]:
    """The quantizer of the codec with those of the settings that it has, fitted on vectors X (n, d), and the levels of
    its byte for norms. `queries` (q, d) are passed on if it trains for the index's metric."""
    d, norms = np.shape(X)[1], None
    if not codec.fits(size, d):
        no_codes = f"n_bytes is {size.n_bytes}; this method has no such codes for {counted(d, 'column')}"
        raise ValueError(f"{no_codes}, type n_bytes={codec.nearest(size, d)}")
    quantizer: Any = codec.unfitted(size, **settings)
    if codec.metrics == ("hamming",) and codec.name not in _ANY_BITS:  # bits of the last byte may be left over
        quantizer.set_params(n_bits=min(quantizer.n_bits, d))
    if codec.norm:
        rows = whole_rows(quantizer, X)
        norms = Norms.learned(rows[np.random.default_rng(0).permutation(len(rows))[:_LEVELLED]])
    uses_queries = size.metric == "l2" and isinstance(quantizer, ProductQuantizer)
    uses_queries |= isinstance(quantizer, AbstractAdditiveQuantizer) and quantizer.metric == "ip"
    options: Any = {"queries": queries} if uses_queries and queries is not None else {}
    return quantizer.fit(X, **options, callback=callback), norms


class Best(NamedTuple):
    """`quantizer`: the winner, fully fitted; `norms`: the levels of a byte for norms, None without one:
    `Index.build(X, found.quantizer, norms=found.norms)`; `trials`: the records of `Trial` for each short fit, the
    winner first, then by "value" (recall@10 without rescoring), with its 95 % "interval", the winner's "lead" (a
    `metrics.trial.Difference`), "bytes" and "rows"; none where nothing was compared."""

    quantizer: Quantizer
    norms: Norms | None
    trials: list[Record]


def best(
    X: ArrayLike,
    n_bytes: int,
    queries: ArrayLike | None = None,
    seconds: float | None = None,
    *,
    n_vectors: int | None = None,
    n_encoded: int | None = None,
    metric: str = "l2",
    n_lists: int = 0,
    methods: Iterable[str] | None = None,
    random_state: Seed = None,
    callback: Callback | None = None,
) -> Best:
    """Choose a codec, its rotation and start at no more than `n_bytes` a vector.

    All `candidates` are screened by short fits on 4,096 vectors at most. Of those that no other leads by more than one
    standard error, the longest sum of centroids wins, which gains most from a full fit; of sums one is level within a
    point, and of codes for known vectors (below) where its codebooks are no larger than the vectors. The winner alone
    is fitted in full.

    Recall is higher for vectors that codes were trained on than for others, long sums above all; the vectors to be
    found are therefore mixed as the index's: all trained on where X is all and has at most 16,384 vectors, hardly any
    where X is a small sample. Where half of the index's vectors or more are trained on, the winner is trained for these
    ("known" in `ResidualQuantizer`).

    Seconds are predicted, for two cores, from the numbers of vectors, columns and centroids, so that the same seed
    gives the same codes on any machine however busy. A codec that would take longer to train and to encode is left out;
    the first one, the cheapest, is fitted in any case. Sums train on as many vectors as the seconds allow, twice those
    of the screening at least, and from all that they are trained for.

    Of fewer than 512 vectors none can be held out: they get a product code, and fewer than 256 an axis code, with a
    warning.

    Parameters
    ----------
    X: (n, d) vectors; of more than 65,536 a sample trains.
    n_bytes: bytes of a code, norm included, at most; codes of centroids have one a column at most.
    queries: (m, d), which measure recall where vectors will be searched by others than themselves.
    seconds: predicted time to train the winner and to encode; None for a minute, or three times that of product codes
        where these take more than 20 seconds.
    n_vectors: vectors that the index will hold, at least n; by default n.
    n_encoded: vectors to be encoded; by default `n_vectors`.
    metric: "l2", "ip" (give `queries`, as vectors are seldom like them; without them unit vectors have the codes of
        "cosine") or "cosine" (codes are trained at norm 1).
    n_lists: inverted lists of product codes, 0 for none; then only these are compared.
    methods: names in `nearkin.quantization.best.CODECS` to compare in place of all.
    random_state: seed, NumPy generator or RandomState.
    callback: `callback(step, record)` is called after each candidate.

    Returns
    -------
    found: `Best` with quantizer (fitted), norms (give them to `Index.build`) and trials (a record a candidate).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    >>> found = nk.quantization.best(X, 2, random_state=0)
    >>> found.quantizer.decode(found.quantizer.encode(X)).shape
    (300, 8)
    """
    _check.check_choice(metric, "metric", ("l2", "ip", "cosine"))
    given, X = X, _check.check_magnitude(_check.check_vectors(X)).astype(np.float32)
    # rows of norm 1 have one order by both; sentences, 16 bytes, .731 to .782, GIST .635 to .685 (2026-11)
    metric = "cosine" if metric == "ip" and queries is None and _check.has_unit_rows(X) else metric
    X = unit_rows(X) if metric == "cosine" else X
    n_bytes, d = _check.check_integer(n_bytes, "n_bytes", low=1), X.shape[1]
    n_vectors = _check.check_integer(len(X) if n_vectors is None else n_vectors, "n_vectors", low=len(X))
    n_encoded = _check.check_integer(n_vectors if n_encoded is None else n_encoded, "n_encoded", low=0)
    _check.check_real(0 if seconds is None else seconds, "seconds", low=0)
    if len(X) > TRAINED:
        X = X[np.sort(_check.numpy_generator(random_state).choice(len(X), TRAINED, replace=False, shuffle=False))]
    known = metric != "ip" and min(len(X), _TRAINED_FOR) >= _KNOWN * n_vectors
    methods = ("product", "product" + NORMS) if n_lists and methods is None else methods
    names, generator = _names(X, n_bytes, metric, known, methods), _check.numpy_generator(random_state)
    size = Size(min(n_bytes, d), n_lists=n_lists, metric=metric, random_state=_check.draw_seed(generator))
    # most of a product, the mean cosine, tells no order: where it is .76 (GIST, 16 bytes) distances find .853 for .788,
    # where it is .99996 .95 for .35 (2026-11-29)
    shared = known and metric == "cosine" and np.square(X.mean(axis=0, dtype=np.float64)).sum() > 0.5
    fit_by = "l2" if metric == "l2" or shared else "ip"
    asked, trials, settings = None, list[Record](), {"beam_size": DEFAULTS.beam_size, "known": known, "metric": fit_by}
    if len(names) > 1:
        screening = Screening.of(X, queries, n_vectors, metric, fit_by, generator)
        asked, settings["smoothing"] = screening.given, 1.0 if known else 1 - screening.known / 2
        trained = {name: _trained(name, size, X.shape, n_encoded, seconds, known=known) for name in names}
        trained[names[0]] = len(X)
        names = [name for name in names if trained[name]]
        trials = screening.compared(names, size, settings["smoothing"], len(X) if known else 0, callback or ignore)
        names = [trials[0]["candidate"]]
        if trained[names[0]] < len(X):
            X = X[np.sort(generator.choice(len(X), trained[names[0]], replace=False))]
    quantizer, norms = fitted_codec(CODECS[names[0]], size, X, asked, **settings)
    _check.check_names(quantizer, given, reset=True)
    return Best(quantizer, norms, trials)


def _names(X: np.ndarray, n_bytes: int, metric: str, known: bool, methods: Iterable[str] | None) -> list[str]:
    """The candidates for vectors X (n, d), of `methods` alone if these are given. Codes that are `known` rank by
    FAISS's own scores, without a norm."""
    differ = metric != "cosine" and Norms.shared(X) is None
    if methods is not None:
        return [name for name in methods if differ or not CODECS[name].norm]
    names = candidates(n_bytes, X.shape[1], norms=differ and not known, half=_half_suffices(X))
    if len(X) < FEWEST and names != ["float16"]:
        warnings.warn(
            f"codes of {n_bytes} bytes are trained on {counted(len(X), 'vector')} and will not suit others: give "
            f"{FEWEST} or more, or build an exact index, without bytes",
            stacklevel=3,
        )
        return ["axes"]
    return names[:1] if len(X) < 2 * FEWEST else names


def _lengthened(trial: Trial[str], size: Size, n_known: int) -> str:
    """The longest sum that trails none by more than a standard error, and no shorter sum by more than a point; else the
    winner of short fits. Long sums gain most from the vectors and rounds that short fits leave out. Residual codes over
    short sums, in short and in full fits: sentences in 12 bytes +.004, +.032; words +.001, +.010; SIFT in 8 -.010,
    +.009; GIST -.021, +.013. Short sums over product codes of digits: -.002, +.010 (2026-11-29).

    Codes for `n_known` vectors that are trained on gain more: SIFT in 16 bytes +.052, digits +.030. Of these the
    longest sum wins whose codebooks, of which such a code has two sets, are no larger than the vectors.
    """
    winner, chains = trial.winner(), {name: CODECS[name].chain(size) for name in trial.values}
    if trial.values[winner].min() == 1:  # nothing to gain
        return winner
    longer, slack = [name for name in chains if chains[winner] < chains[name]], _TIE if chains[winner] > 1 else 0.0
    small = {name for name in longer if slack and 2 * chains[name] * size.n_centroids <= n_known}
    leads = {name: [trial.lead(other, name) for other in chains] for name in longer}
    level = {name for name in longer if all(lead.mean <= max(lead.error, slack) for lead in leads[name])}
    return max([winner, *small, *level], key=lambda name: chains[name])


def _trained(
    name: str, size: Size, shape: tuple[int, ...], n_encoded: int, seconds: float | None, *, known: bool
) -> int:
    """The vectors of a full fit on a sample of that shape (n, d), as many as the seconds allow; 0 for too few."""
    (n, d), codec = shape, CODECS[name]
    if seconds is None:
        seconds = max(MINUTE, TIMES * CODECS["product"].seconds(size, n, n_encoded, d))
    # for known rows sums are trained twice as long: GIST, 4,000 rows, 32 bytes 15.9 CPU s and 9.1 (2026-11-28)
    each = codec.seconds(size, 1, 0, d) * (2 if known and codec.chain(size) > 1 else 1)
    most = (seconds - codec.seconds(size, 0, n_encoded, d)) / each
    least = n if codec.chain(size) == 1 or known else min(2 * _SCREENED, n)
    return int(min(most, n)) if most >= least else 0


def _half_suffices(X: np.ndarray) -> bool:
    """Whether half precision rounds vectors X (n, d) less than a byte a column does, 1/256 of their spread."""
    half, largest = np.finfo(np.float16), np.abs(X).max()
    if largest and not half.tiny <= largest <= half.max:
        return False
    error = np.square(X - X.astype(np.float16), dtype=np.float64).mean()
    return bool(256**2 * error <= np.square(X - X.mean(axis=0, dtype=np.float64)).mean())
