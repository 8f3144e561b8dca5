"""Choosing the scale of OnE and OgE for a goal: labels of training rows, or their neighbours."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from nearkin._check import check_vectors
from nearkin._faiss import nearest_rows
from nearkin._random import draw_seed, numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, ignore
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.orthonormal import unit_rows
from nearkin.linalg.signs import row_blocks
from nearkin.metrics.hamming import hamming_histograms

MULTIPLES = 2.0 ** np.arange(-1, 3.5, 0.5)  # of eq. 25's scale: 0.5 to 8
_QUERIES, _ROWS, _NEIGHBOURS = 1_000, 10_000, 100  # held out; learned from and searched in, at most; that count


@dataclass(frozen=True)
class ScaleSearch:
    """What `search_scale` found; each array has one entry per scale tried."""

    hasher: AbstractHasher  # unfitted copy of the hasher given, with the best scale set
    best_scale: float
    scales: np.ndarray
    label_map: np.ndarray | None  # mean average precision of labels, None without labels
    neighbour_map: np.ndarray  # mean average precision of the exact neighbours


def search_scale(
    hasher: AbstractHasher, X: ArrayLike, y: object = None, *, random_state: Seed = None, callback: Callback = ignore
) -> ScaleSearch:
    """Choose `scale` of an OnE or OgE from rows X (n, d) that are for training only, by a split of them.

    With labels `y` (n,) the scale of the largest mean average precision of labels wins, without them that of the 100
    neighbours of largest cosine. **These are different goals**: a larger scale flattens the spectrum, which on features
    of a network buys labels at the price of neighbours, so the second cannot stand in for the first. Both are reported.
    Never give rows on which the codes will be judged.

    Use the result as `search_scale(nk.OgE(32), X, y).hasher.fit(X)`.
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
    spectrum = principal_axes(lambda: row_blocks(X), hasher.n_bits)
    spectrum.check_rank(hasher.n_bits, X.shape[1])
    scales = MULTIPLES * scale_of("eq25", spectrum.variances, hasher.n_bits)
    generator = numpy_generator(random_state)
    n_queries = min(_QUERIES, len(X) // 2)
    drawn = generator.permutation(len(X))[: n_queries + _ROWS]
    asked, rows = drawn[:n_queries], drawn[n_queries:]
    near = nearest_rows(unit_rows(X[rows]), unit_rows(X[asked]), _NEIGHBOURS)
    seed, by_labels, by_neighbours = draw_seed(generator), list[float](), list[float]()
    for i, scale in enumerate(scales.tolist(), 1):
        trial = clone(hasher).set_params(scale=scale, random_state=seed).fit(X[rows])
        queries, codes = trial.encode(X[asked]), trial.encode(X[rows])
        by_neighbours.append(float(hamming_histograms(queries, codes, neighbours=near).average_precision().mean()))
        record = {"scale": scale, "neighbour_map": by_neighbours[-1], "total": len(scales)}
        if labels is not None:
            found = hamming_histograms(queries, codes, labels[asked], labels[rows])
            by_labels.append(float(found.average_precision().mean()))
            record["label_map"] = by_labels[-1]
        callback(i, record)
    best = float(scales[int(np.argmax(by_labels or by_neighbours))])
    chosen = clone(hasher).set_params(scale=best)
    return ScaleSearch(chosen, best, scales, np.array(by_labels) if by_labels else None, np.array(by_neighbours))
