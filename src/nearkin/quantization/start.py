"""Where a rotation starts: identity, balanced PCA, Haar-random, or the best of a short race between them.

The start decides more than the update rule does: a local optimum near a bad start stays worse than plain PQ.
"""

from dataclasses import dataclass, field, replace

import faiss
import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin._random import draw_seed
from nearkin._shards import Shard
from nearkin.linalg.dealing import deal_axes
from nearkin.linalg.haar import haar_orthogonal
from nearkin.metrics import recall_k_at_k
from nearkin.quantization.codebooks import assign, decode, kmeans, squared_error
from nearkin.quantization.learning import Step, alternate
from nearkin.quantization.principal import Space
from nearkin.quantization.rotation import procrustes_update
from nearkin.statistics import Gram, Mean

STARTS = ("identity", "pca", "random")
_RACE_ROUNDS = (4, 8)  # rounds before the hopeless leave, rounds after
_HOPELESS = 1.15  # a start this much behind the leader after the first rounds does not catch up
_NEAR = 0.02  # unless it keeps nearly as many neighbours: few rows make some starts look better than they are
_RACE_ROWS_PER_CENTROID = 16
_JUDGING, _NEIGHBOURS = 500, 10  # held-out rows that are queries where none are given, and how many neighbours count


def identity_start(X: np.ndarray, n_subspaces: int, generator: np.random.Generator, group: Group = ALONE) -> np.ndarray:
    """Plain PQ's axes: right where the axes carry meaning, as in SIFT or images."""
    del n_subspaces, generator, group
    return np.eye(X.shape[1], dtype=np.float32)


def pca_start(X: np.ndarray, n_subspaces: int, generator: np.random.Generator, group: Group = ALONE) -> np.ndarray:
    """Principal axes dealt to the subspaces so that the products of their variances balance (OPQ, section 3.2)."""
    del generator
    X = X if group.size == 1 else np.concatenate(group.gather(X))  # sums in another order give other axes where
    d = X.shape[1]  # variances are equal or nearly so, and then other codes
    mean = Mean(d).update(X).finalize()
    variances, axes = np.linalg.eigh(Gram(mean).update(X).finalize())
    variances, axes = variances[::-1], axes[:, ::-1]
    logs = np.log(np.maximum(variances / max(variances[0], np.finfo(float).tiny), 1e-12))
    logs -= logs.min()  # in units of the smallest, so that every axis adds volume
    return np.ascontiguousarray(axes[:, deal_axes(logs, n_subspaces).ravel()], dtype=np.float32)


def random_start(X: np.ndarray, n_subspaces: int, generator: np.random.Generator, group: Group = ALONE) -> np.ndarray:
    """Haar-random: spreads correlated axes over all subspaces, and FAISS's only start."""
    del n_subspaces, group
    return haar_orthogonal(X.shape[1], X.shape[1], random_state=draw_seed(generator)).numpy()


_START = {"identity": identity_start, "pca": pca_start, "random": random_start}


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

    def widened(self, step: Step) -> Step:
        """What was learned from them, for rows of all d columns."""
        return step if self.space is None else self.space.widened(step)


def start_rotation(
    init: str,
    X: np.ndarray,
    n_subspaces: int,
    n_centroids: int,
    generator: np.random.Generator,
    weights: np.ndarray | None = None,
    shard: Shard | None = None,
    queries: np.ndarray | None = None,
    space: Space | None = None,
) -> Start:
    """Where to start with centred rows X (n, d); every start but "identity", the axes as they are, learns in `space`.

    `init="auto"` runs a few rounds of learning (by the exact update, whichever follows) from each start on a subsample,
    and returns the start that keeps most neighbours on rows held out from it: what follows is then what that start by
    name would give. The neighbours are those of `queries` (m, d), or of some held-out rows. Where rows have weights, or
    are too few to be neighbours, distortion decides. Comparing the starts before any round picks wrong where a start is
    good but leads nowhere. With a `shard` X is a part of the rows, and every process runs the race on the same
    subsample.
    """
    shard = shard or Shard.of(X)
    narrow, starts = X if space is None else space.rows(X), {}
    for name in STARTS if init == "auto" else (init,):
        own, seen = (None, X) if name == "identity" else (space, narrow)
        starts[name] = Start(_START[name](seen, n_subspaces, generator, shard.group), own)
    if init != "auto":
        return starts[init]
    return _race(starts, X, n_subspaces, n_centroids, generator, weights, shard, queries)


