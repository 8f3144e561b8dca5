"""Codes of a size in bytes, of which the index may keep one for the norm of each vector (`Norms`)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.base import BaseEstimator

from nearkin._check import check_choice, check_integer, check_magnitude, check_queries, draw_seed, take_names
from nearkin._distributed import alone
from nearkin._fields import counted
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, Fittable, Quantizer, VectorCodes, ignore
from nearkin.linalg.norms import LEVELS, Norms, widened
from nearkin.metrics.trial import HeldOut, Trial
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.codebooks import unwarned
from nearkin.quantization.faiss_bridge import SCANNED
from nearkin.quantization.product import ProductQuantizer
from nearkin.statistics import shared_generator, training_rows, whole_rows

_SAMPLE = 8_192  # rows for the levels and the choice, at most
_ROUNDS, _LISTS = 4, 64  # of the short fits, at most
_FEWEST = 8  # rows: fewer are repeated, as FAISS searches some codes from 5 centroids on


class SizedCode(BaseEstimator):
    """What chooses a code of some bytes: `fit` returns a fitted quantizer. `norms_`: the levels of the index's byte for
    each vector's norm, None if all bytes are the code's."""

    norms_: Norms | None = None

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> Quantizer:
        """The fitted quantizer of vectors X (n, d); `queries` (q, d) decide instead of vectors held out."""
        raise NotImplementedError


def fitted_code(quantizer: Fittable, X: ArrayLike, **options: object) -> tuple[Quantizer, Norms | None]:
    """The quantizer fitted to vectors X (n, d), and the levels of norms, if any; `options` are those of its `fit`."""
    found = quantizer.fit(X, **options)  # pyright: ignore[reportArgumentType]
    return found, quantizer.norms_ if isinstance(quantizer, SizedCode) else None


@dataclass(eq=False, repr=False)
class WithNorms(SizedCode):
    """A quantizer to bytes, and one byte more for the norm of each vector."""

    quantizer: VectorCodes

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> VectorCodes:
        options = {} if queries is None else {"queries": queries}
        self.norms_: Norms | None = Norms.learned(whole_rows(self, X))
        return self.quantizer.fit(X, **options, callback=callback)  # pyright: ignore[reportCallIssue]


@dataclass(eq=False, repr=False)
class ProductCode(SizedCode):
    """A product code of `n_bytes` bytes, or of one less and the norm of each vector.

    Decoded vectors are too short, each by another factor; at their true norm they are ranked better. Two short fits
    decide on held-out queries: the byte must lead by more than a standard error of the paired differences. By "cosine"
    all vectors have one norm.

    Parameters
    ----------
    n_bytes: size of a code with its norm.
    n_centroids: 256, or 16 (half a byte each).
    n_lists, max_iter, random_state: as those of `ProductQuantizer`, whose codes these are.
    metric: that of the index.

    Attributes
    ----------
    norms_: the levels of the norm's byte, or None. `fit` returns the fitted `ProductQuantizer`.

    Raises
    ------
    ValueError: by `fit`: n_bytes above what the columns of X allow, an unknown metric, n_centroids other than 16 and
        256, NaN.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> from nearkin.quantization.sized import ProductCode
    >>> ProductCode(4, random_state=0).fit(X).encode(X).shape
    (500, 4)
    """

    n_bytes: int = 8
    n_centroids: int = 256
    _: KW_ONLY
    n_lists: int = 0
    max_iter: int = 30
    metric: str = "l2"
    random_state: Seed = None

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> ProductQuantizer:
        """The fitted product codes of vectors X (n, d); of fewer vectors than centroids, as many centroids.

        `queries` and `callback` are those of `ProductQuantizer.fit`; the queries also decide about norms. Among several
        processes X is this one's part of the vectors, and all end with the same codes. ValueError or TypeError for what
        cannot be used.
        """
        n_bytes = check_integer(self.n_bytes, "n_bytes", low=1)
        check_choice(self.n_centroids, "n_centroids", (SCANNED, LEVELS))
        check_choice(self.metric, "metric", ("l2", "ip", "cosine"))
        given, (X, shard) = X, training_rows(self, X)
        each = 2 if self.n_centroids == SCANNED else 1  # codes a byte
        if n_bytes > (most := X.shape[1] // each):
            half = "half " if each == 2 else ""
            raise ValueError(
                f"n_bytes is {n_bytes}, more than {half}the {counted(X.shape[1], 'column')} of X; give at most {most}"
            )
        check_magnitude(X)
        asked = None if queries is None else check_queries(queries, X.shape[1]).astype(np.float32)
        generator = shared_generator(self.random_state)
        seed = draw_seed(generator)
        chosen = np.sort(generator.choice(shard.total, min(shard.total, _SAMPLE), replace=False))
        sample = generator.permutation(shard.rows(X, chosen).astype(np.float32))  # the first rows are queries

        def short(n_bytes: int) -> ProductQuantizer:
            return ProductQuantizer(
                n_bytes * each, self.n_centroids, init="pca", n_lists=min(self.n_lists, _LISTS),
                max_iter=min(_ROUNDS, self.max_iter), random_state=seed,
            ).fit(sample)  # fmt: skip

        self.norms_: Norms | None = _norms_that_pay(n_bytes, self.metric, sample, asked, short)
        times = -(-_FEWEST // shard.total)
        left, centroids = n_bytes - (self.norms_ is not None), min(self.n_centroids, times * shard.total)
        product = ProductQuantizer(
            left * each, centroids, n_lists=self.n_lists, max_iter=self.max_iter, random_state=seed
        )
        product.fit(X if times == 1 else np.repeat(X, times, axis=0), queries=queries, callback=callback)
        take_names(product, given)
        return product


@dataclass(eq=False, repr=False)
class AxisCode(SizedCode):
    """An axis code of `n_bytes` bytes, or of one less and the norm of each vector, as `ProductCode` decides; `metric`
    is that of the index."""

    n_bytes: int = 32
    _: KW_ONLY
    metric: str = "l2"

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> AxisQuantizer:
        n_bytes = check_integer(self.n_bytes, "n_bytes", low=1)
        given, X = X, check_magnitude(whole_rows(self, X))
        asked = None if queries is None else check_queries(queries, X.shape[1]).astype(np.float32)
        sample = X[np.random.default_rng(0).permutation(len(X))[:_SAMPLE]].astype(np.float32)
        with alone():
            self.norms_: Norms | None = _norms_that_pay(
                n_bytes, self.metric, sample, asked, lambda n_bytes: AxisQuantizer(n_bytes).fit(sample)
            )
            axes = AxisQuantizer(n_bytes - (self.norms_ is not None)).fit(X, callback=callback)
        take_names(axes, given)
        return axes


def _norms_that_pay(
    n_bytes: int,
    metric: str,
    sample: np.ndarray,
    queries: np.ndarray | None,
    short: Callable[[int], ProductQuantizer | AxisQuantizer],
) -> Norms | None:
    """The levels of a byte of norm, if a code of `n_bytes` with that byte finds more; the same in every process.

    Codes of bytes are `short` fits on the sample (n, d) of the index's vectors, whose first rows are the queries unless
    some (q, d) are given."""
    if n_bytes < 2 or metric == "cosine" or len(sample) <= LEVELS:
        return None
    held, trial, levels = HeldOut.split(sample, queries, metric), Trial[int](), Norms.learned(sample)
    with alone(), unwarned():
        for norm, known in enumerate((Norms.shared(sample), levels)):
            code = short(n_bytes - norm)
            decoded = code.decode(code.encode(held.rows))
            decoded = decoded if known is None else known.restored(decoded, held.rows)
            recall = held.recall(decoded, widened(held.queries, decoded.shape[1]))
            trial.add(norm, recall, cost=norm)  # rescoring takes time
    return levels if trial.winner() else None
