"""The code with the highest recall at a size: product, axis, residual and scalar codes raced on held-out queries.

All candidates are screened by short fits on few rows; the winner alone is fitted in full. Two short fits of one code
differ by one or two points of recall, so codes within two points are level, and of these the longest sum wins: it
gains most by more rows and more rounds.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from timeit import repeat, timeit
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
from sklearn.base import BaseEstimator

from nearkin._check import (
    check_choice,
    check_integer,
    check_magnitude,
    check_queries,
    check_real,
    check_vectors,
    draw_seed,
    numpy_generator,
)
from nearkin._faiss import nearest_codes
from nearkin._types import ArrayLike, Fields, Record, Seed
from nearkin.contracts import Callback, Codec, Fittable, VectorCodes, ignore, takes_length
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import row_length, unit_rows
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import HeldOut
from nearkin.quantization.additive import BY_PRODUCTS, INNER, KNOWN
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from nearkin.quantization.sized import ProductCode, SizedCode, WithNorms, fitted_code

_MOST = 11  # fits that are judged, at most


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the race, from SIFT, MNIST, GIST, sentences and word vectors; `python -m benchmarks codecs`
    measures the race as a whole.
    """

    fitted_rows: int = 65_536  # rows of a fit, at most, with 256 centroids
    screening_rows: int = 4_096  # rows of a candidate's training set, and of its test set, at most
    screening_rounds: int = 4
    screening_beam: int = 8
    growth: float = 2.0  # a full fit on the rows of the screening takes twice as long
    level: float = 0.02  # gap to a recall of .5 below which codes are level; the longest sum then wins
    longest: int = 32  # most codebooks of a residual code: longer ones are searched too slowly
    cheap: int = 16  # codebooks up to which it runs first; a longer one if other long sums are near the best
    chains: tuple[int, ...] = (4, 8)  # codebooks of each part of product residual codes, tried in turn
    beam_size: int = 16  # of additive codes
    learned_rows: int = 16_384  # of the index that codes can be trained for
    mostly_known: float = 0.5  # if this share of the index's rows is learned from, codes are trained for these rows
    timed_queries: int = 20  # queries that measure the speed of search


DEFAULTS = Defaults()


Made: TypeAlias = VectorCodes | SizedCode


def _code(made: Made) -> Made:
    """A code without its norms."""
    return made.quantizer if isinstance(made, WithNorms) else made


class OutOfTime(Exception):
    """A candidate was stopped."""


class Clock:
    """The seconds given to a race, of which the full fit of codes that may win will need a part.

    If `n_encoded` rows are to be encoded, the seconds are those beyond what the first code takes, to learn and encode.
    """

    def __init__(self, seconds: float, n_encoded: int = 0) -> None:
        self._end, self._n_encoded = time.perf_counter() + seconds, n_encoded
        self._needed: float | None = None  # by codes that may win; None before there is one
        self._began = self._ticked = self._stop = np.inf

    def starts(self) -> bool:
        """Start a candidate; False if no time is left."""
        self._began = self._ticked = time.perf_counter()
        if self._needed is None:
            return True
        left = self._end - self._began
        self._stop = self._began + min(left - self._needed, left / (1 + DEFAULTS.growth))
        return self._stop > self._began

    def tick(self, step: int, record: Fields) -> None:
        """The callback of a candidate's fit: OutOfTime where it would leave too little."""
        self._ticked = time.perf_counter()
        if self._ticked > self._stop:
            raise OutOfTime

    def ended(self, encode_seconds: float, times: float = 1.0, *, wins: bool) -> float:
        """A candidate ended that may win: its full fit is of `times` as many rows, and it encodes a thousand rows in
        `encode_seconds`. The seconds of its fit; OutOfTime if the full one is late."""
        seconds = self._ticked - self._began
        needed = times * DEFAULTS.growth * seconds + encode_seconds * self._n_encoded / 1000
        if self._needed is None:
            self._end += needed if self._n_encoded else 0.0
        elif time.perf_counter() + needed > self._end:
            raise OutOfTime
        if wins or self._needed is None:
            self._needed = max(needed, self._needed or 0.0)
        return seconds

    def rows(self, n: int, most: int, seconds: float, encode_seconds: float) -> int:
        """For a full fit: `most` rows if there is time, else of n rows learned from in `seconds` the same number, or
        twice, four times ... as many."""
        left = self._end - time.perf_counter() - encode_seconds * self._n_encoded / 1000
        times = max(1.0, left / max(DEFAULTS.growth * seconds, 1e-9))
        return most if n * times >= most else n << int(np.log2(times))


