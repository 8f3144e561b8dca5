"""Linear maps of queries and rows learned from pairs of a query and a row that answers it, in front of any codes.

An encoder places a question and its answer near each other, but codes of its vectors waste bytes. Two linear maps in
closed form correct that. Queries are regressed on their answers, with a ridge towards the identity: W minimises ||Q W -
A||^2 + r ||W - I||^2. The remaining difference E of a query and its answer has covariance D: along its large axes
distances are uninformative; rows and queries are scaled by D^(-a/2), so that codes use their bits for the other axes
(relevant component analysis, Bar-Hillel et al. 2005, is a = 1). Ridge r and power a are chosen on held-out queries.
"""

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearkin._check import (
    check_integer,
    check_magnitude,
    check_queries,
    check_vectors,
    draw_seed,
    numpy_generator,
    validate_vectors,
)
from nearkin._estimators import SavedEstimator
from nearkin._faiss import nearest_rows
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, ignore
from nearkin.quantization.product import ProductQuantizer
from nearkin.records import Interactions


@dataclass(frozen=True)
class Defaults:
    """Candidates, and sizes of their comparison, from `python -m benchmarks codecs pairs` (2026-11)."""

    ridges: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the queries' mean eigenvalue
    powers: tuple[float, ...] = (0.0, 0.125, 0.25, 0.375, 0.5)
    floor: float = 0.1  # share of D's mean eigenvalue added to D, which is estimated from few pairs
    rows: int = 8_192  # that compare maps, at most, and all answers
    rounds: int = 8  # of the codes that compare powers
    queries: int = 1_000  # held out, at most
    neighbours: int = 10  # k of the recall


DEFAULTS = Defaults()


@dataclass(eq=False, repr=False)
class PairMap(SavedEstimator):
    """Map rows and queries so that codes of the rows find the answers of queries.

    Index `transform(X)` by any quantizer or engine, and search it by `transform_queries(Q)`: by squared distance.

    Parameters
    ----------
    n_bytes: bytes of the product codes that compare the maps, best the index's size; None compares them without codes.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    rows_ (d, d), queries_ (d, d) float32: rows become `X @ rows_`, queries `Q @ queries_`; identities where nothing is
        gained.
    ridge_, power_: the choice; ridge_ is None if the vectors do not change.
    recall_, plain_recall_: the share of held-out queries with an answer among their 10 nearest rows by the codes,
        with the maps and without. The same queries chose the maps, so new queries gain a little less.
    n_features_in_.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 16)).astype(np.float32)
    >>> answers = rng.integers(0, 500, 200)
    >>> Q = X[answers] @ rng.normal(size=(16, 16)) + rng.normal(size=(200, 16))
    >>> maps = PairMap(random_state=0).fit(X, Q, np.column_stack([np.arange(200), answers]))
    >>> maps.recall_ > maps.plain_recall_
    True
    """

    KIND = "pair map"

    n_bytes: int | None = None
    _: KW_ONLY
    random_state: Seed = None

    def fit(
        self, X: ArrayLike, queries: ArrayLike, pairs: ArrayLike | Interactions, *, callback: Callback = ignore
    ) -> Self:
        """Learn from rows X (n, d), queries (m, d) and pairs (p, 2) of a query's number and the number of its answer.

        `pairs` may be `Interactions` whose left entities are the queries and right ones the rows, in that order. At
        least 20 queries need an answer. `callback(step, record)` is called after each choice tried. ValueError or
        TypeError, before any work, for what cannot be used.
        """
        X = check_magnitude(validate_vectors(self, X, reset=True)).astype(np.float32)
        n, d = X.shape
        Q = check_queries(queries, d).astype(np.float32)
        if self.n_bytes is not None:
            check_integer(self.n_bytes, "n_bytes", low=1, high=d)
        numbers = _numbers(pairs, len(Q), n)
        generator = numpy_generator(self.random_state)
        judge, learned = _Judge.of(X, Q, numbers, self.n_bytes, generator)
        asked, answers = Q[learned[:, 0]], X[learned[:, 1]]
        plain = judge.recall(np.eye(d, dtype=np.float32), np.eye(d, dtype=np.float32))
        found: dict[tuple[float, float], float] = {}
        steps = itertools.count(1)

        def tried(ridge: float, power: float, *, coded: bool) -> float:
            maps = pair_maps(asked, answers, ridge, power)
            found[ridge, power] = judge.recall(*maps, coded=coded)
            record = {"ridge": ridge, "power": power, "total": len(DEFAULTS.ridges) + len(DEFAULTS.powers)}
            callback(next(steps), {**record, "objective": -found[ridge, power]})
            return found[ridge, power]

        ridge = max(DEFAULTS.ridges, key=lambda ridge: tried(ridge, 0.0, coded=False))
        power = max(DEFAULTS.powers, key=lambda power: tried(ridge, power, coded=True))
        self.recall_, self.plain_recall_ = max(found[ridge, power], plain), plain
        self.ridge_, self.power_ = (ridge, power) if self.recall_ > plain else (None, 0.0)
        self.rows_ = self.queries_ = np.eye(d, dtype=np.float32)
        if self.recall_ > plain:
            self.queries_, self.rows_ = pair_maps(Q[numbers[:, 0]], X[numbers[:, 1]], ridge, power)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Rows X (n, d) for the index, (n, d) float32 or float64 as X is."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        return X @ self.rows_.astype(X.dtype)

    def transform_queries(self, Q: ArrayLike) -> np.ndarray:
        """Queries Q (m, d) for that index, (m, d) float32 or float64 as Q is."""
        check_is_fitted(self)
        Q = check_vectors(Q, name="Q", n_features=self.n_features_in_)
        return Q @ self.queries_.astype(Q.dtype)


