"""The loop that every rotation learner shares: assign, update the centroids, update the rotation."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearkin._shards import Shard
from nearkin.contracts import Callback, ignore
from nearkin.quantization.codebooks import ClusterSums, assign
from nearkin.statistics import SquaredNorm

# An update is handed the rotation R (d, d) and M = X^T Y / n (d, d), and returns the next rotation. With the codes
# fixed the objective is (||X||^2 + ||Y||^2) / n - 2 tr(R^T M): an update is any step that makes tr(R^T M) larger.
Update = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Centroids and rotation alternate this often between two passes over the data. It costs nothing that grows with n, and
# three rounds took a fifth off the passes needed; more gained little. Where d is large and the rows are few, an update
# (an SVD costs about as much as a pass over 60 d rows) is worth a pass itself, and there is one.
_INNER_ROUNDS = 3
_ROWS_PER_UPDATE, _LARGE = 60, 256


@dataclass(frozen=True)
class Step:
    """Where the learning stands: rotation (d, d), codebooks (M, K, d/M), both float32."""

    rotation: np.ndarray
    codebooks: np.ndarray


def alternate(
    X: np.ndarray,
    step: Step,
    update: Update | None,
    rounds: int,
    *,
    weights: np.ndarray | None = None,
    shard: Shard | None = None,
    tol: float = 0.0,
    callback: Callback = ignore,
) -> Step:
    """Run up to `rounds` rounds of assignment, centroids and rotation on rows X (n, d) float32, centred.

    `weights` (n,), of mean 1, say how much the error of a row counts. With a `shard` X is one process's part of the
    rows: the sums of all are merged, and all go on from one step.

    Each round looks at the data once; codebooks stay warm from round to round. `update=None` keeps the rotation
    (k-means alone). Stops when the distortion falls by less than `tol` of itself, averaged over three rounds.
    `callback(round, record)` gets the distortion before the round's updates, which is the objective, and the seconds of
    its two parts.

    The rows should be centred: distortion does not change, since the codebooks can carry the mean, but with the mean
    left in, M is dominated by it and every rotation is held back to map the mean where it was. On SIFT, centring
    halves the rounds needed to a given distortion.
    """
    M, K, _ = step.codebooks.shape
    shard = shard or Shard.of(X)
    group, n = shard.group, shard.total
    energy = group.merge(SquaredNorm().update(X, weights)).finalize()
    inner = _INNER_ROUNDS
    if X.shape[1] > _LARGE:
        inner = min(inner, max(1, n // (_ROWS_PER_UPDATE * X.shape[1])))
    distortions: list[float] = []
    for index in range(rounds):
        started = time.perf_counter()
        codes = assign(X @ step.rotation, step.codebooks, n)
        sums = group.merge(ClusterSums(M, K, X.shape[1]).update(X, codes, weights))
        codebooks = sums.centroids(step.rotation)
        assigned = time.perf_counter()
        rotation = step.rotation
        if update is not None:
            for _ in range(inner):
                rotation = update(rotation, sums.cross_product(codebooks) / np.float32(n))
                codebooks = sums.centroids(rotation)
        group.broadcast(rotation, codebooks)  # machines may round differently
        step = Step(rotation, codebooks)
        # the centroids are the means of their rows, so the error is the energy that the centroids do not hold
        distortions.append(energy - float((sums.counts * (codebooks.astype(np.float64) ** 2).sum(-1)).sum()) / n)
        seconds = {"kmeans_seconds": assigned - started, "rotation_seconds": time.perf_counter() - assigned}
        callback(index + 1, {"objective": distortions[-1], "distortion": distortions[-1], "total": rounds, **seconds})
        if index >= 3 and distortions[-4] - distortions[-1] <= 3 * tol * abs(distortions[-4]):
            break
    return step
