"""The code with the highest recall at a size: product, axis, residual and scalar codes compared on held-out queries.

`candidates` lists them. Each is screened by a short fit on few vectors, a `Trial` compares their recall query by query,
and the winner alone is fitted in full."""

from dataclasses import dataclass
from typing import NamedTuple, Self, cast

import numpy as np

from nearkin._check import (
    check_choice,
    check_integer,
    check_magnitude,
    check_queries,
    check_real,
    check_vectors,
    draw_seed,
    numpy_generator,
    take_names,
)
from nearkin._faiss import compared
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback, Codec, Fittable, VectorCodes, ignore
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.trial import HeldOut, Trial, held_out, mean_interval
from nearkin.quantization.candidates import Candidate, Made, candidates, without_norms
from nearkin.quantization.codebooks import unwarned
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import AbstractAdditiveQuantizer
from nearkin.quantization.sized import ProductCode, SizedCode, fitted_code


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the comparison; `python -m benchmarks codecs` measures it as a whole."""

    beam_size: int = 16  # of additive codes: SIFT in 8 bytes .6430, with 8 .6318; GIST .5242, .5267 (2026-11)


DEFAULTS = Defaults()
_FITTED = 65_536  # rows of a fit, at most
_SCREENED = 4_096  # rows of a short fit, and rows to be found, at most
_SHORT = {"max_iter": 4, "beam_size": 8}  # settings of a short fit, which takes
_SHARE = 0.5  # of the time of a full one on the same rows
_TRAINED_FOR = 16_384  # rows of the index that codes can be trained for, at most
_KNOWN = 0.5  # if this share of the index's rows is learned from, codes are trained for these rows


@dataclass
class Budget:
    """Predicted seconds for the short fits of candidates on `screened` vectors of d columns, for the full fit of the
    winner, and for encoding `encoded` vectors. If vectors are encoded, these are seconds beyond what the first
    candidate takes."""

    seconds: float
    screened: int
    encoded: int
    d: int

    def allows(self, one: Candidate, least: int, *, first: bool) -> bool:
        """Whether the full fit of a candidate on `least` vectors is within the seconds that its short fit leaves, which
        are then the budget's; that of the first one always is."""
        short = _SHARE * one.seconds(self.screened, 0, self.d)
        full = one.seconds(least, self.encoded, self.d)
        if first and self.encoded:
            self.seconds += short + full
        if allowed := first or short + full <= self.seconds:
            self.seconds -= short
        return allowed

    def rows(self, winner: Candidate, most: int) -> int:
        """Vectors of the winner's full fit: as many as the seconds allow, at most `most`."""
        each = winner.seconds(1, 0, self.d)
        spare = self.seconds - winner.seconds(0, self.encoded, self.d)
        return most if spare >= each * most else max(self.screened, int(spare / each))


class Short(NamedTuple):
    """The recall (q,) of codes of a short fit, their bytes, and the quantizer."""

    values: np.ndarray
    n_bytes: int
    quantizer: VectorCodes