def _numbers(pairs: ArrayLike | Interactions, n_queries: int, n_rows: int) -> np.ndarray:
    """Pairs (p, 2) int64, checked."""
    if isinstance(pairs, Interactions):
        if (len(pairs.left_ids), len(pairs.right_ids)) != (n_queries, n_rows):
            raise ValueError(
                f"pairs have {len(pairs.left_ids)} left and {len(pairs.right_ids)} right entities; they must be the "
                f"{n_queries} queries and the {n_rows} rows: give Interactions.from_pairs left_ids and right_ids"
            )
        pairs = np.column_stack([pairs.rows, pairs.indices])
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"pairs have shape {pairs.shape}, dtype {pairs.dtype}; they must be integers (p, 2)")
    pairs = pairs.astype(np.int64)
    for column, count, name in ((pairs[:, 0], n_queries, "queries"), (pairs[:, 1], n_rows, "X")):
        wrong = column[(column < 0) | (column >= count)]
        if len(wrong):
            raise ValueError(f"pairs name number {wrong[0]} of {name}, which has {count} rows: 0..{count - 1}")
    if len(np.unique(pairs[:, 0])) < 20:
        raise ValueError(f"pairs hold {len(np.unique(pairs[:, 0]))} queries with an answer; give at least 20")
    return pairs


def pair_maps(Q: np.ndarray, A: np.ndarray, ridge: float, power: float) -> tuple[np.ndarray, np.ndarray]:
    """The maps of queries and of rows, (d, d) float32 each, from queries Q (p, d) and their answers A (p, d)."""
    W = _regressed(Q, A, ridge)
    if not power:
        return W.astype(np.float32), np.eye(Q.shape[1], dtype=np.float32)
    halves = slice(0, None, 2), slice(1, None, 2)  # residuals of pairs that the regression did not see
    left = [Q[there] @ _regressed(Q[here], A[here], ridge) - A[there] for here, there in (halves, halves[::-1])]
    D = sum((part.T @ part for part in left), np.zeros((Q.shape[1],) * 2)) / len(Q)
    values, axes = np.linalg.eigh(D)
    values = np.maximum(values, 0) + DEFAULTS.floor * max(values.mean(), np.finfo(np.float32).tiny)
    scales = (values / np.exp(np.log(values).mean())) ** (-power / 2)
    M = (axes * scales) @ axes.T
    return (W @ M).astype(np.float32), M.astype(np.float32)


def _regressed(Q: np.ndarray, A: np.ndarray, ridge: float) -> np.ndarray:
    """W (d, d) float64 of the smallest ||Q W - A||^2 + r ||W - I||^2."""
    gram, cross = (Q.T @ Q).astype(np.float64), (Q.T @ A).astype(np.float64)
    kept = (ridge * max(np.trace(gram) / len(gram), np.finfo(np.float32).tiny)) * np.eye(len(gram))
    return np.linalg.solve(gram + kept, cross + kept)


class _Judge(NamedTuple):
    """Rows (n, d), held-out queries (m, d), and for each query a row (by number) that answers it."""

    rows: np.ndarray
    queries: np.ndarray
    answers: np.ndarray
    n_bytes: int | None
    seed: int

    @classmethod
    def of(
        cls, X: np.ndarray, Q: np.ndarray, pairs: np.ndarray, n_bytes: int | None, generator: np.random.Generator
    ) -> "tuple[_Judge, np.ndarray]":
        """The judge, for a quarter of the queries, and the pairs of the others."""
        asked = generator.permutation(np.unique(pairs[:, 0]))
        held = np.isin(pairs[:, 0], asked[: min(DEFAULTS.queries, len(asked) // 4)])
        judged = pairs[held][np.unique(pairs[held, 0], return_index=True)[1]]
        needed = np.unique(judged[:, 1])
        others = np.setdiff1d(generator.permutation(len(X))[: DEFAULTS.rows], needed)
        kept = np.concatenate([needed, others])
        place = np.searchsorted(needed, judged[:, 1])
        return cls(X[kept], Q[judged[:, 0]], place, n_bytes, draw_seed(generator)), pairs[~held]

    def recall(self, of_queries: np.ndarray, of_rows: np.ndarray, *, coded: bool = True) -> float:
        """Share of the queries whose answer is among their nearest rows, by codes or by the mapped rows themselves."""
        rows = self.rows @ of_rows
        if coded and self.n_bytes is not None:
            K = 256 if len(rows) >= 1024 else 16
            codes = ProductQuantizer(self.n_bytes, K, init="random", max_iter=DEFAULTS.rounds, random_state=self.seed)
            rows = codes.decode(codes.fit(rows).encode(rows))
        found = nearest_rows(rows, self.queries @ of_queries, DEFAULTS.neighbours)
        return float((found == self.answers[:, None]).any(axis=1).mean())
