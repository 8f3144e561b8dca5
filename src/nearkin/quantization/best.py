"""The code that keeps most neighbours at a size: product, axis, residual and scalar codes raced by held-out queries.

With many rows candidates are screened twice: all learn from few rows in few rounds, and those near the leader from
twice as many. Only the winner learns from all rows. Two fits of one code on few rows differ by one or two points where
a rotation is learned, so that a first screening alone is unreliable.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from nearkin._check import check_choice, check_integer, check_magnitude, check_queries, check_real, check_vectors
from nearkin._faiss import nearest_codes
from nearkin._random import draw_seed, numpy_generator
from nearkin._types import ArrayLike, Fields, Record, Seed
from nearkin.contracts import Callback, LengthCodes, VectorCodes, ignore
from nearkin.linalg.orthonormal import row_length, unit_rows
from nearkin.metrics.neighbours import Judge, nearest_rows
from nearkin.quantization.additive_learning import BY_PRODUCTS, INNER, KNOWN
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.faiss_bridge import SCANNED
from nearkin.quantization.norm_explicit import NormExplicitQuantizer
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import AbstractAdditiveQuantizer, ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

_SCREENING_SETTINGS = {"max_iter": 4, "beam_size": 8}
_SCANNED = f"residual, {SCANNED} centroids"  # whose norms are for FAISS's fast scan
_MOST = 12  # fits that are judged, at most


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the race, from SIFT, MNIST, GIST, sentences and word vectors; `python -m benchmarks codecs`
    measures the race as a whole.
    """

    fitted_rows: int = 65_536  # that a fit learns from, at most, with 256 centroids
    screening_rows: tuple[int, ...] = (4_096, 8_192)  # to learn from in a screening, at most
    screening_judged: int = 4_096  # rows that judge a screening
    screening_from: float = 1.25  # times the first screening's rows, below which there is none
    screening_growth: float = 1.5  # a full fit on as many rows takes 1.5 times as long
    near: float = 0.02  # recall gap to the leader of a screening beyond which a code drops out,
    far: float = 0.04  # or beyond this for longer sums, which gain more by more rows
    tie: float = 0.01  # recall gaps below count as ties
    tie_growth: float = 1.5  # if the final fit sees 1.5 times the rows; the longest sum then wins
    longest: int = 32  # codebooks of a residual code: longer ones are searched too slowly
    cheap: int = 16  # codebooks up to which it runs in any case; longer if other long sums are near the best
    chains: tuple[int, ...] = (4, 8, 16, 32)  # codebooks of each part of product residual codes, tried in turn
    short: int = 2  # codebooks of the sums tried last
    gain: float = 0.01  # recall that twice as long sums must gain for longer ones than 8 to run
    beam_size: int = 16  # of additive codes
    mostly_known: float = 0.5  # share of the index's rows learned from, from which codes are trained for these
    norm_bits: int = 8  # of a row's norm, if residual codes must be searched from tables
    speed_gap: float = 0.02  # recall given up for a search ten times as fast, with `fast_search`
    train_rows: int = 16_384  # of a race
    judged_rows: int = 8_192  # of a race
    queries: int = 1_000  # held out, at most
    neighbours: int = 10  # that count
    timed_queries: int = 20  # by which the speed of search is measured


DEFAULTS = Defaults()


class OutOfTime(Exception):
    """A candidate was stopped."""


