"""The code of `nk.Index.build(X, n_bytes)`: the best of those made in three times the time of a product quantizer.

Time is predicted, not measured, so that the same rows give the same code on any machine however busy.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np

from nearkin._check import check_choice, check_integer, check_magnitude, check_queries, draw_seed
from nearkin._distributed import current
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, Fittable, VectorCodes, ignore
from nearkin.linalg.norms import Norms
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import ROWS, HeldOut, Trial, held_out
from nearkin.quantization.best import Screening
from nearkin.quantization.candidates import LONGEST, NORMS, PRODUCT, RESIDUAL, Candidate, candidate, sums
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from nearkin.quantization.sized import ProductCode, SizedCode, fitted_code
from nearkin.statistics import shared_generator, whole_rows

_TIMES = 3  # as long as a product quantizer takes to learn and to encode
_ROWS = 65_536  # of a fit, at most
_SHORT, _SHORT_ROUNDS = 2_048, 4  # rows, at most, and rounds of the fits that are compared
_FEWEST = 1_000  # rows to compare fits
# of sums of centroids: GIST in 16 bytes keeps .6579, with 14 rounds .6621 in 1.5 times the time, with 4 .6526
_SUMS: dict[str, Any] = {"max_iter": 7, "beam_size": 5}
# of product codes by the norm's byte, from which sums are tried with it, else without it. Product codes and sums gain:
# 200 clusters +.017, -.020; WordNet's entries +.011, +.001; GIST +.063, +.066; words +.071, +.032 (2026-11-26)
_GAIN = 0.03
_LONGEST = 8  # most codebooks of a part


@dataclass(eq=False, repr=False)
class PlainCode(SizedCode):
    """A code of `n_bytes` bytes a row, one a column at most: a product code or a sum of centroids, with the norm of
    each row in one of the bytes or not; half-precision floats where two bytes a column hold them. `metric` is the
    index's; `random_state`.

    Short fits are compared by the recall of held-out rows (`Trial`): product codes without the norm and with it, then a
    sum of centroids, with it where product codes gain three points by it. Learning the sum from a quarter of the
    vectors at least and encoding all of them must be predicted to end within three times the time of product codes,
    their choice of the norm included; it learns from as many as that leaves time for. Else, of fewer than 1,000 vectors
    or more than some 100,000, among several processes, and by "ip", where queries are seldom like vectors, it is a
    product code.

    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> PlainCode(4, random_state=0).fit(X).encode(X).shape
    (500, 4)
    """

    n_bytes: int = 8
    _: KW_ONLY
    metric: str = "l2"
    random_state: Seed = None

    def fit(
        self, X: ArrayLike, y: object = None, *, queries: ArrayLike | None = None, callback: Callback = ignore
    ) -> VectorCodes:
        """The fitted code of rows X (n, d), of length 1 already for "cosine"; `queries` (q, d) decide instead of rows
        held out. `callback` is that of the last fit. ValueError or TypeError for what cannot be used."""
        check_integer(self.n_bytes, "n_bytes", low=1)
        check_choice(self.metric, "metric", ("l2", "ip", "cosine"))
        n, d = np.asarray(X).shape
        alone, n_bytes = current().size == 1, min(self.n_bytes, d)
        if alone and 2 * d <= self.n_bytes and _half_suffices(X):
            return ScalarQuantizer(16).fit(X)
        product = ProductCode(n_bytes, metric=self.metric, random_state=self.random_state)
        long = _sum_of(n_bytes, n, d) if alone and self.metric != "ip" and n >= _FEWEST else None
        if long is None or _rows_left(long, n, d) < max(_short(n), min(n, _ROWS) // 4):
            found, self.norms_ = fitted_code(product, X, queries=queries, callback=callback)
            return cast(VectorCodes, found)
        X = check_magnitude(whole_rows(self, X))
        asked = None if queries is None else check_queries(queries, X.shape[1]).astype(np.float32)
        generator = shared_generator(self.random_state)
        seed, rows = draw_seed(generator), generator.permutation(len(X))
        sample = X[rows[: ROWS + _SHORT + OF_TRIALS.queries]].astype(np.float32)
        winner = self._winner(n_bytes, sample, n, asked, seed)
        most = min(_ROWS, _rows_left(winner, n, d))
        chosen = X if winner.chain == 1 or most >= len(X) else X[np.sort(rows[:most])]
        found, self.norms_ = fitted_code(cast(Fittable, winner.unfitted()), chosen, callback=callback)
        return cast(VectorCodes, found)

    def _winner(self, n_bytes: int, sample: np.ndarray, n: int, queries: np.ndarray | None, seed: int) -> Candidate:
        """The candidate of the highest recall of rows (m, d), of n in random order. A row's part in what is learned
        falls with their number, so that only a share of the rows to be found is learned from."""
        asked, rows = held_out(sample, queries)
        short = _short(n)
        share = short / min(n, _ROWS)
        learned = int(min(short, share / (1 - share) * (len(rows) - short)))
        held = HeldOut.among(rows[short - learned :], asked, "l2" if self.metric == "l2" else "ip")
        screening, trial, made = Screening(rows[:short], held, None, share), Trial[str](), dict[str, Candidate]()

        def judged(name: str, init: str = "auto") -> VectorCodes:
            made[name] = candidate(name, n_bytes, metric=self.metric, seed=seed, **_SUMS)
            found = screening.run(made[name], max_iter=_SHORT_ROUNDS, beam_size=_SUMS["beam_size"], init=init)
            trial.add(name, found.values, made[name].chain)
            return found.quantizer

        product, ending = cast(ProductQuantizer, judged(PRODUCT)), ""
        if self.metric != "cosine" and n_bytes > 1 and Norms.shared(sample) is None:
            starts = [one["candidate"] for one in product.trials_ if one["won"]]
            judged(PRODUCT + NORMS, *starts)
            ending = NORMS if trial.lead(PRODUCT + NORMS, PRODUCT).mean > _GAIN else ""
        if (long := _sum_of(n_bytes - bool(ending), n, sample.shape[1])) is not None:
            judged(long.name + ending)
        return made[trial.winner()]


def _short(n: int) -> int:
    """Rows of a short fit: of few rows a quarter is asked for others, and a twelfth only found."""
    return min(_SHORT, 2 * n // 3)


def _half_suffices(X: ArrayLike) -> bool:
    """Whether half precision rounds rows X (n, d) less than a byte a column does, 1/256 of their spread."""
    rows, half = np.asarray(X, np.float64), np.finfo(np.float16)
    largest = np.abs(rows).max()
    if largest and not half.tiny <= largest <= half.max:
        return False
    error = np.square(rows - rows.astype(np.float16)).mean()
    return bool(256**2 * error <= np.square(rows - rows.mean(axis=0)).mean())


def _sum_of(n_bytes: int, n: int, d: int) -> Candidate | None:
    """The sum of centroids over all columns, if it may learn from about as many of n rows of d columns as shorter sums,
    else the shortest of those that leave the fewest of the bytes over; None for one byte."""
    short = {name: n_bytes % chain for name, (_, chain) in sums(n_bytes).items() if chain <= _LONGEST}
    if not short:
        return None
    parts = candidate(min(short, key=lambda name: short[name]), n_bytes)
    whole = candidate(RESIDUAL, n_bytes)
    enough = 0.9 * min(n, _ROWS, _rows_left(parts, n, d))
    return whole if n_bytes <= LONGEST and _rows_left(whole, n, d) >= enough else parts


def _rows_left(one: Candidate, n: int, d: int) -> int:
    """From how many of n rows of d columns, all of which are encoded, a sum of centroids may learn."""
    rounds = min(n, _ROWS) + min(7 * n, 30_000) + 0.2 * n  # of product codes: of the fit, its starts, and encoding
    fast, slow = d + 400, d + 1_000  # what a row costs in a round of product codes, and of a sum
    spare = _TIMES * rounds * fast - _short(n) * (11 * fast + 5 * slow)
    each = 1 + 0.4 * one.chain + 2 * (not one.name.startswith(RESIDUAL))  # parts learn a rotation first
    return int((spare / slow - (0.4 + 0.08 * one.chain) * n) / each)
