"""The code with the highest recall at a size: product, axis, residual and scalar codes compared on held-out queries.

`candidates` lists them. Each is screened by a short fit on few rows, a `Trial` compares their recall query by query,
and the winner alone is fitted in full.
"""

import math
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from timeit import timeit
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
from nearkin.metrics.trial import HeldOut, Trial
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import AbstractAdditiveQuantizer, ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from nearkin.quantization.sized import ProductCode, SizedCode, WithNorms, fitted_code


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the comparison, from SIFT, MNIST, GIST, sentences and word vectors; `python -m benchmarks
    codecs` measures it as a whole.
    """

    fitted_rows: int = 65_536  # rows of a fit, at most, with 256 centroids
    screening_rows: int = 4_096  # rows of a short fit, and rows to be found, at most
    screening_rounds: int = 4
    screening_beam: int = 8
    growth: float = 2.0  # a full fit on the rows of the screening takes twice as long
    longest: int = 32  # most codebooks of a residual code: longer ones are searched too slowly
    chains: tuple[int, ...] = (4, 8)  # codebooks of each part of product residual codes
    beam_size: int = 16  # of additive codes
    learned_rows: int = 16_384  # of the index that codes can be trained for
    mostly_known: float = 0.5  # if this share of the index's rows is learned from, codes are trained for these rows


DEFAULTS = Defaults()
Made: TypeAlias = VectorCodes | SizedCode


class Candidate(NamedTuple):
    """A code: its name, how many centroids are added up in a part of a row, which is its cost, and what makes it."""

    name: str
    chain: int
    make: Callable[[], Made]

    def unfitted(self, **settings: object) -> Made:
        """An unfitted one with those of the settings that it has."""
        made = self.make()
        code = cast(BaseEstimator, _code(made))
        code.set_params(**{name: settings[name] for name in settings.keys() & code.get_params().keys()})
        return made


def _code(made: Made) -> Made:
    """A code without its norms."""
    return made.quantizer if isinstance(made, WithNorms) else made


def candidates(
    n_bytes: int, d: int, n: int, *, metric: str = "l2", norms: bool = False, seed: Seed = None, **settings: object
) -> list[Candidate]:
    """The codes of at most `n_bytes` a row of d columns that n rows suffice to learn, the cheapest first.

    With `norms`, for rows of different norms, a byte may be the norm's. `settings` are those of sums of centroids.
    """
    K, per_byte = (256, 1) if n >= 256 else (16, 2)  # centroids, and their codes in a byte
    units, norms = n_bytes * per_byte, norms and n_bytes > 1
    found: list[Candidate] = []
    if units <= d:
        sized = partial(ProductCode, n_bytes, metric=metric, random_state=seed)
        product = partial(ProductQuantizer, units, K, random_state=seed)
        found.append(Candidate("product", 1, sized if K == 256 and norms else product))
        found.append(Candidate("product, no rotation", 1, partial(product, rotation=None)))
    if d <= 8 * n_bytes <= 8 * d:  # from a bit a column
        found.append(Candidate("axes", 1, partial(AxisQuantizer, n_bytes)))
        if norms:
            found.append(Candidate("axes, norms", 1, partial(_with_norms, partial(AxisQuantizer, n_bytes - 1))))
    bits = next((bits for bits in (16, 8, 6, 4) if -(-bits * d // 8) <= n_bytes), None)
    if bits is not None:
        found.append(Candidate(f"scalar, {bits} bits", 1, partial(ScalarQuantizer, bits)))
    ranks = "l2" if metric == "l2" else "ip"
    settings |= {"metric": ranks, "n_centroids": K, "beam_size": DEFAULTS.beam_size, "random_state": seed}
    found += _sums(units, d, settings)
    if norms:
        shorter = _sums(units - per_byte, d, settings)
        found += [one._replace(name=f"{one.name}, norms", make=partial(_with_norms, one.make)) for one in shorter]
    return sorted(found, key=lambda candidate: candidate.chain)


def _with_norms(make: Callable[[], Made]) -> WithNorms:
    return WithNorms(cast(VectorCodes, make()))


def _sums(units: int, d: int, settings: dict[str, Any]) -> list[Candidate]:
    """Residual codes of `units` codebooks, and product residual codes of about as many."""
    found: dict[int, Candidate] = {}
    for target in DEFAULTS.chains:
        chain = _chain(units, target, found)
        if 1 < (splits := units // chain) <= d:
            make = partial(ProductResidualQuantizer, splits, chain, **settings)
            found[chain] = Candidate(f"product residual, {splits} x {chain}", chain, make)
    if 1 < units <= DEFAULTS.longest:
        found[units] = Candidate("residual", units, partial(ResidualQuantizer, units, **settings))
    return list(found.values())


def _chain(units: int, target: int, used: Container[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)


class OutOfTime(Exception):
    """A candidate was stopped."""


@dataclass
class Short:
    """A short fit of `rows` rows in `seconds` by the clock, and the recall (q,) of its codes, of which a thousand are
    encoded in `encode_seconds`. A full fit learns from `least` rows at least."""

    candidate: Candidate
    values: np.ndarray
    n_bytes: int
    rows: int
    seconds: float
    encode_seconds: float
    least: int = 0


class Budget:
    """Seconds by the clock in which the winner is fitted and encodes `n_encoded` rows. These are those beyond what the
    first candidate takes, if rows are encoded."""

    def __init__(self, seconds: float, n_encoded: int = 0) -> None:
        self._end, self._n_encoded = time.perf_counter() + seconds, n_encoded
        self.reserved: float | None = None  # seconds of the full fit of what would win so far
        self._stop = np.inf

    def begin(self) -> None:
        """Begin a short fit: OutOfTime if no time is left but for the full fit of what would win."""
        now = time.perf_counter()
        if self.reserved is not None:
            self._stop = min(self._end - self.reserved, now + (self._end - now) / (1 + DEFAULTS.growth))
        self.tick()

    def tick(self, step: int = 0, record: Fields | None = None) -> None:
        """The callback of a short fit: OutOfTime where its full fit would end too late, or that of what would win."""
        if time.perf_counter() >= self._stop:
            raise OutOfTime

    def needed(self, short: Short, rows: int) -> float:
        """Seconds of a full fit on that many rows, and of encoding."""
        return DEFAULTS.growth * (short.seconds * rows / short.rows + short.encode_seconds * self._n_encoded / 1000)

    def fits(self, short: Short) -> bool:
        """Whether the full fit ends in time; that of the first candidate always does."""
        needed = self.needed(short, short.least)
        if self.reserved is None and self._n_encoded:
            self._end += needed
        return self.reserved is None or time.perf_counter() + needed <= self._end

    def rows(self, short: Short, most: int) -> int:
        """Rows of a full fit: as many as the time allows, at most `most`."""
        spare, each = self._end - time.perf_counter() - self.needed(short, 0), DEFAULTS.growth * short.seconds
        return most if spare * short.rows >= each * most else max(short.rows, int(spare * short.rows / each))


@dataclass(frozen=True)
class Screening:
    """Rows to learn from, and the held-out queries that compare the codes. One half of given queries may decide between
    starts within a fit. A share `known` of the rows to be found is learned from, as it will be in an index of `n_rows`
    rows."""

    train: np.ndarray
    held: HeldOut
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
        found = min(DEFAULTS.screening_rows, len(order) if known == 1 else round(unseen / (1 - known)))
        train = order[unseen : unseen + DEFAULTS.screening_rows]
        rows = X[np.concatenate([order[:unseen], train[: found - unseen]])]
        return cls(X[train], HeldOut.of(rows, asked, "l2" if metric == "l2" else "ip"), given, known)

    def run(self, candidate: Candidate, tick: Callback = ignore) -> "Short":
        """Fit on the training rows, and find the neighbours of the held-out queries by codes alone."""
        started, held = time.perf_counter(), self.held
        fitted, norms = self.fitted(
            candidate.unfitted(max_iter=DEFAULTS.screening_rounds, beam_size=DEFAULTS.screening_beam), self.train, tick
        )
        seconds, index = time.perf_counter() - started, fitted.to_faiss(held.metric)
        fitted.encode(held.rows[:1])  # loading and compiling in the first call are not timed
        encoding = timeit(lambda: fitted.add_to(index, held.rows), number=1) / len(held.rows)
        if norms is None:
            length = row_length(held.rows, bool(fitted.normalized_)) if takes_length(fitted) else None
            values = held.found(nearest_codes(index, held.queries, held.k, held.metric, length))
        else:
            rows = norms.restored(cast(Codec, fitted).decode(fitted.encode(held.rows)), held.rows)
            values = held.recall(rows, widened(held.queries, rows.shape[1]))
        n_bytes = index.sa_code_size() + (norms is not None)
        return Short(candidate, values, n_bytes, len(self.train), seconds, 1e3 * encoding)

    def fitted(self, quantizer: Made, X: np.ndarray, callback: Callback = ignore) -> tuple[VectorCodes, Norms | None]:
        """Fitted on rows X (n, d); the given queries are passed on if the quantizer learns for the index's metric."""
        if isinstance(code := _code(quantizer), AbstractAdditiveQuantizer):
            uses_queries = code.metric == "ip"
        else:
            uses_queries = self.held.metric == "l2" and isinstance(code, ProductQuantizer | ProductCode)
        options = {"queries": self.given} if uses_queries and self.given is not None else {}
        fitted, norms = fitted_code(cast(Fittable, quantizer), X, **options, callback=callback)
        return cast(VectorCodes, fitted), norms