@dataclass(frozen=True)
class Race:
    """Rows to learn from, and the judge of the codes. One half of given queries may judge starts within a fit. A share
    `known` of the rows that judge is learned from, as it will be in an index of `n_rows` rows."""

    train: np.ndarray
    judge: HeldOut
    given: np.ndarray | None
    known: float

    @classmethod
    def of(
        cls, X: np.ndarray, queries: ArrayLike | None, n_rows: int, metric: str, generator: np.random.Generator
    ) -> Self:
        """Of rows X (n, d), of length 1 already for "cosine", queries (q, d) or None for rows held out."""
        order, given = generator.permutation(len(X)), None
        if queries is None:
            count = min(OF_TRIALS.queries, max(len(X) // 16, min(100, len(X) // 10)))
            asked, order = X[order[:count]], order[count:]
        else:
            queries = check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = unit_rows(queries) if metric == "cosine" else queries
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = queries[:half][: OF_TRIALS.queries], queries[half:]
        known = min(len(X), DEFAULTS.learned_rows) / n_rows  # part of the index's rows
        unseen = min(round((1 - known) * min(DEFAULTS.screening_rows, len(order))), len(order) // 4)
        judged = min(DEFAULTS.screening_rows, len(order) if known == 1 else round(unseen / (1 - known)))
        train = order[unseen : unseen + DEFAULTS.screening_rows]
        rows = X[np.concatenate([order[:unseen], train[: judged - unseen]])]
        judge = HeldOut.of(rows, asked, "l2" if metric == "l2" else "ip")
        return cls(X[train], judge, given, known)

    def run(self, name: str, quantizer: Made, tick: Callback = ignore) -> Record:
        """Fit on the training rows, code the others, and say how many neighbours the codes keep."""
        started, judge = time.process_time(), self.judge
        fitted, norms = self.fitted(quantizer, self.train, tick)
        learned, index = time.process_time(), fitted.to_faiss(judge.metric)
        fitted.encode(judge.rows[:1])  # loading and compiling in the first call are not timed
        encoding = timeit(lambda: fitted.add_to(index, judge.rows), number=1)
        length = row_length(judge.rows, bool(fitted.normalized_)) if takes_length(fitted) else None
        if norms is None:
            recall = judge.truth.kept(nearest_codes(index, judge.queries, judge.k, judge.metric, length))
        else:
            rows = norms.restored(cast(Codec, fitted).decode(fitted.encode(judge.rows)), judge.rows)
            recall = float(judge.recall(rows, widened(judge.queries, rows.shape[1])).mean())
        if isinstance(fitted, ProductResidualQuantizer) and judge.metric == "l2":  # an index decodes these once a call
            asked, search = judge.queries, lambda: nearest_codes(index, judge.queries, judge.k, "l2", length)
        else:
            asked = judge.queries[: DEFAULTS.timed_queries]
            search = partial(index.search, asked, judge.k)
        searching = min(repeat(search, repeat=3, number=1))
        return {
            "name": name, "bytes": index.sa_code_size() + (norms is not None), "recall": recall,
            "rows": len(self.train), "seconds": learned - started,
            "encode_seconds": 1e3 * encoding / len(judge.rows),
            "search_seconds": 1e6 * searching / len(asked) / len(judge.rows),
        }  # fmt: skip

    def fitted(self, quantizer: Made, X: np.ndarray, callback: Callback = ignore) -> tuple[VectorCodes, Norms | None]:
        """Fitted on rows X (n, d); the given queries are passed on if the quantizer learns for the index's metric."""
        if isinstance(code := _code(quantizer), ProductResidualQuantizer):
            uses_queries = code.ranking in BY_PRODUCTS
        else:
            uses_queries = self.judge.metric == "l2" and isinstance(code, ProductQuantizer | ProductCode)
        options = {"queries": self.given} if uses_queries and self.given is not None else {}
        fitted, norms = fitted_code(cast(Fittable, quantizer), X, **options, callback=callback)
        return cast(VectorCodes, fitted), norms


class Best(NamedTuple):
    """`quantizer`: the winner, fully fitted; `norms`: the levels of a byte for norms, None without one:
    `Index.build(X, found.quantizer, norms=found.norms)`; `table`: a record for each candidate that ended, the winner
    first. Of its short fit: "name", "bytes", "recall" (of 10 neighbours by codes alone), "rows" learned from, "seconds"
    of processor time, and by the clock "encode_seconds" for a thousand rows, "search_seconds" for a thousand queries
    and rows."""

    quantizer: VectorCodes
    norms: Norms | None
    table: list[Record]


def best(
    X: ArrayLike,
    n_bytes: int,
    queries: ArrayLike | None = None,
    seconds: float | None = None,
    *,
    n_rows: int | None = None,
    n_encoded: int = 0,
    metric: str = "l2",
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

    Candidates are screened by short fits on 4,096 rows at most, and the winner alone is fitted in full. Codes whose
    recall differs by less than .02 (less near 0 and 1) are level; the longest sum of these wins, as it gains most by
    the full fit, if the time allows it twice the rows. Where half of the index's rows or more are learned from, the
    winner is trained for these ("known" in `ResidualQuantizer`); a sum with the time to learn from all of them is then
    preferred, as the screening judges rows that it has learned from.

    Within `seconds` of the clock the winner is to be fitted. A candidate that would leave no time for that is stopped,
    and is not in the table; the first one, the cheapest, is fitted in any case. If `n_encoded` rows are to be encoded,
    the seconds are those beyond what the first one takes to learn and to encode them. A sum learns from all rows if the
    time allows it, else from 4,096, twice, four times as many, ... Given enough time the winner depends on
    `random_state` alone.

    `callback(step, record)` is called after each candidate. ValueError or TypeError, before any work, for what cannot
    be used.

    >>> X = np.random.default_rng(0).normal(size=(800, 16)).astype(np.float32)
    >>> found = best(X, 4, random_state=0)
    >>> found.quantizer.encode(X).shape
    (800, 4)
    """
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    X = check_magnitude(check_vectors(X, min_rows=100)).astype(np.float32)
    X = unit_rows(X) if metric == "cosine" else X
    check_integer(n_bytes, "n_bytes", low=1)
    clock = Clock(np.inf if seconds is None else check_real(seconds, "seconds", low=0), n_encoded)
    generator = numpy_generator(random_state)
    n_rows = check_integer(len(X) if n_rows is None else n_rows, "n_rows", low=len(X))
    race, seed = Race.of(X, queries, n_rows, metric, generator), draw_seed(generator)
    known = {"l2": KNOWN["l2"], "cosine": KNOWN["ip"]}.get(metric) if race.known >= DEFAULTS.mostly_known else None
    plain = metric == "l2" or INNER
    settings = {
        "smoothing": 1.0 if known else 1 - race.known / 2,
        "ranking": known or plain,
        "random_state": seed,
    }
    short: Record = {"max_iter": DEFAULTS.screening_rounds, "beam_size": DEFAULTS.screening_beam}
    if known:
        short["ranking"] = plain
    kept: dict[str, float] = {}  # recall of each finished candidate; decides which are tried next
    differ = metric != "cosine" and row_length(race.train) is None
    candidates = _candidates(n_bytes, X.shape[1], len(race.train), settings, kept, differ, metric)
    times = max(1.0, min(len(X), DEFAULTS.fitted_rows) / len(race.train))  # rows of a full fit
    found = _run(race, candidates, short, kept, clock, times, callback or ignore)
    n = len(race.train)
    rows_of = {entry.candidate.name: clock.rows(n, len(X), entry.seconds, entry.encode_seconds) for entry in found}
    # sums gain most by more rows; without the time for them, product codes of all rows are ahead if they are level
    # (a minute on a busy machine, 2026-11: SIFT in 16 bytes .727 and .733, sentences in 24 .638 and .641)
    needed = len(X) if known else min(2 * n, len(X))
    able = [e for e in found if e.candidate.length == 1 or rows_of[e.candidate.name] >= needed]
    # the recall of codes trained for known rows holds only if all are learned from: word vectors in 30 bytes, a minute,
    # .8267 with half of the rows, .9102 by shorter sums with all (2026-11)
    sums = [e for e in able if e.candidate.length > 1] if known else []
    ahead = bool(able) and able[0].recall >= _level(found[0].recall)
    winner = _winner(able) if ahead else _winner(sums) if sums else found[0]
    table = [winner.record, *(entry.record for entry in found if entry is not winner)]
    rows = X
    if isinstance(_code(made := winner.candidate.make()), ProductResidualQuantizer):  # others learn faster
        most = rows_of[winner.candidate.name]
        rows = X if most >= len(X) else X[np.sort(generator.choice(len(X), most, replace=False))]
    quantizer, norms = race.fitted(made, rows)
    return Best(quantizer, norms, table)


class _Candidate(NamedTuple):
    """A code: its name, how many centroids are added up in a part of the row, and what makes an unfitted one."""

    name: str
    length: int
    make: Callable[[], Made]


Candidates: TypeAlias = Iterator[_Candidate]


class _Entry(NamedTuple):
    """A finished candidate, its record, the seconds of its fit, and those in which a full one encodes 1,000 rows."""

    record: Record
    candidate: _Candidate
    seconds: float = 0.0
    encode_seconds: float = 0.0

    @property
    def recall(self) -> float:
        return self.record["recall"]


def _run(
    race: Race,
    candidates: Candidates,
    short: Mapping[str, object],
    kept: dict[str, float],
    clock: Clock,
    times: float,
    callback: Callback,
) -> list[_Entry]:
    """Those that ended in time with the settings `short`, the best first; `kept` gets the recall of each at once. A
    full fit of codes that are no sums is of `times` as many rows."""
    entries: list[_Entry] = []
    for candidate in candidates:
        if not clock.starts():
            break
        made = candidate.make()
        own = cast(BaseEstimator, _code(made))
        own.set_params(**{name: short[name] for name in short.keys() & own.get_params().keys()})
        is_sum = isinstance(own, ProductResidualQuantizer)
        kept[candidate.name] = -1.0  # below what any code keeps
        try:
            record = race.run(candidate.name, made, clock.tick)
            encode = record["encode_seconds"] * (DEFAULTS.beam_size / DEFAULTS.screening_beam if is_sum else 1.0)
            wins = record["recall"] >= _level(max(kept.values()))
            seconds = clock.ended(encode, 1.0 if is_sum else times, wins=wins)
        except OutOfTime:
            continue
        kept[candidate.name] = record["recall"]
        entries.append(_Entry(record, candidate, seconds, encode))
        note = f"{candidate.name}: recall {record['recall']:.4f}"
        callback(len(entries), {"total": _MOST, "objective": -record["recall"], "note": note, **record})
    return sorted(entries, key=lambda entry: -entry.recall)  # stable: of equals, the cheaper one, which ran first


def _winner(found: list[_Entry]) -> _Entry:
    """The longest of the sums that are level with the leader."""
    level = [found[0], *(entry for entry in found if entry.recall > _level(found[0].recall))]
    return max(level, key=lambda entry: entry.candidate.length)


def _level(recall: float) -> float:
    """The least recall that is level with this one; the error of a share p goes as the root of p (1 - p)."""
    return recall - 2 * DEFAULTS.level * math.sqrt(max(0.0, recall * (1 - recall)))


def _candidates(
    n_bytes: int,
    d: int,
    n: int,
    settings: dict[str, Any],
    kept: dict[str, float],
    norms_differ: bool = False,
    metric: str = "l2",
) -> Candidates:
    """What fits the bytes, the columns and the rows to learn from, the cheapest first; a byte may be the norm's where
    rows have different ones."""
    K, seed = 256 if n >= 256 else 16, settings["random_state"]
    units = n_bytes if K == 256 else 2 * n_bytes  # codes of K centroids
    if units <= d:
        if K == 256 and n_bytes > 1 and norms_differ:
            yield _Candidate("product", 1, lambda: ProductCode(n_bytes, metric=metric, random_state=seed))
        else:
            yield _Candidate("product", 1, lambda: ProductQuantizer(units, K, random_state=seed))
        yield _Candidate("product, no rotation", 1, lambda: ProductQuantizer(units, K, None, random_state=seed))
    if d <= 8 * n_bytes <= 8 * d:  # from a bit a column
        yield _Candidate("axes", 1, lambda: AxisQuantizer(n_bytes))
        if norms_differ and n_bytes > 1:
            yield _Candidate("axes, norms", 1, lambda: WithNorms(AxisQuantizer(n_bytes - 1)))
    for bits in (16, 8, 6, 4):
        if -(-bits * d // 8) <= n_bytes:
            yield _Candidate(f"scalar, {bits} bits", 1, lambda bits=bits: ScalarQuantizer(bits))
            break
    settings = {**settings, "n_centroids": K, "beam_size": DEFAULTS.beam_size}
    place = 8 // (K.bit_length() - 1) if norms_differ and settings.get("ranking") not in KNOWN.values() else 0
    yield from _sums(8 * n_bytes // (K.bit_length() - 1), d, settings, kept, place)


def _sums(units: int, d: int, settings: dict[str, Any], kept: dict[str, float], place: int = 0) -> Candidates:
    """Residual codes of `units` codebooks and, where these are many or behind, product residual codes. The first one is
    also tried with norms that take the place of `place` codebooks, and the form that is ahead is that of all others.
    """
    length, forms = dict[str, int](), {"": units} | ({", norms": units - place} if 0 < place < units - 1 else {})

    def tried(target: int | None = None) -> Candidates:
        """Sums of about `target` codebooks in each part, None for all in one."""
        names, used = dict[str, str](), set(length.values())
        for form, count in forms.items():
            chain = _chain(count, target, used) if target else count
            splits = count // chain
            name = f"product residual, {splits} x {chain}{form}" if target else f"residual{form}"
            if (1 < splits <= d or not target) and name not in kept:
                maker = partial(ProductResidualQuantizer, splits) if target else ResidualQuantizer
                made = partial(maker, chain, **settings)
                names[name] = form
                yield _Candidate(name, chain, partial(_with_norms, made) if form else made)
                length[name] = chain
        ahead = max(names, key=lambda name: kept[name], default=None)
        for name in names.keys() - {ahead}:
            del length[name], forms[names[name]]

    def is_level(name: str) -> bool:
        return kept[name] >= _level(max(kept.values()))

    if 1 < units <= DEFAULTS.cheap:
        yield from tried()
        if is_level("residual" + next(iter(forms))):
            return
        length.clear()
    for target in DEFAULTS.chains:
        yield from tried(target)
    if DEFAULTS.cheap < units <= DEFAULTS.longest and all(map(is_level, list(length)[-1:])):  # the longer of the two
        yield from tried()


def _with_norms(made: Callable[[], VectorCodes]) -> WithNorms:
    return WithNorms(made())


def _chain(units: int, target: int, used: set[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)


@dataclass(eq=False, repr=False)
class BestCode(SizedCode):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner.

    Its fields are arguments of `best`. Afterwards `table_` is the table of the race.
    """

    n_bytes: int
    seconds: float | None = None
    random_state: Seed = None
    n_rows: int | None = None
    n_encoded: int = 0
    metric: str = "l2"

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> VectorCodes:
        """The fitted winner of the race on rows X (n, d), judged by `queries` (q, d) or by rows held out."""
        found = best(X, queries=queries, **self.get_params(), callback=callback)
        self.table_, self.norms_ = found.table, found.norms
        return found.quantizer
