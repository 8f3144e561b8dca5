"""One fit of a product quantizer: centre the rows, start, alternate, settle."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from nearkin._random import draw_seed
from nearkin._shards import Shard
from nearkin._threads import serial_products
from nearkin._types import Fields, Record
from nearkin.contracts import Callback
from nearkin.quantization.coarse import CoarseQuantizer
from nearkin.quantization.codebooks import State, Update, exact_updates, kmeans, make_room, refine
from nearkin.quantization.rotation import make_update
from nearkin.quantization.start import Space, start_rotation
from nearkin.quantization.training_rows import Prepared, TrainingRows
from nearkin.statistics import Mean, SquaredNorm

_FIRST_KMEANS = 4  # iterations before the rotation first moves,
_FIRST_ROWS = 64  # on about so many rows for each centroid: the rounds that follow see all of them
_LAST_KMEANS = 3  # iterations after it has stopped
_WIDE_ROUNDS = 4  # one round in so many is along more axes, where the start asks for it, and does the work of two
_SQUARES = ("objective", "distortion")  # of a record of the history
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
class Learned:
    """rotation (d, d'), codebooks (M, K, d'/M), coarse centroids (L, d) or None, all float32, and how it went."""

    rotation: np.ndarray
    codebooks: np.ndarray
    coarse: np.ndarray | None = None
    init_distortion: dict[str, float] = field(default_factory=dict)
    init_recall: dict[str, float] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)


def learn(prepared: Prepared, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Coarse cells, the mean, then rotation and codebooks of what is left; all for the rows as the user gave them."""
    rows, apart, places, scale = prepared.rows, prepared.apart, prepared.places, np.float32(prepared.scale)
    shard, coarse = rows.shard, None

    def heard(step: int, record: Fields) -> None:
        callback(step, unscaled(record, prepared.scale, _SQUARES))

    with serial_products(rows.X.size * rows.X.shape[1]):
        if plan.n_lists:  # FAISS's k-means of the rows of all processes, by each of them: it has no sums to merge
            cells = CoarseQuantizer.train(shard.whole(rows.X), plan.n_lists, draw_seed(generator))
            shard.group.broadcast(cells.centroids)
            coarse = cells.centroids[:, places] / scale
            # queries are compared with residuals of their own cells, so they do not judge the starts here
            rows, apart = replace(rows, X=cells.residuals(rows.X), queries=None), cells.residuals(apart)
        rows, mean = _centred(rows)
        learned = _learn(rows, plan, generator, heard)
        rotation, codebooks = learned.rotation, learned.codebooks
        if len(apart):
            Z, far = (part @ rotation for part in (rows.X, apart - mean))
            codebooks = make_room(codebooks, Z, far, draw_seed(generator), shard.group)
    codebooks = (codebooks + (mean @ rotation).reshape(plan.n_subspaces, 1, -1)) / scale
    return replace(
        learned, rotation=rotation[places], codebooks=codebooks, coarse=coarse,
        init_distortion=unscaled(learned.init_distortion, prepared.scale),
        history=[unscaled(entry, prepared.scale, _SQUARES) for entry in learned.history],
    )  # fmt: skip


def unscaled(squares: Fields, scale: float, names: Iterable[str] | None = None) -> Record:
    """`squares` in which those of these names, default all, are squares of the rows as they were before `scale`."""
    names = set(squares if names is None else names)
    return {name: value / scale**2 if name in names else value for name, value in squares.items()}


def _centred(rows: TrainingRows) -> tuple[TrainingRows, np.ndarray]:
    """The rows less their weighted mean, their weights of mean 1, and that mean (d,) float32."""
    X, weights, group = rows.X, rows.weights, rows.shard.group
    mean = group.merge(Mean(X.shape[1]).update(X, weights)).finalize().astype(np.float32)
    if weights is not None:
        average = group.merge(Mean(1).update(weights[:, None])).finalize()
        weights = (weights / average).astype(np.float32)
    queries = None if rows.queries is None else rows.queries - mean
    return replace(rows, X=X - mean, weights=weights, queries=queries), mean


def _learn(rows: TrainingRows, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Start, alternate, then settle the codebooks with the rotation fixed; the rows are centred."""
    shard, M, K, d = rows.shard, plan.n_subspaces, plan.n_centroids, rows.X.shape[1]
    history: list[Record] = []
    total = _PLAIN_KMEANS if plan.rotation == "none" else plan.max_iter + _LAST_KMEANS

    def record(_: int, entry: Fields) -> None:
        history.append({**entry, "total": total})
        callback(len(history), history[-1])

    if plan.rotation == "none":
        every = None if rows.weights is None else shard.whole(rows.weights)
        codebooks = kmeans(shard.whole(rows.X), M, K, 1, draw_seed(generator), every, shard.group)
        state = State(np.eye(d, dtype=np.float32), codebooks)
        state = refine(rows, state, None, total - 1, tol=plan.tol, callback=record)
        return Learned(state.rotation, state.codebooks, history=history)
    seed, own = draw_seed(generator), np.random.default_rng(draw_seed(generator))  # whatever `init` will draw
    start = start_rotation(plan.init, rows, M, K, own, _space(plan, rows), plan.max_iter)
    shard.group.broadcast(start.rotation)
    few, weights = rows.drawn(np.arange(0, shard.total, max(1, shard.total // (_FIRST_ROWS * K))))
    first = kmeans(start.seen(few) @ start.rotation, M, K, _FIRST_KMEANS, seed, weights, shard.group)
    energy = _energy(rows.X, shard)

    def along(space: Space | None, state: State, update: Update | None, rounds: int) -> State:
        """Rounds with the rows along that space; what it leaves out is part of the error."""
        seen = rows if space is None else replace(rows, X=space.rows(rows.X))
        left_out = 0.0 if space is None else energy - _energy(seen.X, shard)

        def whole(step: int, entry: Fields) -> None:
            error = entry["distortion"] + left_out
            record(step, {**entry, "objective": error, "distortion": error})

        return refine(seen, state, update, rounds, tol=plan.tol, callback=whole)

    update = make_update(plan.rotation, len(start.rotation), plan.step, plan.n_blocks, generator)
    wide = 0 if start.wider is None else plan.max_iter // _WIDE_ROUNDS
    state = along(start.space, State(start.rotation, first), update, plan.max_iter - 2 * wide)
    if start.wider is not None:
        state = along(start.wider, start.wider.grown(state), exact_updates(), wide)
    state = refine(rows, start.widened(state), None, _LAST_KMEANS, callback=record)
    return Learned(state.rotation, state.codebooks, None, start.distortion, start.recall, history)


def _space(plan: Plan, rows: TrainingRows) -> Space | None:
    """Where axes may be left out: for the default rule of updates and rows that count alike."""
    if plan.rotation != "procrustes" or rows.weights is not None:
        return None
    return Space.of(rows.X, plan.n_subspaces, plan.n_centroids, rows.shard.group)


def _energy(X: np.ndarray, shard: Shard) -> float:
    """Mean squared norm of the rows of all processes."""
    return shard.group.merge(SquaredNorm().update(X)).finalize()