def _race(
    starts: dict[str, Start],
    X: np.ndarray,
    n_subspaces: int,
    n_centroids: int,
    generator: np.random.Generator,
    weights: np.ndarray | None,
    shard: Shard,
    queries: np.ndarray | None,
) -> Start:
    """The start whose codes keep most neighbours after a few rounds on a subsample."""
    rows = generator.permutation(shard.total)[: 2 * max(_RACE_ROWS_PER_CENTROID * n_centroids, 2048)]
    half = max(len(rows) // 2, n_centroids)
    rest = slice(half, None) if len(rows) - half >= n_centroids else slice(None)
    drawn, drawn_weights = shard.rows(X, rows), None if weights is None else shard.rows(weights, rows)
    train, held_out = drawn[:half], drawn[rest]
    train_weights, held_weights = (None, None) if drawn_weights is None else (drawn_weights[:half], drawn_weights[rest])
    seed = draw_seed(generator)
    race: dict[str, Step] = {}
    for name, start in starts.items():
        books = kmeans(
            start.seen(train) @ start.rotation, n_subspaces, n_centroids, 4, seed, train_weights, shard.group
        )
        race[name] = Step(start.rotation, books)
    judged = weights is None and len(held_out) >= (2 * _JUDGING if queries is None else 2 * _NEIGHBOURS)
    error: dict[str, float] = {}
    kept: dict[str, float] = {}
    for rounds in _RACE_ROUNDS:
        whole: dict[str, Step] = {}  # of full width, by which they are judged
        for name, step in race.items():
            seen = starts[name].seen(train)
            race[name] = step = alternate(seen, step, procrustes_update, rounds, weights=train_weights)
            whole[name] = step = starts[name].widened(step)
            Z = held_out @ step.rotation
            error[name] = squared_error(Z, assign(Z, step.codebooks), step.codebooks, held_weights)
        kept |= _neighbours_kept(whole, held_out, queries) if judged else {}
        race = _hopeful(race, error, kept)
    return replace(starts[next(iter(race))], distortion=error, recall=kept)


def _hopeful(race: dict[str, Step], error: dict[str, float], kept: dict[str, float]) -> dict[str, Step]:
    """Those that are not behind the leader in distortion and in neighbours kept, the best first."""
    lowest, most = min(error[name] for name in race), max((kept[name] for name in race if kept), default=0.0)
    hopeful = [name for name in race if error[name] <= _HOPELESS * lowest or (kept and kept[name] >= most - _NEAR)]
    return {name: race[name] for name in sorted(hopeful, key=lambda name: (-kept.get(name, 0.0), error[name]))}


def _neighbours_kept(race: dict[str, Step], rows: np.ndarray, queries: np.ndarray | None) -> dict[str, float]:
    """Share of the nearest rows, by the rows themselves, that each step's codes keep; queries are float32 and exact."""
    if queries is None:
        queries, rows = rows[:_JUDGING], rows[_JUDGING:]
    truth = _nearest(rows, queries)
    kept: dict[str, float] = {}
    for name, step in race.items():
        coded = decode(assign(rows @ step.rotation, step.codebooks), step.codebooks)
        kept[name] = recall_k_at_k(_nearest(coded, queries @ step.rotation), truth, _NEIGHBOURS)
    return kept


def _nearest(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    exact = faiss.IndexFlatL2(rows.shape[1])
    exact.add(np.ascontiguousarray(rows))
    return exact.search(np.ascontiguousarray(queries), _NEIGHBOURS)[1]