class Clock:
    """The seconds given to a race, of which the leader's fit on all rows will need a part."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds
        self._needed: float | None = None  # by the leader; None before there is one
        self._began = self._stop = np.inf

    def starts(self, growth: float) -> bool:
        """Start a candidate whose fit on all rows takes `growth` times as long; False if no time is left."""
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
    """Rows to learn from, and the judge of the codes.

    Given queries are halved: one half may judge starts within a fit, the other judges the codes. Of the rows that judge
    as large a part, `known`, is among those to learn from as it will be in an index of `n_rows` rows.
    """

    train: np.ndarray
    judge: Judge
    given: np.ndarray | None
    known: float

    @classmethod
    def of(
        cls, X: np.ndarray, queries: ArrayLike | None, n_rows: int, metric: str, generator: np.random.Generator
    ) -> "Race":
        """Of rows X (n, d), of length 1 already for "cosine", queries (q, d) or None for rows held out."""
        order, given = generator.permutation(len(X)), None
        if queries is None:
            count = min(DEFAULTS.queries, max(len(X) // 16, min(100, len(X) // 10)))
            asked, order = X[order[:count]], order[count:]
        else:
            queries = check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = unit_rows(queries) if metric == "cosine" else queries
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = queries[:half][: DEFAULTS.queries], queries[half:]
        known = min(len(X), DEFAULTS.train_rows) / n_rows  # part of the index's rows
        unseen = min(round((1 - known) * DEFAULTS.judged_rows), round((1 - known) * len(order)), len(order) // 4)
        judged = len(order) if known == 1 else round(unseen / (1 - known))
        train = order[unseen : unseen + DEFAULTS.train_rows]
        rows = X[np.concatenate([order[:unseen], train[: min(DEFAULTS.judged_rows, judged) - unseen]])]
        judge = Judge.of(rows, asked, DEFAULTS.neighbours, "l2" if metric == "l2" else "ip")
        return cls(X[train], judge, given, known)

    def fewer(self, n_train: int, n_rows: int) -> "Race":
        """The same with the first `n_train` rows to learn from, and `n_rows` in all, mixed alike, to judge by."""
        unseen = round((1 - self.known) * n_rows)
        train = self.train[:n_train]
        rows = np.concatenate([self.judge.rows[:unseen], train[: n_rows - unseen]])
        return replace(
            self, train=train, judge=Judge.of(rows, self.judge.queries, DEFAULTS.neighbours, self.judge.metric)
        )

    def run(self, name: str, quantizer: VectorCodes, tick: Callback = ignore) -> Record:
        """Fit on the training rows, code the others, and say how many neighbours the codes keep."""
        started, judge = time.process_time(), self.judge
        fitted = self.fitted(quantizer, self.train, tick)
        learned = time.process_time()
        index = fitted.to_faiss(judge.metric)
        fitted.add_to(index, judge.rows)
        encoded = time.process_time()
        ordered = isinstance(fitted, AbstractAdditiveQuantizer) and fitted.learned_order
        length = None if ordered else row_length(judge.rows, bool(fitted.normalized_))
        if isinstance(fitted, LengthCodes):  # an index answers by the lengths that its codes hold
            decoded = fitted.decode(fitted.encode(judge.rows))
            found = nearest_rows(decoded, judge.queries, DEFAULTS.neighbours, judge.metric)
        else:
            found = nearest_codes(index, judge.queries, DEFAULTS.neighbours, judge.metric, length)
        speed = 1000 * (encoded - learned) / len(judge.rows)
        searched, timed = time.process_time(), judge.queries[: DEFAULTS.timed_queries]
        index.search(timed, judge.k)
        search = 1e6 * (time.process_time() - searched) / len(timed) / len(judge.rows)
        return {
            "name": name, "bytes": index.sa_code_size(), "recall": judge.truth.kept(found), "rows": len(self.train),
            "seconds": learned - started, "encode_seconds": speed, "search_seconds": search,
        }  # fmt: skip

    def fitted(self, quantizer: VectorCodes, X: np.ndarray, callback: Callback = ignore) -> VectorCodes:
        """Fitted on rows X (n, d); the given queries are passed on if the quantizer learns for the index's metric."""
        if isinstance(quantizer, AbstractAdditiveQuantizer):
            uses_queries = quantizer.ranking in BY_PRODUCTS
        else:
            uses_queries = self.judge.metric == "l2" and isinstance(quantizer, ProductQuantizer | NormExplicitQuantizer)
        options = {"queries": self.given} if uses_queries and self.given is not None else {}
        return quantizer.fit(X, **options, callback=callback)  # pyright: ignore[reportCallIssue]


