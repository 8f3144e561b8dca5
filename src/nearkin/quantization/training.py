"""One fit of a product quantizer: set far rows aside, centre, start, alternate, settle."""

from dataclasses import dataclass, field, replace

import numpy as np

from nearkin._random import draw_seed
from nearkin._shards import Shard
from nearkin._types import Fields, Record
from nearkin.contracts import Callback
from nearkin.linalg.threads import calm_products
from nearkin.quantization import codebooks as books
from nearkin.quantization import outliers
from nearkin.quantization.coarse import CoarseQuantizer
from nearkin.quantization.learning import Step, alternate
from nearkin.quantization.principal import Space
from nearkin.quantization.rotation import make_update
from nearkin.quantization.start import start_rotation
from nearkin.statistics import Mean, SquaredNorm

_FIRST_KMEANS = 4  # iterations before the rotation first moves,
_FIRST_ROWS = 64  # on about so many rows for each centroid: the rounds that follow see all of them
_LAST_KMEANS = 5  # iterations after it has stopped
_PLAIN_KMEANS = 25  # iterations where there is no rotation, FAISS's default


@dataclass(frozen=True)
class Plan:
    """What a fit is asked for; the names are `ProductQuantizer`'s, `rotation` "none" for none."""

    n_subspaces: int
    n_centroids: int
    rotation: str
    init: str
    n_lists: int
    step: float | str
    n_blocks: int | None
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Rows:
    """This process's training rows X (n, d) float32, their weights (n,) or None, and where they stand."""

    X: np.ndarray
    weights: np.ndarray | None
    shard: Shard
    queries: np.ndarray | None = None  # (m, d) that the rows will be searched by; the same on every process

    def only(self, chosen: np.ndarray) -> "Rows":
        """The rows that a mask or numbers choose."""
        X = self.X[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        return Rows(X, weights, Shard.of(X, self.shard.group), self.queries)

    def drawn(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows and weights of these numbers, counted over all processes, on every process."""
        weights = None if self.weights is None else self.shard.rows(self.weights, numbers)
        return self.shard.rows(self.X, numbers), weights


@dataclass(frozen=True)
class Learned:
    """rotation (d, d'), codebooks (M, K, d'/M), coarse centroids (L, d) or None, all float32, and how it went."""

    rotation: np.ndarray
    codebooks: np.ndarray
    coarse: np.ndarray | None
    init_distortion: dict[str, float] = field(default_factory=dict)
    init_recall: dict[str, float] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)


def learn(rows: Rows, numbers: np.ndarray, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Fit to the rows of all processes; `numbers` (n,) are what the user calls this process's rows.

    A width that M does not divide is padded with columns of zeros, and the rotation (d, d') ends in the padded space.
    """
    places = spread_columns(rows.X.shape[1], plan.n_subspaces)
    if rows.X.shape[1] % plan.n_subspaces:
        width = plan.n_subspaces * -(-len(places) // plan.n_subspaces)
        queries = None if rows.queries is None else _spread(rows.queries, places, width)
        rows = replace(rows, X=_spread(rows.X, places, width), queries=queries)
    where = outliers.extent(rows.X, rows.shard)
    rows, apart = _set_aside(rows, numbers, where, max(plan.n_centroids, plan.n_lists))
    scale = outliers.calming_scale(np.array([where.radius]))
    if scale != 1:
        queries = None if rows.queries is None else rows.queries * np.float32(scale)
        rows, apart = replace(rows, X=rows.X * np.float32(scale), queries=queries), apart * np.float32(scale)

    def heard(step: int, record: Fields) -> None:
        callback(step, {**record, "distortion": record["distortion"] / scale**2})

    with calm_products(len(rows.X) * rows.X.shape[1] ** 2):
        learned = _learn(rows, apart, plan, generator, heard)
    coarse = None if learned.coarse is None else learned.coarse[:, places] / np.float32(scale)
    codebooks = learned.codebooks / np.float32(scale)
    return replace(learned, rotation=learned.rotation[places], codebooks=codebooks, coarse=coarse)


def spread_columns(d: int, n_subspaces: int) -> np.ndarray:
    """Places (d,) of d columns among d' = M ceil(d / M), so that the zeros between fall to as many subspaces as can be.

    >>> spread_columns(7, 3)
    array([0, 1, 2, 3, 4, 6, 7])
    """
    width = -(-d // n_subspaces)
    sizes = np.diff(np.arange(n_subspaces + 1) * d // n_subspaces)[::-1]
    return np.concatenate([width * m + np.arange(size) for m, size in enumerate(sizes)])


def _spread(X: np.ndarray, places: np.ndarray, width: int) -> np.ndarray:
    spread = np.zeros((len(X), width), np.float32)
    spread[:, places] = X
    return spread


def _set_aside(rows: Rows, numbers: np.ndarray, where: outliers.Extent, fewest: int) -> tuple[Rows, np.ndarray]:
    """The usual rows, and on every process the far rows (m, d) of all; none are far if too few would be left."""
    far = where.far(rows.X)
    m = sum(rows.shard.group.exchange(int(far.sum())))
    if m == 0 or rows.shard.total - m < fewest:
        return rows, rows.X[:0]
    outliers.warn_of(numbers[far], where)
    return rows.only(~far), rows.shard.whole(rows.X[far])


def _learn(rows: Rows, apart: np.ndarray, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Coarse cells, the mean, then rotation and codebooks of what is left."""
    shard, coarse = rows.shard, None
    if plan.n_lists:  # FAISS's k-means of the rows of all processes, by each of them: it has no sums to merge
        coarse = CoarseQuantizer.train(shard.whole(rows.X), plan.n_lists, draw_seed(generator))
        shard.group.broadcast(coarse.centroids)
        # queries are compared with residuals of their own cells, so they do not judge the starts here
        rows, apart = replace(rows, X=coarse.residuals(rows.X), queries=None), coarse.residuals(apart)
    X, weights = rows.X, rows.weights
    mean = shard.group.merge(Mean(X.shape[1]).update(X, weights)).finalize().astype(np.float32)
    if weights is not None:
        average = shard.group.merge(Mean(1).update(weights[:, None])).finalize()
        weights = (weights / average).astype(np.float32)
    rows = Rows(X - mean, weights, shard, None if rows.queries is None else rows.queries - mean)
    learned = _rotation_and_codebooks(rows, plan, generator, callback)
    codebooks = learned.codebooks
    if len(apart):
        Z, far = (part @ learned.rotation for part in (rows.X, apart - mean))
        codebooks = outliers.make_room(codebooks, Z, far, draw_seed(generator), shard.group)
    codebooks = codebooks + (mean @ learned.rotation).reshape(plan.n_subspaces, 1, -1)
    return replace(learned, codebooks=codebooks, coarse=None if coarse is None else coarse.centroids)


def _rotation_and_codebooks(rows: Rows, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Start, alternate, then settle the codebooks with the rotation fixed; the rows are centred."""
    X, shard, M, K, d = rows.X, rows.shard, plan.n_subspaces, plan.n_centroids, rows.X.shape[1]
    update = make_update(plan.rotation, d, plan.step, plan.n_blocks, generator)
    history: list[Record] = []
    total = _PLAIN_KMEANS if update is None else plan.max_iter + _LAST_KMEANS

    def record(_: int, entry: Fields) -> None:
        history.append({**entry, "total": total})
        callback(len(history), history[-1])

    both = {"weights": rows.weights, "shard": shard}
    if update is None:
        every = None if rows.weights is None else shard.whole(rows.weights)
        codebooks = books.kmeans(shard.whole(X), M, K, 1, draw_seed(generator), every, shard.group)
        step = alternate(
            X, Step(np.eye(d, dtype=np.float32), codebooks), None, total - 1, tol=plan.tol, callback=record, **both
        )
        return Learned(step.rotation, step.codebooks, None, history=history)
    seed, own = draw_seed(generator), np.random.default_rng(draw_seed(generator))  # whatever `init` will draw
    space = Space.of(X, M, K, shard.group) if _learns_in_a_space(plan, rows) else None
    start = start_rotation(plan.init, X, M, K, own, rows.weights, shard, rows.queries, space)
    shard.group.broadcast(start.rotation)
    few, weights = rows.drawn(np.arange(0, shard.total, max(1, shard.total // (_FIRST_ROWS * K))))
    X, few = start.seen(X), start.seen(few)
    first = books.kmeans(few @ start.rotation, M, K, _FIRST_KMEANS, seed, weights, shard.group)
    left_out = _energy(rows.X, shard) - _energy(X, shard)

    def narrow(step: int, entry: Fields) -> None:
        error = entry["distortion"] + left_out
        record(step, {**entry, "objective": error, "distortion": error})

    step = alternate(X, Step(start.rotation, first), update, plan.max_iter, tol=plan.tol, callback=narrow, **both)
    step = alternate(rows.X, start.widened(step), None, _LAST_KMEANS, callback=record, **both)
    return Learned(step.rotation, step.codebooks, None, start.distortion, start.recall, history)


def _learns_in_a_space(plan: Plan, rows: Rows) -> bool:
    """Whether axes may be left out: for the default rule of updates and rows that count alike."""
    return plan.rotation == "procrustes" and plan.init != "identity" and rows.weights is None


def _energy(X: np.ndarray, shard: Shard) -> float:
    """Mean squared norm of the rows of all processes."""
    return shard.group.merge(SquaredNorm().update(X)).finalize()
