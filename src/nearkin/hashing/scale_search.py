"""Choosing the scale of OnE and OgE for a goal: labels of training rows, or their neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from nearkin._check import check_choice, check_integer, check_vectors
from nearkin._faiss import nearest_rows
from nearkin._random import draw_seed, numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.orthonormal import unit_rows
from nearkin.linalg.signs import row_blocks
from nearkin.metrics.hamming import hamming_histograms

MULTIPLES = tuple(float(factor) for factor in 2.0 ** np.arange(-1, 3.5, 0.5))  # of eq. 25's scale: 0.5 to 8


@dataclass(frozen=True)
class ScaleSearch:
    """What `search_scale` found; each array has one entry per scale tried."""

    hasher: AbstractHasher  # unfitted copy of the hasher given, with the best scale set
    best_scale: float
    scales: np.ndarray
    label_map: np.ndarray | None  # mean average precision of labels, None without labels
    neighbour_map: np.ndarray  # mean average precision of the exact neighbours


def search_scale(
    hasher: AbstractHasher,
    X: ArrayLike,
    y: object = None,
    *,
    multiples: Sequence[float] = MULTIPLES,
    n_queries: int = 1000,
    n_samples: int = 10_000,
    n_neighbours: int = 100,
    metric: str = "cosine",
    n_repeats: int = 1,
    random_state: Seed = None,
    callback: Callback | None = None,
) -> ScaleSearch:
    """Choose `scale` of an OnE or OgE from rows X (n, d) that are for training only, by a split of them.

    With labels `y` (n,) the scale of the largest mean average precision of labels wins, without them that of the
    `n_neighbours` exact neighbours by `metric`, "cosine" or "l2". **These are different goals**: a larger scale
    flattens the spectrum, which on features of a network buys labels at the price of neighbours, so the second cannot
    stand in for the first. Both are reported. Queries are `n_queries` rows held out of at most `n_samples` to train on
    and search in; `n_repeats` splits are averaged. Never give rows on which the codes will be judged.

    `multiples` of eq. 25's scale are tried. Use the result as `search_scale(nk.OgE(32), X, y).hasher.fit(X)`.
    """
    params = hasher.get_params() if isinstance(hasher, AbstractHasher) else {}
    if "scale" not in params:
        raise TypeError(f"hasher is {hasher!r}; it must be one whose scale matters, nk.OnE(...) or nk.OgE(...)")
    if params.get("ridge") is not None:
        raise ValueError(f"ridge is {params['ridge']}, which makes OgE independent of scale; leave it None")
    X = check_vectors(X, min_rows=2 * hasher.n_bits + 2)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != (len(X),):
        raise ValueError(f"y has shape {labels.shape}; it must be ({len(X)},), one label for each row of X")
    check_choice(metric, "metric", ("cosine", "l2"))
    factors = np.asarray(multiples, dtype=float)
    if factors.ndim != 1 or not len(factors) or not (factors > 0).all():
        raise ValueError(f"multiples is {multiples!r}; it must be a list of numbers above 0, for example [0.5, 1, 2]")
    generator = numpy_generator(random_state)
    spectrum = principal_axes(lambda: row_blocks(X), hasher.n_bits)
    spectrum.check_rank(hasher.n_bits, X.shape[1])
    scales = factors * scale_of("eq25", spectrum.variances, hasher.n_bits)
    found = np.zeros((2, len(scales)))
    n_repeats = check_integer(n_repeats, "n_repeats", low=1)
    for repeat in range(n_repeats):
        split = split_rows(X, labels, n_queries, n_samples, n_neighbours, metric, generator)
        seed = draw_seed(generator)
        for i, scale in enumerate(scales):
            trial = clone(hasher).set_params(scale=float(scale), random_state=seed)
            scores = split.judge(trial)
            found[:, i] += np.array(scores) / n_repeats
            if callback is not None:
                record = {"scale": float(scale), "label_map": scores[0], "neighbour_map": scores[1]}
                callback(repeat * len(scales) + i + 1, {**record, "total": n_repeats * len(scales)})
    by_labels, by_neighbours = found
    best = float(scales[(by_neighbours if labels is None else by_labels).argmax()])
    chosen = clone(hasher).set_params(scale=best)
    return ScaleSearch(chosen, best, scales, None if labels is None else by_labels, by_neighbours)


def exact_neighbours(queries: np.ndarray, database: np.ndarray, k: int, metric: str = "cosine") -> np.ndarray:
    """Return the numbers (q, k) of the exact nearest rows of database (n, d), nearest first, by "cosine" or "l2"."""
    check_choice(metric, "metric", ("cosine", "l2"))
    k = check_integer(k, "k", low=1, high=len(database))
    if metric == "cosine":
        queries, database = unit_rows(queries), unit_rows(database)
    return nearest_rows(database, queries, k)


@dataclass(frozen=True)
class Split:
    """Rows to learn from and search in, queries held out of them, and what is right for each query."""

    train: np.ndarray
    queries: np.ndarray
    train_labels: np.ndarray | None
    query_labels: np.ndarray | None
    neighbours: np.ndarray

    def judge(self, hasher: AbstractHasher) -> tuple[float, float]:
        """Mean average precision of labels (NaN without) and of neighbours, after fitting on the training rows."""
        codes = hasher.fit(self.train).encode(self.train)
        queries = hasher.encode(self.queries)
        by_neighbours = hamming_histograms(queries, codes, neighbours=self.neighbours).average_precision().mean()
        if self.train_labels is None:
            return float("nan"), float(by_neighbours)
        by_labels = hamming_histograms(queries, codes, self.query_labels, self.train_labels).average_precision().mean()
        return float(by_labels), float(by_neighbours)


def split_rows(
    X: np.ndarray,
    labels: np.ndarray | None,
    n_queries: int,
    n_samples: int,
    n_neighbours: int,
    metric: str,
    generator: np.random.Generator,
) -> Split:
    """Hold `n_queries` rows out of X (n, d), at most half, and draw at most `n_samples` of the others."""
    n_queries = min(check_integer(n_queries, "n_queries", low=1), len(X) // 2)
    n_train = min(check_integer(n_samples, "n_samples", low=1), len(X) - n_queries)
    rows = generator.permutation(len(X))[: n_queries + n_train]
    queries, train = rows[:n_queries], rows[n_queries:]
    neighbours = exact_neighbours(X[queries], X[train], min(n_neighbours, n_train), metric)
    if labels is None:
        return Split(X[train], X[queries], None, None, neighbours)
    return Split(X[train], X[queries], labels[train], labels[queries], neighbours)
