"""Where a rotation starts: identity, balanced PCA, Haar-random, or the best of a short race between them.

The start decides more than the update rule does: a local optimum near a bad start stays worse than plain PQ.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin._faiss import nearest_rows
from nearkin._random import draw_seed
from nearkin._shards import Shard
from nearkin.linalg.dealing import deal_axes
from nearkin.linalg.orthonormal import haar_rotation
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.quantization.codebooks import State, assign, decode, exact_updates, kmeans, refine, squared_error
from nearkin.quantization.principal import principal_axes, reached
from nearkin.quantization.training_rows import TrainingRows
from nearkin.statistics import Gram, Mean

STARTS = ("identity", "pca", "random")
_RACE_ROUNDS = (3, 2)  # rounds before the hopeless leave, rounds after
_RACE_KMEANS = 2  # iterations before them
_HOPELESS = 1.15  # a start this much behind the leader after the first rounds does not catch up
_NEAR = 0.02  # unless it keeps nearly as many neighbours: few rows make some starts look better than they are
_RACE_ROWS_PER_CENTROID = 16
_JUDGED = 2500  # rows that judge, at most
_JUDGING, _NEIGHBOURS = 500, 10  # rows that are queries where none are given, and how many neighbours count
_DISTORTION = 0.1  # share of neighbours that lower distortion weighs: queries so few tell shares to about .01
_FEWEST = 64  # columns of rows for which leaving axes out is worth its trouble
_WORTH = 0.8  # share of the axes up to which leaving the others out saves more than it costs


class Space(NamedTuple):
    """The first `width` of the principal axes (d, d), along which a rotation and codebooks are learned at first.

    A product, a decomposition and the noise of a centroid cost width instead of d. What a code tells of the other axes
    is learned at the end, when codebooks settle at full width.
    """

    axes: np.ndarray
    width: int

    @classmethod
    def of(cls, X: np.ndarray, n_subspaces: int, n_centroids: int, group: Group = ALONE) -> Self | None:
        """For centred rows X (n, d) and product codes; None where rows are short or too few axes could be left out."""
        if X.shape[1] < _FEWEST:
            return None
        X = X if group.size == 1 else np.concatenate(group.gather(X))  # every process takes the same axes
        axes, variances = principal_axes(X)
        width = n_subspaces * -(-reached(variances, n_subspaces * np.log2(n_centroids)) // n_subspaces)
        return cls(axes, width) if width <= _WORTH * len(axes) else None

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Rows X (n, d) along these axes, (n, width)."""
        return np.ascontiguousarray(X @ self.axes[:, : self.width])

    def widened(self, state: State) -> State:
        """The same rotation and codebooks over all axes: each subspace gets its share of the others, centroids 0."""
        M, K, narrow = state.codebooks.shape
        turned, others = self.axes[:, : self.width] @ state.rotation, self.axes[:, self.width :]
        parts = zip(np.split(turned, M, axis=1), np.split(others, M, axis=1), strict=True)
        codebooks = np.zeros((M, K, len(self.axes) // M), np.float32)
        codebooks[:, :, :narrow] = state.codebooks
        return State(np.ascontiguousarray(np.hstack([part for pair in parts for part in pair])), codebooks)


@dataclass(frozen=True)
class Start:
    """rotation (d', d') of the rows along `space`, d' = d where that is None, and what each raced start had reached."""

    rotation: np.ndarray
    space: Space | None
    distortion: dict[str, float] = field(default_factory=dict)
    recall: dict[str, float] = field(default_factory=dict)

    def seen(self, X: np.ndarray) -> np.ndarray:
        """Rows X (n, d) as they are learned from, (n, d')."""
        return X if self.space is None else self.space.rows(X)

    def widened(self, state: State) -> State:
        """What was learned from them, for rows of all d columns."""
        return state if self.space is None else self.space.widened(state)


def start_rotation(
    init: str,
    rows: TrainingRows,
    n_subspaces: int,
    n_centroids: int,
    generator: np.random.Generator,
    space: Space | None,
) -> Start:
    """Where to start with centred rows; every start but "identity", the axes as they are, learns in `space`.

    `init="auto"` runs a few rounds of learning (by the exact update, whichever follows) from each start on a subsample,
    and returns the start that keeps most neighbours on rows held back from it: what follows is then what that start by
    name would give. The neighbours are those of the queries, or of some rows held back. Where rows have weights, or are
    too few to be neighbours, distortion decides. Comparing the starts before any round picks wrong where a start is
    good but leads nowhere. Every process runs the race on the same subsample.
    """
    narrow, starts = rows.X if space is None else space.rows(rows.X), {}
    for name in STARTS if init == "auto" else (init,):
        own, seen = (None, rows.X) if name == "identity" else (space, narrow)
        starts[name] = Start(_rotation(name, seen, n_subspaces, generator, rows.shard), own)
    return starts[init] if init != "auto" else _race(starts, rows, n_subspaces, n_centroids, generator)


def _rotation(name: str, X: np.ndarray, n_subspaces: int, generator: np.random.Generator, shard: Shard) -> np.ndarray:
    """The rotation (d, d) float32 that a start has by name, for rows X (n, d)."""
    if name == "identity":  # right where the axes carry meaning, as in SIFT or images
        return np.eye(X.shape[1], dtype=np.float32)
    if name == "pca":
        return pca_start(shard.whole(X), n_subspaces)  # sums in another order give other axes of near variances
    return haar_rotation(X.shape[1], draw_seed(generator))  # spreads correlated axes over all subspaces, as FAISS's


def pca_start(X: np.ndarray, n_subspaces: int) -> np.ndarray:
    """Principal axes dealt to the subspaces so that the products of their variances balance (OPQ, section 3.2)."""
    mean = Mean(X.shape[1]).update(X).finalize()
    variances, axes = np.linalg.eigh(Gram(mean).update(X).finalize())
    variances, axes = variances[::-1], axes[:, ::-1]
    logs = np.log(np.maximum(variances / max(variances[0], np.finfo(float).tiny), 1e-12))
    logs -= logs.min()  # in units of the smallest, so that every axis adds volume
    return np.ascontiguousarray(axes[:, deal_axes(logs, n_subspaces).ravel()], dtype=np.float32)


def _race(
    starts: dict[str, Start], rows: TrainingRows, n_subspaces: int, n_centroids: int, generator: np.random.Generator
) -> Start:
    """The start whose codes keep most neighbours after a few rounds on a subsample.

    Those that are behind the leader in both distortion and neighbours kept drop out after each part of the rounds.
    """
    numbers = generator.permutation(rows.shard.total)[: 2 * max(_RACE_ROWS_PER_CENTROID * n_centroids, 2048)]
    half = max(len(numbers) // 2, n_centroids)
    X, weights = rows.drawn(numbers)
    train = TrainingRows(X[:half], Shard.of(X[:half]), None if weights is None else weights[:half])
    rest = slice(half, None) if len(X) - half >= n_centroids else slice(None)
    judged, judged_weights = X[rest][:_JUDGED], None if weights is None else weights[rest][:_JUDGED]
    by_neighbours = weights is None and len(judged) >= (2 * _JUDGING if rows.queries is None else 2 * _NEIGHBOURS)
    seen = {name: replace(train, X=start.seen(train.X)) for name, start in starts.items()}
    seed = draw_seed(generator)
    race: dict[str, State] = {}
    updates = {name: exact_updates() for name in starts}
    for name, start in starts.items():
        Z = seen[name].X @ start.rotation
        race[name] = State(
            start.rotation, kmeans(Z, n_subspaces, n_centroids, _RACE_KMEANS, seed, train.weights, rows.shard.group)
        )
    error: dict[str, float] = {}
    kept: dict[str, float] = {}
    judge = _Judge.of(judged, rows.queries) if by_neighbours else None
    for rounds in _RACE_ROUNDS:
        whole: dict[str, State] = {}  # of full width, by which they are judged
        for name, state in race.items():
            race[name] = state = refine(seen[name], state, updates[name], rounds)
            whole[name] = state = starts[name].widened(state)
            Z = judged @ state.rotation
            error[name] = squared_error(Z, assign(Z, state.codebooks), state.codebooks, judged_weights)
        kept |= judge.kept(whole) if judge else {}
        lowest, most = min(error[name] for name in race), max((kept[name] for name in race if kept), default=0.0)
        near = [name for name in race if error[name] <= _HOPELESS * lowest or (kept and kept[name] >= most - _NEAR)]
        score = {name: kept.get(name, 0.0) - _DISTORTION * (error[name] / (lowest or 1.0) - 1) for name in near}
        race = {name: race[name] for name in sorted(near, key=lambda name: -score[name])}
    return replace(starts[next(iter(race))], distortion=error, recall=kept)


class _Judge(NamedTuple):
    """Queries (m, d), the rows that they search and which of them are truly nearest; queries stay exact."""

    queries: np.ndarray
    rows: np.ndarray
    truth: ExactNeighbours

    @classmethod
    def of(cls, rows: np.ndarray, queries: np.ndarray | None) -> Self:
        """Some of the rows ask where no queries are given."""
        if queries is None:
            queries, rows = rows[:_JUDGING], rows[_JUDGING:]
        return cls(queries, rows, ExactNeighbours.of(rows, queries, _NEIGHBOURS))

    def kept(self, race: dict[str, State]) -> dict[str, float]:
        """Share of the nearest rows that each one's codes keep."""
        kept: dict[str, float] = {}
        for name, state in race.items():
            coded = decode(assign(self.rows @ state.rotation, state.codebooks), state.codebooks)
            kept[name] = self.truth.kept(nearest_rows(coded, self.queries @ state.rotation, _NEIGHBOURS))
        return kept
