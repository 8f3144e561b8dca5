"""How codes are compared: rows to learn from, rows and queries to judge by, and the time that there is."""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from nearkin._check import check_queries
from nearkin._faiss import nearest_codes
from nearkin._types import ArrayLike, Fields, Record
from nearkin.contracts import Callback, VectorCodes, ignore
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.quantization.additive_estimator import AbstractAdditiveQuantizer
from nearkin.quantization.additive_learning import BY_PRODUCTS
from nearkin.quantization.product import ProductQuantizer

_TRAIN, _JUDGED, _QUERIES, _NEIGHBOURS = 16_384, 8_192, 1_000, 10
_TIMED = 20  # queries by which the speed of search is told


class OutOfTime(Exception):
    """A candidate was stopped."""


class Clock:
    """The seconds given to a race, of which the leader's fit on all rows will need a part."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds
        self._needed: float | None = None  # by the leader; None before there is one
        self._began = self._stop = np.inf

    def starts(self, growth: float) -> bool:
        """Start a candidate, whose fit on all rows will take `growth` times as long; False where no time is left.

        The first one runs in any case.
        """
        self._began = time.perf_counter()
        if self._needed is None:
            return True
        left = self._end - self._began
        self._stop = self._began + min(left - self._needed, left / (1 + growth))
        return self._stop > self._began

    def tick(self, step: int, record: Fields) -> None:
        """The callback of a candidate's fit: OutOfTime where it would leave too little."""
        del step, record
        if time.perf_counter() > self._stop:
            raise OutOfTime

    def leads(self, growth: float) -> None:
        """The candidate that was started leads."""
        self._needed = growth * (time.perf_counter() - self._began)


@dataclass(frozen=True)
class Race:
    """Rows to learn from and to judge by, queries and the rows (by number) that are truly nearest to them.

    Given queries are halved: one half may judge starts within a fit, the other judges the codes. Of the rows that judge
    as large a part, `known`, is among those to learn from as it will be in an index of `n_rows` rows.
    """

    train: np.ndarray
    rows: np.ndarray
    queries: np.ndarray
    given: np.ndarray | None
    metric: str
    known: float
    truth: ExactNeighbours = field(repr=False)

    @classmethod
    def of(
        cls, X: np.ndarray, queries: ArrayLike | None, n_rows: int, metric: str, generator: np.random.Generator
    ) -> "Race":
        """Of rows X (n, d), of length 1 already for "cosine", queries (q, d) or None for rows held out."""
        order, given = generator.permutation(len(X)), None
        if queries is None:
            count = min(_QUERIES, max(len(X) // 16, min(100, len(X) // 10)))
            asked, order = X[order[:count]], order[count:]
        else:
            queries = check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = unit_rows(queries) if metric == "cosine" else queries
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = queries[:half][:_QUERIES], queries[half:]
        known = min(len(X), _TRAIN) / n_rows  # part of the index's rows
        unseen = min(round((1 - known) * _JUDGED), round((1 - known) * len(order)), len(order) // 4)
        judged = len(order) if known == 1 else round(unseen / (1 - known))
        train = order[unseen : unseen + _TRAIN]
        rows = X[np.concatenate([order[:unseen], train[: min(_JUDGED, judged) - unseen]])]
        inner = "l2" if metric == "l2" else "ip"
        truth = ExactNeighbours.of(rows, asked, _NEIGHBOURS, inner)
        return cls(X[train], rows, asked, given, inner, known, truth)

    def fewer(self, n_train: int, n_rows: int) -> "Race":
        """The same with the first `n_train` rows to learn from, and `n_rows` in all, mixed alike, to judge by."""
        unseen = round((1 - self.known) * n_rows)
        train = self.train[:n_train]
        rows = np.concatenate([self.rows[:unseen], train[: n_rows - unseen]])
        truth = ExactNeighbours.of(rows, self.queries, _NEIGHBOURS, self.metric)
        return replace(self, train=train, rows=rows, truth=truth)

    def run(self, name: str, quantizer: VectorCodes, tick: Callback = ignore) -> Record:
        """Fit on the training rows, code the others, and say how many neighbours the codes keep."""
        started = time.process_time()
        fitted = self.fitted(quantizer, self.train, tick)
        learned = time.process_time()
        index = fitted.to_faiss(self.metric)
        fitted.add_to(index, self.rows)
        encoded = time.process_time()
        found = nearest_codes(index, self.queries, _NEIGHBOURS, self.metric)
        speed = 1000 * (encoded - learned) / len(self.rows)
        searched = time.process_time()
        index.search(self.queries[:_TIMED], self.truth.ids.shape[1])
        search = 1e6 * (time.process_time() - searched) / len(self.queries[:_TIMED]) / len(self.rows)
        return {
            "name": name, "bytes": index.sa_code_size(), "recall": self.truth.kept(found), "rows": len(self.train),
            "seconds": learned - started, "encode_seconds": speed, "search_seconds": search,
        }  # fmt: skip

    def fitted(self, quantizer: VectorCodes, X: np.ndarray, callback: Callback = ignore) -> VectorCodes:
        """Fitted on rows X (n, d); a rotation chosen by distance hears of the queries where these ask by distance, and
        codes learned for inner products where they ask by those."""
        if isinstance(quantizer, AbstractAdditiveQuantizer):
            hears = quantizer.ranking in BY_PRODUCTS
        else:
            hears = self.metric == "l2" and isinstance(quantizer, ProductQuantizer)
        told = {"queries": self.given} if hears and self.given is not None else {}
        return quantizer.fit(X, **told, callback=callback)  # pyright: ignore[reportCallIssue]
