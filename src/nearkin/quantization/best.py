"""The code that keeps most neighbours at a size: product, residual and scalar codes raced by held-out queries."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from nearkin._check import check_integer, check_magnitude, check_queries, check_real, check_vectors
from nearkin._faiss import nearest_codes
from nearkin._random import draw_seed, numpy_generator
from nearkin._types import ArrayLike, Fields, Record, Seed
from nearkin.contracts import Callback, VectorCodes, ignore
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.product_residual import ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

_TRAIN, _JUDGED, _QUERIES, _NEIGHBOURS = 16_384, 8_192, 500, 10
_FITTED = 65_536  # rows that a fit learns from, at most, with 256 centroids
_LONGEST = 32  # codebooks of a residual code: beyond, its search takes longer than it is worth
_CHEAP = 16  # those that run in any case
_CHAINS = (4, 8, 2)  # codebooks of each part of product residual codes; which pays depends on the bits a column
_BEAM = 16
_NORM = 8  # bits of a row's norm, where residual codes must be searched from tables
_MOST = 8  # candidates at most
_TIMED = 20  # queries by which the speed of search is told


class Best(NamedTuple):
    """`quantizer`: the winner, fitted on all rows; `table`: a record for each that ran, the best first.

    A record holds "name", "bytes", "recall" (of 10 neighbours of rows held out as queries, or of given ones, by codes
    alone), "seconds" of processor time for the fit, "encode_seconds" for a thousand rows and "search_seconds" for a
    thousand queries and a thousand rows.
    """

    quantizer: VectorCodes
    table: list[Record]


def best(
    X: ArrayLike,
    n_bytes: int,
    queries: ArrayLike | None = None,
    seconds: float | None = None,
    *,
    n_rows: int | None = None,
    fast_search: bool = False,
    random_state: Seed = None,
    callback: Callback | None = None,
) -> Best:
    """Race codecs, rotations and starts at no more than `n_bytes` a row for rows X (n, d); at least 100 rows.

    `queries` (m, d) judge where rows will be searched by others than themselves. `n_rows` is how many rows the index
    will hold, by default those of X. Codes keep more neighbours of rows that they were learned from than of others,
    long sums above all; the rows that judge are therefore mixed as the index's: all learned from where X is all and
    has at most 16,384 rows, hardly any where X is a small sample of `n_rows`.

    Within `seconds` of the clock the winner is to be fitted: a candidate that would leave no time for that is stopped,
    and is not in the table; product codes, the cheapest, are fitted in any case. With `fast_search` residual codes
    spend a byte on the row's norm, by which FAISS searches them from tables; without it decodes every row for every
    query, tens of times slower.
    Candidates learn from at most 16,384 rows; the winner then from all.
    `callback(step, record)` hears of each candidate. ValueError or TypeError, before any work, for what cannot be used.

    >>> X = np.random.default_rng(0).normal(size=(800, 16)).astype(np.float32)
    >>> found = best(X, 4, random_state=0)
    >>> found.quantizer.encode(X).shape
    (800, 4)
    """
    X = check_magnitude(check_vectors(X, min_rows=100)).astype(np.float32)
    check_integer(n_bytes, "n_bytes", low=1)
    clock = _Clock(np.inf if seconds is None else check_real(seconds, "seconds", low=0))
    generator = numpy_generator(random_state)
    n_rows = check_integer(len(X) if n_rows is None else n_rows, "n_rows", low=len(X))
    race, seed = _Race.of(X, queries, n_rows, generator), draw_seed(generator)
    kept: dict[str, float] = {}  # read by the candidates: what ran says what is worth a run
    table: list[Record] = []
    made: dict[str, Callable[[], VectorCodes]] = {}
    growth = min(len(X), _FITTED) / len(race.train)
    settings = {"norm_bits": _NORM if fast_search else 0, "smoothing": race.smoothing, "random_state": seed}
    for name, make in _candidates(n_bytes, X.shape[1], len(race.train), settings, kept):
        if not clock.starts(growth):
            break
        kept[name] = -1.0  # below what any code keeps
        try:
            record = race.run(name, make(), clock.tick)
        except _OutOfTime:
            continue
        if record["recall"] > max(kept.values()):
            clock.leads(growth)
        made[name], kept[name] = make, record["recall"]
        table.append(record)
        (callback or ignore)(len(table), {"total": _MOST, "objective": -kept[name], **table[-1]})
    table.sort(key=lambda record: -record["recall"])  # stable: of equals, the cheaper that ran first
    winner = made[table[0]["name"]]()
    return Best(_fitted(winner, X, race.given), table)


Candidates = Iterator[tuple[str, Callable[[], VectorCodes]]]


def _candidates(n_bytes: int, d: int, n: int, settings: dict[str, Any], kept: dict[str, float]) -> Candidates:
    """What fits the bytes, the columns and the rows to learn from, the cheapest first; `settings` are of sums."""
    K, seed = 256 if n >= 256 else 16, settings["random_state"]
    units = n_bytes if K == 256 else 2 * n_bytes  # codes of K centroids
    if units <= d:
        yield "product", lambda: ProductQuantizer(units, K, random_state=seed)
        yield "product, no rotation", lambda: ProductQuantizer(units, K, None, random_state=seed)
    for bits in (16, 8, 6, 4):
        if -(-bits * d // 8) <= n_bytes:
            yield f"scalar, {bits} bits", lambda bits=bits: ScalarQuantizer(bits)
            break
    settings = {**settings, "n_centroids": K, "beam_size": _BEAM}
    yield from _sums((8 * n_bytes - settings["norm_bits"]) // (K.bit_length() - 1), d, settings, kept)


def _sums(units: int, d: int, settings: dict[str, Any], kept: dict[str, float]) -> Candidates:
    """Product residual and residual codes of `units` codebooks, the short sums only where long ones do not pay."""
    length = dict.fromkeys(kept, 1)
    for target in _CHAINS:
        if target == min(_CHAINS):
            if 1 < units <= _LONGEST and (units <= _CHEAP or _longest_leads(length, kept)):
                length["residual"] = units
                yield "residual", lambda: ResidualQuantizer(units, **settings)
            if length[_leader(kept)] > max(4, target):
                break
        chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)  # that wastes the fewest bytes
        splits, name = units // chain, f"product residual, {units // chain} x {chain}"
        if 1 < splits <= d and name not in kept:
            length[name] = chain
            yield name, lambda s=splits, c=chain: ProductResidualQuantizer(s, c, **settings)


def _leader(kept: dict[str, float]) -> str:
    return max(kept, key=lambda name: kept[name])


def _longest_leads(length: dict[str, int], kept: dict[str, float]) -> bool:
    """Of the sums that ran, whether the longest keep most: else those of all codebooks, the dearest, hardly would."""
    ran = [name for name in length if length[name] > 1]
    return all(length[name] <= length[_leader(kept)] for name in ran) if len(ran) > 1 else True


def _fitted(
    quantizer: VectorCodes, X: np.ndarray, queries: np.ndarray | None, callback: Callback = ignore
) -> VectorCodes:
    if queries is not None and isinstance(quantizer, ProductQuantizer):
        return quantizer.fit(X, queries=queries, callback=callback)  # pyright: ignore[reportReturnType]
    return quantizer.fit(X, callback=callback)  # pyright: ignore[reportCallIssue]


class _OutOfTime(Exception):
    """A candidate was stopped."""


class _Clock:
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
        """The callback of a candidate's fit: _OutOfTime where it would leave too little."""
        del step, record
        if time.perf_counter() > self._stop:
            raise _OutOfTime

    def leads(self, growth: float) -> None:
        """The candidate that was started leads."""
        self._needed = growth * (time.perf_counter() - self._began)