class Best(NamedTuple):
    """`quantizer`: the winner, fitted on all rows; `table`: a record for each that ran, the winner first.

    A record holds "name", "bytes", "recall" (of 10 neighbours of rows held out as queries, or of given ones, by codes
    alone), "rows" that were learned from, "seconds" of processor time for the fit, "encode_seconds" for a thousand rows
    and "search_seconds" for a thousand queries and a thousand rows. Codes that were left out after a first screening,
    with fewer rows, stand behind.
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
    metric: str = "l2",
    fast_search: bool = False,
    random_state: Seed = None,
    callback: Callback | None = None,
) -> Best:
    """Race codecs, rotations and starts at no more than `n_bytes` a row for rows X (n, d); at least 100 rows.

    `queries` (m, d) judge where rows will be searched by others than themselves. `n_rows` is how many rows the index
    will hold, by default those of X. Codes keep more neighbours of rows that they were learned from than of others,
    long sums above all; the rows that judge are therefore mixed as the index's: all learned from where X is all and
    has at most 16,384 rows, hardly any where X is a small sample of `n_rows`.

    `metric` is what the index will be searched by: "l2", "ip" (inner product: give `queries`, as rows are seldom like
    them) or "cosine", for which codes are learned from the rows at length 1, as `nk.Index` stores them.

    Within `seconds` of the clock the winner is to be fitted: a candidate that would leave no time for that is stopped,
    and is not in the table; the first one, the cheapest, is fitted in any case. With `fast_search` residual codes
    spend a byte on the row's norm, by which FAISS searches them from tables; without it decodes every row for every
    query, tens of times slower. By "ip" and "cosine" tables need no norm. By "l2" residual codes of 16 centroids race
    too, which FAISS scans ten times as fast as any other: they win if they are at most .02 behind the leader.
    Candidates learn from at most 16,384 rows; the winner then from all. Where half of the index's rows or more are
    learned from, codes are trained for these ("known" in `ResidualQuantizer`), and the leader races once more without
    rows drawn between near ones. `callback(step, record)` is called after each candidate. ValueError or TypeError,
    before any work, for what cannot be used.

    >>> X = np.random.default_rng(0).normal(size=(800, 16)).astype(np.float32)
    >>> found = best(X, 4, random_state=0)
    >>> found.quantizer.encode(X).shape
    (800, 4)
    """
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    X = check_magnitude(check_vectors(X, min_rows=100)).astype(np.float32)
    X = unit_rows(X) if metric == "cosine" else X
    check_integer(n_bytes, "n_bytes", low=1)
    clock = Clock(np.inf if seconds is None else check_real(seconds, "seconds", low=0))
    generator = numpy_generator(random_state)
    n_rows = check_integer(len(X) if n_rows is None else n_rows, "n_rows", low=len(X))
    race, seed = Race.of(X, queries, n_rows, metric, generator), draw_seed(generator)
    steps = itertools.count(1)

    def tell(record: Record) -> None:
        (callback or ignore)(next(steps), {"total": _MOST, "objective": -record["recall"], **record})

    known = {"l2": KNOWN["l2"], "cosine": KNOWN["ip"]}.get(metric) if race.known >= DEFAULTS.mostly_known else None
    settings = {
        "norm_bits": DEFAULTS.norm_bits if fast_search and metric == "l2" else 0,
        "smoothing": 1.0 if known else 1 - race.known / 2,
        "ranking": known or metric == "l2" or INNER,
        "random_state": seed,
    }
    fitted = min(len(X), DEFAULTS.fitted_rows)
    kept: dict[str, float] = {}  # recall of each finished candidate; decides which are tried next
    candidates = _candidates(n_bytes, X.shape[1], len(race.train), settings, kept, row_length(race.train) is None)
    found: list[_Entry] = []
    for screening in _screenings(race, fitted):
        ended = _run(screening, candidates, kept, clock, tell)
        if found and not any(entry.name == found[0].name for entry in ended):
            break  # no time for the leader
        names = {entry.name for entry in ended}
        found = ended + [entry for entry in found if entry.name not in names]
        near = _near(found[: len(ended)])
        if len(near) == 1:
            break
        candidates, kept = iter([entry.candidate for entry in near]), {}
    lead = found[0].candidate
    if known and lead.length > 1:  # a sum, learned from the given rows only: drawn rows do not help on all data
        undrawn = lead._replace(name=f"{lead.name}, no rows drawn", make=lambda: _set(lead.make(), {"smoothing": 0.0}))
        screening = _Screening(race, {}, fitted / len(race.train))
        found = sorted(found + _run(screening, iter([undrawn]), kept, clock, tell), key=lambda entry: -entry.recall)
    winner = _winner(found, fitted, race.known)
    table = [winner.record, *(entry.record for entry in found if entry is not winner)]
    return Best(race.fitted(winner.candidate.make(), X), table)


class _Candidate(NamedTuple):
    """A code: its name, how many centroids are added up in a part of the row, and what makes an unfitted one."""

    name: str
    length: int
    make: Callable[[], VectorCodes]


Candidates: TypeAlias = Iterator[_Candidate]


class _Entry(NamedTuple):
    """A finished candidate and its record."""

    record: Record
    candidate: _Candidate

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def recall(self) -> float:
        return self.record["recall"]


class _Screening(NamedTuple):
    """A screening: its race, the settings that replace those of the candidates, and the time of a fit on all rows as a
    multiple of a fit here."""

    race: Race
    settings: Mapping[str, int]
    growth: float


def _screenings(race: Race, n: int) -> Iterator[_Screening]:
    """Screenings of the race for `n` rows of the winner; only the full one where rows searched are learned from."""
    if race.known >= DEFAULTS.mostly_known or len(race.train) < DEFAULTS.screening_from * DEFAULTS.screening_rows[0]:
        yield _Screening(race, {}, n / len(race.train))
        return
    first, second = (race.fewer(count, DEFAULTS.screening_judged) for count in DEFAULTS.screening_rows)
    yield _Screening(first, _SCREENING_SETTINGS, DEFAULTS.screening_growth * n / len(first.train))
    yield _Screening(second, {}, n / len(second.train))


def _run(
    screening: _Screening, candidates: Candidates, kept: dict[str, float], clock: Clock, tell: Callable[[Record], None]
) -> list[_Entry]:
    """Those that ended in time, the best first; `kept` gets the recall of each before the next is asked for."""
    entries: list[_Entry] = []
    for candidate in candidates:
        if not clock.starts(screening.growth):
            break
        kept[candidate.name] = -1.0  # below what any code keeps
        try:
            record = screening.race.run(candidate.name, _set(candidate.make(), screening.settings), clock.tick)
        except OutOfTime:
            continue
        if record["recall"] > max(kept.values()):
            clock.leads(screening.growth)
        kept[candidate.name] = record["recall"]
        entries.append(_Entry(record, candidate))
        tell(record)
    return sorted(entries, key=lambda entry: -entry.recall)  # stable: of equals, the cheaper that ran first


def _set(quantizer: VectorCodes, settings: Mapping[str, float]) -> VectorCodes:
    """The quantizer with those of the settings that it has."""
    for name in settings.keys() & vars(quantizer).keys():
        setattr(quantizer, name, settings[name])
    return quantizer


def _winner(found: list[_Entry], n: int, known: float) -> _Entry:
    """The leader, or codes searched ten times as fast that are near it; where `n`, many more rows, will be learned
    from, the longest of the sums that are level with it."""
    lead = found[0]
    for entry in found:
        if (
            entry.name == _SCANNED
            and entry.record["rows"] == lead.record["rows"]
            and entry.recall >= lead.recall - DEFAULTS.speed_gap
        ):
            return entry
    if known >= DEFAULTS.mostly_known or n < DEFAULTS.tie_growth * lead.record["rows"]:
        return lead
    level = [e for e in found if e.record["rows"] == lead.record["rows"] and e.recall >= lead.recall - DEFAULTS.tie]
    return max(level, key=lambda entry: entry.candidate.length)


def _near(found: list[_Entry]) -> list[_Entry]:
    """The leader, and those that may be ahead of it with more rows: the longer the sum, the more it gains by them."""
    lead = found[0]
    longer = [entry.candidate.length > lead.candidate.length for entry in found]
    gaps = [DEFAULTS.far if more else DEFAULTS.near for more in longer]
    return [entry for entry, gap in zip(found, gaps, strict=True) if entry.recall >= lead.recall - gap]


def _candidates(
    n_bytes: int, d: int, n: int, settings: dict[str, Any], kept: dict[str, float], lengths_differ: bool = False
) -> Candidates:
    """What fits the bytes, the columns and the rows to learn from, the cheapest first; `settings` are of sums."""
    K, seed = 256 if n >= 256 else 16, settings["random_state"]
    units = n_bytes if K == 256 else 2 * n_bytes  # codes of K centroids
    if d <= 8 * n_bytes <= 8 * d:  # from a bit a column
        yield _Candidate("axes", 1, lambda: AxisQuantizer(n_bytes))
    if units <= d:
        yield _Candidate("product", 1, lambda: ProductQuantizer(units, K, random_state=seed))
        if K == 256 and n_bytes > 1 and lengths_differ:
            yield _Candidate("product with length", 1, lambda: NormExplicitQuantizer(n_bytes, random_state=seed))
        yield _Candidate("product, no rotation", 1, lambda: ProductQuantizer(units, K, None, random_state=seed))
    for bits in (16, 8, 6, 4):
        if -(-bits * d // 8) <= n_bytes:
            yield _Candidate(f"scalar, {bits} bits", 1, lambda bits=bits: ScalarQuantizer(bits))
            break
    settings = {**settings, "n_centroids": K, "beam_size": DEFAULTS.beam_size}
    short = (8 * n_bytes - settings["norm_bits"]) // 4  # codes of 4 bits
    if settings["norm_bits"] and K > SCANNED and 1 < short <= DEFAULTS.longest:
        yield _Candidate(_SCANNED, 1, lambda: ResidualQuantizer(short, **{**settings, "n_centroids": SCANNED}))
    yield from _sums((8 * n_bytes - settings["norm_bits"]) // (K.bit_length() - 1), d, settings, kept)


def _sums(units: int, d: int, settings: dict[str, Any], kept: dict[str, float]) -> Candidates:
    """Product residual and residual codes of `units` codebooks, the short sums only where long ones do not pay."""
    length: dict[str, int] = {}
    for target in (*DEFAULTS.chains, DEFAULTS.short):
        if target == DEFAULTS.short:
            if 1 < units <= DEFAULTS.longest and (units <= DEFAULTS.cheap or _margin(length, kept) >= -DEFAULTS.near):
                length["residual"] = units
                yield _Candidate("residual", units, lambda: ResidualQuantizer(units, **settings))
            if length.get(max(kept, key=lambda name: kept[name]), 1) > DEFAULTS.chains[0]:
                break
        elif target > DEFAULTS.chains[1] and _margin(length, kept) < DEFAULTS.gain:
            continue
        chain = _chain(units, target, set(length.values()))
        splits, name = units // chain, f"product residual, {units // chain} x {chain}"
        if 1 < splits <= d and name not in kept:
            length[name] = chain
            yield _Candidate(name, chain, lambda s=splits, c=chain: ProductResidualQuantizer(s, c, **settings))


def _chain(units: int, target: int, used: set[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)


def _margin(length: dict[str, int], kept: dict[str, float]) -> float:
    """How much more the longest of the sums that ran keeps than any other; 0 where fewer than two ran."""
    if len(length) < 2:
        return 0.0
    *others, longest = sorted(length, key=lambda name: length[name])
    return kept[longest] - max(kept[name] for name in others)


@dataclass(eq=False, repr=False)
class BestCode(BaseEstimator):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner."""

    n_bytes: int
    seconds: float | None = None
    random_state: Seed = None
    n_rows: int | None = None
    metric: str = "l2"

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
        settings = {"n_rows": self.n_rows, "metric": self.metric, "random_state": self.random_state}
        return best(X, self.n_bytes, queries, self.seconds, **settings, callback=callback).quantizer
