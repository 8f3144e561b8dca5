"""One fit of a product quantizer: centre the vectors, choose a start, alternate, run the last k-means."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol, Self

import numpy as np

from nearkin._check import draw_seed
from nearkin._distributed import ALONE, Group
from nearkin._threads import serial_products
from nearkin._types import Fields, Record
from nearkin.contracts import Callback
from nearkin.linalg.orthonormal import deal_axes, haar_rotation, nearest_orthogonal, principal_axes, reached
from nearkin.metrics.trial import DEFAULTS as OF_TRIALS
from nearkin.metrics.trial import ROWS, HeldOut, Trial
from nearkin.quantization.codebooks import (
    CoarseQuantizer,
    Prepared,
    State,
    TrainingRows,
    Update,
    assign,
    decode,
    exact_update,
    kmeans,
    make_room,
    refine,
)
from nearkin.quantization.rotation import cayley_update, givens_update
from nearkin.statistics import Shard, row_mean, squared_norm

_SQUARES = ("objective", "distortion")  # of a record of the history
STARTS = ("identity", "pca", "random")
ROTATIONS = (None, "procrustes", "givens-random", "givens-greedy", "givens-steepest", "cayley")


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of product codes, from SIFT, MNIST, GIST, sentences and word vectors; gains are of recall 10@10."""

    first_iterations: int = 4  # of k-means before the rotation first moves,
    last_iterations: int = 3  # k-means iterations after the last rotation update
    beyond: float = 3.0  # first overrelaxation; +.1 to 1.4 points on nine sets (2026-11-23, notes)
    space_share: float = 0.5  # most axes kept if any are left out; with .8, sentences at 24 bytes lost .024
    # times as many axes in the last rounds from the identity, and while codebooks settle; all axes changed recall by
    wider: int = 3  # -.1 to +.1 points on GIST at 12 and 16 bytes and MNIST at 8, 16 and 28 (2026-11-23)
    identity_from: int = 128  # least number of columns for which that saves time


DEFAULTS = Defaults()