@dataclass(frozen=True)
class _Race:
    """Rows to learn from and to judge by, queries and the rows (by number) that are truly nearest to them.

    Given queries are halved: one half may judge starts within a fit, the other judges the codes. Of the rows that judge
    as large a part is among those to learn from as it will be in an index of `n_rows` rows; the smaller it is, the more
    `smoothing` there is in learning sums.
    """

    train: np.ndarray
    rows: np.ndarray
    queries: np.ndarray
    given: np.ndarray | None
    truth: ExactNeighbours = field(repr=False)
    smoothing: float

    @classmethod
    def of(cls, X: np.ndarray, queries: ArrayLike | None, n_rows: int, generator: np.random.Generator) -> "_Race":
        order, given = generator.permutation(len(X)), None
        if queries is None:
            count = min(_QUERIES, len(X) // 10)
            asked, order = X[order[:count]], order[count:]
        else:
            queries = check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = queries[:half][: 2 * _QUERIES], queries[half:]
        known = min(len(X), _TRAIN) / n_rows  # part of the index's rows
        unseen = min(round((1 - known) * _JUDGED), round((1 - known) * len(order)), len(order) // 4)
        judged = len(order) if known == 1 else round(unseen / (1 - known))
        train = order[unseen : unseen + _TRAIN]
        rows = X[np.concatenate([order[:unseen], train[: min(_JUDGED, judged) - unseen]])]
        train = X[train]
        return cls(train, rows, asked, given, ExactNeighbours.of(rows, asked, _NEIGHBOURS), 1 - known / 2)

    def run(self, name: str, quantizer: VectorCodes, tick: Callback = ignore) -> Record:
        """Fit on the training rows, code the others, and say how many neighbours the codes keep."""
        started = time.process_time()
        fitted = _fitted(quantizer, self.train, self.given, tick)
        learned = time.process_time()
        index = fitted.to_faiss()
        fitted.add_to(index, self.rows)
        encoded = time.process_time()
        found = nearest_codes(index, self.queries, _NEIGHBOURS)
        speed = 1000 * (encoded - learned) / len(self.rows)
        searched = time.process_time()
        index.search(self.queries[:_TIMED], self.truth.ids.shape[1])
        search = 1e6 * (time.process_time() - searched) / len(self.queries[:_TIMED]) / len(self.rows)
        size = index.sa_code_size()
        return {
            "name": name, "bytes": size, "recall": self.truth.kept(found),
            "seconds": learned - started, "encode_seconds": speed, "search_seconds": search,
        }  # fmt: skip


@dataclass(eq=False, repr=False)
class BestCode(BaseEstimator):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner."""

    n_bytes: int
    seconds: float | None = None
    random_state: Seed = None
    n_rows: int | None = None

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        queries: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> VectorCodes:
        """The fitted winner of the race on rows X (n, d), judged by `queries` (q, d) or by rows held out."""
        del y
        settings = {"n_rows": self.n_rows, "random_state": self.random_state, "callback": callback}
        return best(X, self.n_bytes, queries, self.seconds, **settings).quantizer