class Best(NamedTuple):
    """`quantizer`: the winner, fully fitted; `norms`: the levels of a byte for norms, None without one:
    `Index.build(X, found.quantizer, norms=found.norms)`; `table`: the records of `Trial` for each short fit that ended,
    the winner first, then by "value" (recall of 10 neighbours by codes alone), with "bytes", "rows" learned from and
    "seconds" by the clock."""

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
    """Choose a codec, its rotation and start at no more than `n_bytes` a row for rows X (n, d); at least 100 rows.

    `queries` (m, d) decide where rows will be searched by others than themselves. `n_rows` is how many rows the index
    will hold, by default those of X. Codes keep more neighbours of rows that they were learned from than of others,
    long sums above all; the rows to be found are therefore mixed as the index's: all learned from where X is all and
    has at most 16,384 rows, hardly any where X is a small sample of `n_rows`.

    `metric` is what the index will be searched by: "l2", "ip" (inner product: give `queries`, as rows are seldom like
    them) or "cosine", for which codes are learned from the rows at length 1, as `nk.Index` stores them.

    All `candidates` are screened by short fits on 4,096 rows at most. Of those that no other leads by more than one
    standard error, the one that adds up the fewest centroids wins, and it alone is fitted in full. Where half of the
    index's rows or more are learned from, it is trained for these ("known" in `ResidualQuantizer`).

    Within `seconds` of the clock the winner is to be fitted. A candidate whose full fit would end later is stopped or
    left out; the first one, the cheapest, is fitted in any case. If `n_encoded` rows are to be encoded, the seconds are
    those beyond what the first one takes to learn and to encode them. Sums learn from as many rows as the time allows,
    twice those of the screening at least, and from all that they are trained for. Given enough time the winner depends
    on `random_state` alone.

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
    budget = Budget(np.inf if seconds is None else check_real(seconds, "seconds", low=0), n_encoded)
    generator = numpy_generator(random_state)
    n_rows = check_integer(len(X) if n_rows is None else n_rows, "n_rows", low=len(X))
    screening, seed = Screening.of(X, queries, n_rows, metric, generator), draw_seed(generator)
    known = screening.known >= DEFAULTS.mostly_known and metric != "ip"
    listed = candidates(
        n_bytes, X.shape[1], len(screening.train), metric=metric,
        norms=metric != "cosine" and not known and row_length(screening.train) is None, seed=seed,
        smoothing=1.0 if known else 1 - screening.known / 2,
    )  # fmt: skip
    n, full = len(screening.train), max(len(screening.train), min(len(X), DEFAULTS.fitted_rows))
    trial, shorts = Trial[str](callback or ignore, len(listed)), dict[str, Short]()
    for candidate in listed:
        try:
            budget.begin()
            short = screening.run(candidate, budget.tick)
        except OutOfTime:
            continue
        short.least = full if candidate.chain == 1 or known else min(2 * n, full)
        if budget.fits(short):
            shorts[candidate.name], about = short, {"bytes": short.n_bytes, "rows": n, "seconds": short.seconds}
            trial.add(candidate.name, short.values, candidate.chain, **about)
            leader = shorts[trial.winner()]
            budget.reserved = budget.needed(leader, leader.least)
    winner = trial.winner(*([name for name, short in shorts.items() if budget.fits(short)] or [listed[0].name]))
    made, most = shorts[winner].candidate.unfitted(known=known), budget.rows(shorts[winner], full)
    if shorts[winner].candidate.chain > 1 and most < len(X):  # others learn faster
        X = X[np.sort(generator.choice(len(X), most, replace=False))]
    table = sorted(trial.table(winner), key=lambda record: (not record["won"], -record["value"]))
    return Best(*screening.fitted(made, X), table)


@dataclass(eq=False, repr=False)
class BestCode(SizedCode):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner.

    Its fields are arguments of `best`. Afterwards `table_` is the table of candidates.
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
        """The fitted winner on rows X (n, d), chosen by `queries` (q, d) or by rows held out."""
        found = best(X, queries=queries, **self.get_params(), callback=callback)
        self.table_, self.norms_ = found.table, found.norms
        return found.quantizer
