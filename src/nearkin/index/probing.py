"""How many lists of an inverted file a search should visit: recall and time for each number."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearkin._check import check_integer
from nearkin._types import ArrayLike
from nearkin.index.index import Index
from nearkin.metrics import recall_k_at_k
from nearkin.metrics.neighbours import ExactNeighbours


class Probing(NamedTuple):
    """What a search that visits `n_probe` lists finds."""

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
        or as `nearkin.metrics.neighbours` has them, where rows may lie at one distance.
    n_probes: numbers of lists, each at most that of the index; None for 1, 2, 4, ... and all.
    oversample: as in `Index.search`.

    The index's own n_probe is the same afterwards; other threads must not search meanwhile. ValueError for an index
    without an inverted file.
    """
    before, k = index.n_probe, check_integer(k, "k", low=1)
    if before is None:
        raise ValueError(
            "n_probe is for an inverted file, and this index has none; make it with n_lists > 0 (compress --coarse)"
        )
    truth = neighbours if isinstance(neighbours, ExactNeighbours) else ExactNeighbours.given(np.asarray(neighbours))
    counts = _doubling(index.n_lists or 1) if n_probes is None else list(n_probes)
    curve: list[Probing] = []
    try:
        for count in counts:
            index.n_probe = count
            start = time.perf_counter()
            found = index.search(Q, k, oversample=oversample)[1]
            curve.append(Probing(count, recall_k_at_k(found, truth.beside(found), k), time.perf_counter() - start))
    finally:
        index.n_probe = before
    return curve


def _doubling(most: int) -> list[int]:
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]
