"""Recall and time of an inverted file by the number of lists that a search visits."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearkin._check import check_integer
from nearkin._types import ArrayLike
from nearkin.index.index import Index
from nearkin.metrics import recall_k_at_k
from nearkin.metrics.retrieval import ExactNeighbours


class Probing(NamedTuple):
    """Recall and time of a search that visits `n_probe` lists."""

    n_probe: int
    recall: float
    seconds: float


def probing_curve(
    index: Index,
    Q: ArrayLike,
    neighbours: ArrayLike | ExactNeighbours,
    k: int = 10,
    *,
    n_probes: Iterable[int] | None = None,
    oversample: float | None = None,
) -> list[Probing]:
    """The share of the k true neighbours that queries Q (q, d) find, and the seconds of the search, for each n_probe.

    neighbours: ids (q, at least k) of the true neighbours, nearest first: `Index.build(X, ids=ids).search(Q, k)[1]`;
        or as `nearkin.metrics.retrieval` has them, where rows may lie at one distance.
    n_probes: numbers of lists, each at most that of the index; None for 1, 2, 4, ... and all.
    oversample: as in `Index.search`.

    The index's own n_probe is the same afterwards; other threads must not search meanwhile. ValueError for an index
    without an inverted file.
    """
    k, before, n_lists = check_integer(k, "k", low=1), index.n_probe, index.n_lists or 0
    truth = neighbours if isinstance(neighbours, ExactNeighbours) else ExactNeighbours.given(np.asarray(neighbours))
    doubled = [2**i for i in range(n_lists.bit_length()) if 2**i < n_lists]
    curve: list[Probing] = []
    try:
        for count in [*doubled, n_lists] if n_probes is None else n_probes:
            index.n_probe = count  # raises without an inverted file
            start = time.perf_counter()
            found = index.search(Q, k, oversample=oversample)[1]
            curve.append(Probing(count, recall_k_at_k(found, truth.matched(found), k), time.perf_counter() - start))
    finally:
        if before is not None:
            index.n_probe = before
    return curve