class Space(NamedTuple):
    """Orthonormal axes (d, d); along the first `width`, the principal ones, a rotation and codebooks are trained at
    first. The codebooks along the other axes are trained in the last k-means. Without axes: the d columns themselves.
    """

    width: int
    axes: np.ndarray | None = None

    @classmethod
    def of(cls, X: np.ndarray, n_subspaces: int, n_centroids: int, group: Group = ALONE) -> Self:
        """For centred vectors X (n, d) and product codes; all columns where too few axes could be left out."""
        d = X.shape[1]
        if d < 64:  # leaving out axes saves no time
            return cls(d)
        X = X if group.size == 1 else np.concatenate(group.gather(X))  # every process must have the same axes
        axes, variances = principal_axes(X)
        width = n_subspaces * -(-reached(variances, n_subspaces * np.log2(n_centroids)) // n_subspaces)
        return cls(width, axes) if width <= DEFAULTS.space_share * d else cls(d)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Vectors X (n, d) along these axes, (n, width)."""
        return X if self.axes is None else np.ascontiguousarray(X @ self.axes[:, : self.width])

    @property
    def wider(self) -> "Space":
        """The same axes, of which more are trained along."""
        return self if self.axes is None else Space(min(DEFAULTS.wider * self.width, len(self.axes)), self.axes)

    def grown(self, state: State) -> State:
        """The same rotation and codebooks along these `width` axes, of which `state` has some of the first."""
        return _joined(state, np.eye(self.width, dtype=np.float32))

    def widened(self, state: State) -> State:
        """The same rotation and codebooks over all columns."""
        return state if self.axes is None else _joined(state, self.axes)


class Plan(Protocol):
    """The settings of a fit: those of `ProductQuantizer`."""

    n_subspaces: int
    n_centroids: int
    rotation: str | None
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
    trials: list[Record] = field(default_factory=list)
    history: list[Record] = field(default_factory=list)


def learn(prepared: Prepared, plan: Plan, generator: np.random.Generator, callback: Callback | None) -> Learned:
    """Train inverted lists and the mean, then rotation and codebooks of the residuals; results are for the user's
    original vectors."""
    rows, apart, places, scale = prepared.rows, prepared.apart, prepared.places, np.float32(prepared.scale)
    shard, coarse = rows.shard, None

    def report(step: int, record: Fields) -> None:
        if callback is not None:
            callback(step, unscaled(record, prepared.scale))

    with serial_products(rows.X.size * rows.X.shape[1]):
        if plan.n_lists:  # FAISS's k-means of the rows of all processes, by each of them: it has no sums to merge
            cells = CoarseQuantizer.train(shard.whole(rows.X), plan.n_lists, draw_seed(generator))
            shard.group.broadcast(cells.centroids)
            coarse = cells.centroids[:, places] / scale
            # queries are compared with residuals of each cell, so they cannot compare the starts here
            rows, apart = replace(rows, X=cells.residuals(rows.X), queries=None), cells.residuals(apart)
        weights = rows.weights
        mean = shard.group.merge(row_mean(rows.X, weights)).finalize().astype(np.float32)
        if weights is not None:  # of mean 1
            average = shard.group.merge(row_mean(weights[:, None])).finalize()
            rows = replace(rows, weights=(weights / average).astype(np.float32))
        rows = rows.changed(lambda X: X - mean)
        learned = _learn(rows, plan, generator, report)
        rotation, codebooks = learned.rotation, learned.codebooks
        if len(apart):
            Z, far = (part @ rotation for part in (rows.X, apart - mean))
            codebooks = make_room(codebooks, Z, far, draw_seed(generator), shard.group)
    codebooks = (codebooks + (mean @ rotation).reshape(plan.n_subspaces, 1, -1)) / scale
    return replace(
        learned, rotation=rotation[places], codebooks=codebooks, coarse=coarse,
        history=[unscaled(entry, prepared.scale) for entry in learned.history],
    )  # fmt: skip


def unscaled(record: Fields, scale: float) -> Record:
    """A record of the history whose squares are of the vectors as they were before `scale`."""
    return {name: value / scale**2 if name in _SQUARES else value for name, value in record.items()}


def _learn(rows: TrainingRows, plan: Plan, generator: np.random.Generator, callback: Callback) -> Learned:
    """Choose a start, alternate, then refit the codebooks with the rotation fixed; the rows are centred."""
    shard, M, K, d = rows.shard, plan.n_subspaces, plan.n_centroids, rows.X.shape[1]
    history: list[Record] = []

    def record(_: int, entry: Fields) -> None:
        history.append({**entry, "total": total})
        callback(len(history), history[-1])

    if plan.rotation is None:
        total = 25  # iterations of k-means, FAISS's default
        every = None if rows.weights is None else shard.whole(rows.weights)
        codebooks = kmeans(shard.whole(rows.X), M, K, 1, draw_seed(generator), every, shard.group)
        state = State(np.eye(d, dtype=np.float32), codebooks)
        state = refine(rows, state, None, total - 1, tol=plan.tol, callback=record)
        return Learned(state.rotation, state.codebooks, history=history)
    seed, own = draw_seed(generator), np.random.default_rng(draw_seed(generator))  # independent of the draws of `init`
    space = Space(d)  # axes may be left out only with the default updates and rows that count alike
    if plan.rotation == "procrustes" and rows.weights is None:
        space = Space.of(rows.X, M, K, shard.group)
    starts = start_rotation(plan, rows, own, space)
    start, trials = _chosen(starts, rows, plan, own) if len(starts) > 1 else (starts[plan.init], [])
    total = plan.max_iter + DEFAULTS.last_iterations
    state = _alternated(start, rows, plan, seed, generator, record)
    return Learned(state.rotation, state.codebooks, None, trials, history)


def _alternated(
    start: "Start", rows: TrainingRows, plan: Plan, seed: int, generator: np.random.Generator, callback: Callback
) -> State:
    """Rotation and codebooks after all rounds from a start and the last k-means; `seed` draws the first codebooks."""
    shard, M, K = rows.shard, plan.n_subspaces, plan.n_centroids
    shard.group.broadcast(start.rotation)
    # later rounds use all rows
    few, weights = rows.drawn(np.arange(0, shard.total, max(1, shard.total // (64 * K))))
    first = kmeans(start.space.rows(few) @ start.rotation, M, K, DEFAULTS.first_iterations, seed, weights, shard.group)
    energy = _energy(rows.X, shard)

    def along(space: Space, state: State, update: Update | None, rounds: int, tol: float = plan.tol) -> State:
        """Rounds with the rows along that space; what it leaves out is part of the error."""
        seen = replace(rows, X=space.rows(rows.X))
        left_out = energy - _energy(seen.X, shard)

        def whole(step: int, entry: Fields) -> None:
            error = entry["distortion"] + left_out
            callback(step, {**entry, "objective": error, "distortion": error})

        beyond = DEFAULTS.beyond if plan.rotation == "procrustes" and update is not None else 0.0
        return refine(seen, state, update, rounds, tol=tol, beyond=beyond, callback=whole)

    update = make_update(plan.rotation, len(start.rotation), plan.step, plan.n_blocks, generator)
    # one round in four is along more axes, if the start has them, and does the work of two
    wide, wider = plan.max_iter // 4 if start.widens else 0, start.space.wider
    state = along(start.space, State(start.rotation, first), update, plan.max_iter - 2 * wide)
    if wide:
        state = along(wider, wider.grown(state), exact_update, wide)
    everything = Space(rows.X.shape[1])
    if wider.width == everything.width:
        return along(everything, start.space.widened(state), None, DEFAULTS.last_iterations, 0.0)
    return wider.widened(along(wider, wider.grown(state), None, DEFAULTS.last_iterations, 0.0))


def _energy(X: np.ndarray, shard: Shard) -> float:
    return float(shard.group.merge(squared_norm(X)).finalize())


def _joined(state: State, axes: np.ndarray) -> State:
    """The rotation and codebooks along the first axes, extended to all axes (d, d): each subspace gets its share of the
    others, with centroids 0."""
    M, K, narrow = state.codebooks.shape
    turned, others = axes[:, : M * narrow] @ state.rotation, axes[:, M * narrow :]
    parts = zip(np.split(turned, M, axis=1), np.split(others, M, axis=1), strict=True)
    codebooks = np.zeros((M, K, len(axes) // M), np.float32)
    codebooks[:, :, :narrow] = state.codebooks
    return State(np.ascontiguousarray(np.hstack([part for pair in parts for part in pair])), codebooks)


@dataclass(frozen=True)
class Start:
    """rotation (w, w) of the vectors along the w axes of `space`; with `widens` the last rounds should train along more
    of the same axes."""

    rotation: np.ndarray
    space: Space
    widens: bool = False


def start_rotation(plan: Plan, rows: TrainingRows, generator: np.random.Generator, space: Space) -> dict[str, Start]:
    """The starts that `plan.init` names, for centred vectors, in `space`."""
    narrow, starts = space.rows(rows.X), dict[str, Start]()
    for name in STARTS if plan.init == "auto" else (plan.init,):
        if name == "identity":
            # with 10 rounds in a space the recall was .006 lower
            narrows = plan.max_iter >= 16 and rows.X.shape[1] >= DEFAULTS.identity_from
            starts[name] = _identity(rows, plan.n_subspaces, space if narrows else Space(rows.X.shape[1]))
        elif name == "pca":  # another order of sums may change axes of nearly equal variance
            starts[name] = Start(pca_start(rows.shard.whole(narrow), plan.n_subspaces), space)
        else:  # spreads correlated axes over all subspaces, as FAISS's
            starts[name] = Start(haar_rotation(narrow.shape[1], draw_seed(generator)), space)
    return starts


def _identity(rows: TrainingRows, n_subspaces: int, space: Space) -> Start:
    """The given axes: right where they carry meaning, as in SIFT or images.

    Where columns are many, as near to that as a rotation along `space` can be: by Procrustes its axes are fitted to the
    first principal axes of each block of columns, those that come next to the blocks' next ones. The last rounds have
    the next axes too, as variances do not show in full what columns of a block have in common.
    """
    start = np.eye(space.width, dtype=np.float32)
    if space.axes is None:
        return Start(start, space)
    X = rows.shard.whole(rows.X)
    columns, blocks = np.arange(X.shape[1]).reshape(n_subspaces, -1), np.zeros_like(space.axes)
    for block in columns:
        blocks[np.ix_(block, block)] = principal_axes(X[:, block])[0]
    axes = space.axes.copy()
    for first, last in pairwise((0, space.width, space.wider.width)):
        some = space.axes[:, first:last]
        targets = blocks[:, columns[:, first // n_subspaces : last // n_subspaces].ravel()]
        axes[:, first:last] = some @ nearest_orthogonal(some.T @ targets)
    return Start(start, space._replace(axes=axes), widens=True)


def pca_start(X: np.ndarray, n_subspaces: int) -> np.ndarray:
    """Principal axes dealt to the subspaces so that the products of their variances balance (OPQ, section 3.2)."""
    centred = X - X.mean(axis=0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(X))
    variances, axes = variances[::-1], axes[:, ::-1]
    logs = np.log(np.maximum(variances / max(variances[0], np.finfo(float).tiny), 1e-12))
    logs -= logs.min()  # in units of the smallest, so that every axis adds volume
    return np.ascontiguousarray(axes[:, deal_axes(logs, n_subspaces).ravel()], dtype=np.float32)


def _chosen(
    starts: dict[str, Start], rows: TrainingRows, plan: Plan, generator: np.random.Generator
) -> tuple[Start, list[Record]]:
    """The start whose codes have the highest recall after a short fit of few rows, and each one's record; where recall
    cannot be measured, that which loses the least of the rows' variance. Every process chooses by the same rows."""
    M, K, seed = plan.n_subspaces, plan.n_centroids, draw_seed(generator)
    X, weights = rows.drawn(generator.permutation(rows.shard.total)[: 16 * K])  # for a short fit
    few, held, trial = TrainingRows(X, Shard.of(X), weights), _held_out(rows, generator), Trial[str]()
    for name, start in starts.items():  # they cost the same
        Z = start.space.rows(X)
        state = State(start.rotation, kmeans(Z @ start.rotation, M, K, DEFAULTS.first_iterations, seed, weights))
        state = start.space.widened(refine(replace(few, X=Z), state, exact_update, 5))
        Z = (X if held is None else held.rows) @ state.rotation
        decoded = decode(assign(Z, state.codebooks), state.codebooks)
        if held is not None:
            trial.add(name, held.recall(decoded, held.queries @ state.rotation))
        else:
            lost = np.square(Z - decoded, dtype=np.float64).sum(axis=1) * (1 if weights is None else weights)
            trial.add(name, -lost / (float(np.square(Z, dtype=np.float64).sum()) / len(Z) or 1.0))
    return starts[trial.winner()], trial.table()


def _held_out(rows: TrainingRows, generator: np.random.Generator) -> HeldOut | None:
    """Given queries, or some rows, and their neighbours among others; None if rows have weights or are too few."""
    if rows.weights is not None or (rows.queries is None and rows.shard.total < 2 * OF_TRIALS.queries):
        return None
    X, _ = rows.drawn(generator.permutation(rows.shard.total)[: ROWS + OF_TRIALS.queries])
    return HeldOut.split(X, rows.queries)


def _random_pairs(W: np.ndarray, generator: np.random.Generator | None) -> np.ndarray:
    from nearkin.orthogonal.matching import random_matching  # loads torch

    return random_matching(len(W), generator)


def make_update(
    name: str | None, d: int, step: float | str, n_blocks: int | None, generator: np.random.Generator | None
) -> Update | None:
    """The update of a `rotation=` name; None for no rotation. `n_blocks=None` takes d/8 Givens blocks for one update,
    at least 8. A pickle or a deep copy of it has its own generator."""
    if name is None:
        return None
    if name == "procrustes":
        return exact_update
    if name == "cayley":
        return cayley_update
    if n_blocks is None:  # the paper's 5 where each matching costs O(d^3)
        n_blocks = 5 if name == "givens-steepest" else max(8, -(-d // 8))
    from nearkin.orthogonal.matching import WEIGHTED  # loads torch

    select = partial(_random_pairs, generator=generator)
    if name != "givens-random":  # the weights are made here: they need no check
        select = partial(WEIGHTED[name.removeprefix("givens-")], check_input=False)
    return partial(givens_update, select=select, n_blocks=n_blocks, step=step)