@dataclass(frozen=True)
class Screening:
    """Vectors to train on, and the held-out queries that compare the codes. One half of given queries may decide
    between starts within a fit. A share `known` of the vectors to be found is trained on, as it will be in an index
    of `n_vectors` vectors."""

    train: np.ndarray
    held: HeldOut
    given: np.ndarray | None
    known: float

    @classmethod
    def of(
        cls, X: np.ndarray, queries: ArrayLike | None, n_vectors: int, metric: str, generator: np.random.Generator
    ) -> Self:
        """Of vectors X (n, d), of norm 1 already for "cosine", queries (q, d) or None for vectors held out."""
        order, given = generator.permutation(len(X)), None
        if queries is None:
            chosen, order = held_out(order)
            asked = X[chosen]
        else:
            queries = check_queries(queries, X.shape[1], min_rows=2).astype(np.float32)
            queries = unit_rows(queries) if metric == "cosine" else queries
            queries = queries[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = held_out(order, queries[:half])[0], queries[half:]
        known = min(len(X), _TRAINED_FOR) / n_vectors  # part of the index's rows
        unseen = min(round((1 - known) * min(_SCREENED, len(order))), len(order) // 4)
        found = min(_SCREENED, len(order) if known == 1 else round(unseen / (1 - known)))
        train = order[unseen : unseen + _SCREENED]
        rows = X[np.concatenate([order[:unseen], train[: found - unseen]])]
        return cls(X[train], HeldOut.among(rows, asked, "l2" if metric == "l2" else "ip"), given, known)

    def run(self, candidate: Candidate, **settings: object) -> Short:
        """Fit on the training vectors, with `settings` of a short fit, and find the neighbours of the held-out queries
        without rescoring."""
        held = self.held
        with unwarned():
            fitted, norms = self.fitted(candidate.unfitted(**(settings or _SHORT)), self.train)
        index = fitted.to_faiss(held.metric)
        fitted.add_to(index, held.rows)
        n_bytes = index.sa_code_size() + (norms is not None)
        if norms is None and not fitted.keeps_norms:
            norms = Norms.shared(held.rows, bool(fitted.normalized_))
        if norms is None:
            values = held.recall(*compared(index, held.queries))
        else:
            rows = norms.restored(cast(Codec, fitted).decode(fitted.encode(held.rows)), held.rows)
            values = held.recall(rows, widened(held.queries, rows.shape[1]))
        return Short(values, n_bytes, fitted)

    def fitted(self, quantizer: Made, X: np.ndarray, callback: Callback = ignore) -> tuple[VectorCodes, Norms | None]:
        """Fitted on vectors X (n, d); the given queries are passed on if the quantizer trains for the index's
        metric."""
        if isinstance(code := without_norms(quantizer), AbstractAdditiveQuantizer):
            uses_queries = code.metric == "ip"
        else:
            uses_queries = self.held.metric == "l2" and isinstance(code, ProductQuantizer | ProductCode)
        options = {"queries": self.given} if uses_queries and self.given is not None else {}
        fitted, norms = fitted_code(cast(Fittable, quantizer), X, **options, callback=callback)
        return cast(VectorCodes, fitted), norms


class Best(NamedTuple):
    """`quantizer`: the winner, fully fitted; `norms`: the levels of a byte for norms, None without one:
    `Index.build(X, found.quantizer, norms=found.norms)`; `trials`: the records of `Trial` for each short fit, the
    winner first, then by "value" (recall@10 without rescoring), with its 95 % "interval", the winner's "lead" (a
    `metrics.trial.Difference`), "bytes" and "rows"."""

    quantizer: VectorCodes
    norms: Norms | None
    trials: list[Record]


def best(
    X: ArrayLike,
    n_bytes: int,
    queries: ArrayLike | None = None,
    seconds: float | None = None,
    *,
    n_vectors: int | None = None,
    n_encoded: int = 0,
    metric: str = "l2",
    random_state: Seed = None,
    callback: Callback | None = None,
) -> Best:
    """Choose a codec, its rotation and start at no more than `n_bytes` a vector.

    All `candidates` are screened by short fits on 4,096 vectors at most. Of those that no other leads by more than one
    standard error, the one that adds up the fewest centroids wins, and it alone is fitted in full. Recall is higher for
    vectors that codes were trained on than for others, long sums above all; the vectors to be found are therefore mixed
    as the index's: all trained on where X is all and has at most 16,384 vectors, hardly any where X is a small sample.
    Where half of the index's vectors or more are trained on, the winner is trained for these ("known" in
    `ResidualQuantizer`).

    Seconds are predicted, for two cores, from the numbers of vectors, columns and centroids, so that the same seed
    gives the same codes on any machine however busy. A candidate whose full fit would take longer is left out; the
    first one, the cheapest, is fitted in any case. Sums train on as many vectors as the seconds allow, twice those of
    the screening at least, and from all that they are trained for.

    Parameters
    ----------
    X: (n, d) vectors, at least 100.
    n_bytes: bytes of a code, norm included, at most; no more than float32 takes.
    queries: (m, d), which measure recall where vectors will be searched by others than themselves.
    seconds: predicted time of the winner's full fit, at most; None for no limit.
    n_vectors: vectors that the index will hold, at least n; by default n.
    n_encoded: vectors to be encoded; the seconds are then those beyond what the first candidate takes to train and
        encode.
    metric: "l2", "ip" (give `queries`, as vectors are seldom like them) or "cosine" (codes are trained at norm 1).
    random_state: seed, NumPy generator or RandomState.
    callback: `callback(step, record)` is called after each candidate.

    Returns
    -------
    found: `Best` with quantizer (fitted), norms (bool: give it to `Index.build`) and trials (a record a candidate).

    Raises
    ------
    ValueError, TypeError: before any work: fewer than 100 vectors, NaN, n_vectors below n, an unknown metric.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    >>> found = nk.quantization.best(X, 2, random_state=0)
    >>> found.quantizer.decode(found.quantizer.encode(X)).shape, max(one["bytes"] for one in found.trials)
    ((300, 8), 2)
    """
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    given, X = X, check_magnitude(check_vectors(X, min_rows=100)).astype(np.float32)
    X = unit_rows(X) if metric == "cosine" else X
    n_bytes = min(check_integer(n_bytes, "n_bytes", low=1), 4 * X.shape[1])
    seconds = np.inf if seconds is None else check_real(seconds, "seconds", low=0)
    generator = numpy_generator(random_state)
    n_vectors = check_integer(len(X) if n_vectors is None else n_vectors, "n_vectors", low=len(X))
    screening, seed = Screening.of(X, queries, n_vectors, metric, generator), draw_seed(generator)
    known = screening.known >= _KNOWN and metric != "ip"
    listed = candidates(
        n_bytes, X.shape[1], len(screening.train), metric=metric,
        norms=metric != "cosine" and not known and Norms.shared(screening.train) is None, seed=seed,
        beam_size=DEFAULTS.beam_size, smoothing=1.0 if known else 1 - screening.known / 2,
    )  # fmt: skip
    n, full = len(screening.train), max(len(screening.train), min(len(X), _FITTED))
    budget = Budget(seconds, n, n_encoded, X.shape[1])
    least = {one.name: full if one.chain == 1 or known else min(2 * n, full) for one in listed}
    listed = [one for one in listed if budget.allows(one, least[one.name], first=one is listed[0])]
    trial = Trial[str](callback or ignore, len(listed))
    for one in listed:
        short = screening.run(one)
        trial.add(
            one.name, short.values, one.chain,
            interval=mean_interval(short.values), bytes=short.n_bytes, rows=n,
        )  # fmt: skip
    winner = next(one for one in listed if one.name == trial.winner())
    made, most = winner.unfitted(known=known), budget.rows(winner, full)
    if winner.chain > 1 and most < len(X):  # others learn faster
        X = X[np.sort(generator.choice(len(X), most, replace=False))]
    records: list[Record] = [row | {"lead": [*trial.lead(winner.name, row["candidate"])]} for row in trial.table()]
    trials = sorted(records, key=lambda record: (not record["won"], -record["value"]))
    quantizer, norms = screening.fitted(made, X)
    take_names(quantizer, given)
    return Best(quantizer, norms, trials)


@dataclass(eq=False, repr=False)
class BestCode(SizedCode):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner.

    Its fields are arguments of `best`. Afterwards `trials_` are the records of its candidates.
    """

    n_bytes: int
    seconds: float | None = None
    random_state: Seed = None
    n_vectors: int | None = None
    n_encoded: int = 0
    metric: str = "l2"

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> VectorCodes:
        """The fitted winner on vectors X (n, d), chosen by `queries` (q, d) or by vectors held out."""
        found = best(X, queries=queries, **self.get_params(), callback=callback)
        self.trials_: list[Record] = found.trials
        self.norms_: Norms | None = found.norms
        return found.quantizer
