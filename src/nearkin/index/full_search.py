"""Recall and time of a search."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from nearkin.contracts import Callback, ignore
from nearkin.index.identifiers import named
from nearkin.index.index import Index
from nearkin.index.kept_vectors import rescore
from nearkin.index.searching import normalised
from nearkin.metrics.neighbours import ExactNeighbours, Part, drawn_order, with_ties
from nearkin.metrics.retrieval import without_self

_QUERIES = 4096  # searched at a time


@dataclass
class FullSearch:
    """A search for k by queries Q (q, d) that leaves no order to the numbers of vectors with equal scores.

    Answers reach down to the last vector of the k-th one's score; candidates to rescore are drawn among those of equal
    scores. `own` (q,) are the ids of queries that are vectors of the index, which do not count as answers. `seconds`
    are those that the search for k alone took, known at the end.
    """

    index: Index
    Q: np.ndarray
    k: int
    oversample: float | None = None
    own: np.ndarray | None = None
    seconds: float = 0.0

    def parts(self, callback: Callback = ignore, *, ties: bool = True) -> Iterator[Part]:
        """The answers of some queries at a time; without `ties` only k of them."""
        index, kept, n, done = self.index, None if self.oversample is None else self.index.kept, len(self.index), 0
        wanted = min(self.k + (self.own is not None), n)
        most = wanted if kept is None else min(n, math.ceil(wanted * cast(float, self.oversample)))
        Q = (normalised(self.Q) if index.metric == "cosine" else self.Q).astype(np.float32, copy=False)

        def search(some: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
            start = time.perf_counter()
            found = (index.search if kept is None else index.candidates)(Q[some], depth)
            self.seconds += (time.perf_counter() - start) * (depth <= most + 1)  # not the further search
            return found

        for some, scores, ids in with_ties(search, len(Q), most, n if ties else most, _QUERIES):
            if kept is not None:
                start, metric = time.perf_counter(), "l2" if index.metric == "hamming" else index.metric
                candidates = drawn_order(scores, ids, some)[:, :most]
                scores, places = rescore(Q[some], candidates, kept, wanted, metric)
                ids = named(places, index.ids)
                self.seconds += time.perf_counter() - start
            if self.own is not None:
                scores, ids = (without_self(ids, self.own[some], of) for of in (scores, ids))
            yield some, scores, ids
            done += len(some)
            callback(done, {"total": len(Q)})

    def recalls(
        self, truth: ExactNeighbours, cuts: Sequence[tuple[int, int]], callback: Callback = ignore
    ) -> dict[tuple[int, int], np.ndarray]:
        """{(n, depth): share (q,) of the n nearest that are expected among the first `depth`, up to k}."""
        shares = {cut: np.empty(len(self.Q)) for cut in cuts}
        for some, scores, ids in self.parts(callback):
            levels = None if self.index.quantizer is None else scores  # exact scores: `truth` knows what is equal
            for cut, values in truth.take(some).recalls(ids, cuts, levels).items():
                shares[cut][some] = values
        return shares
