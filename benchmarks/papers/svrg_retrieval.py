"""SVRG-SBB, Table II and Figure 5: images ranked by embeddings after 12 and 30 gradient passes, over seeds.

The batch takes one fixed step, .5 (the longest that all losses bear) or SVRG's published one, as the paper gives none.
SGD and SVRG take their published constant steps, SBB the printed epsilon (2.5e-2 of the mean loss), starts are from
U(0, 1). How many passes the paper allows it does not say. Every seed has images, answers and a start of its own.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.harness import arrays
from benchmarks.jobs import Job, Row
from benchmarks.papers.svrg_convex import GramObjective, gram_points, projected_gradient
from benchmarks.papers.svrg_synthetic import BATCH_STEP, LOSSES, published_step
from nearkin._types import Seed
from nearkin.contracts import Run
from nearkin.data.comparisons.votes import flip_answers
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.records import Comparisons
from nearkin.solvers import SGD, SVRG, GradientDescent

NOISES = (0.05, 0.1)
P = 10
ALPHA = 0.1  # of the regularised least squares; its width is the median distance


@dataclass(frozen=True)
class Size:
    """Gradient passes that are judged, of the convex form up to `convex_passes`; seeds, of the convex form fewer."""

    checked: tuple[int, ...] = (12, 30)
    convex_passes: int = 12
    seeds: int = 10
    convex_seeds: int = 2
    answers: int = 70_000


FULL, SMALL = Size(), Size((12, 30), 12, 1, 1, 2000)


def solvers(loss: str, n: int, answers: int) -> dict[str, tuple[Any, int]]:
    """Name -> (solver, gradient passes an epoch); published steps are per term."""
    steps = {name: published_step(name, loss, answers, n) for name in ("svrg", "sgd")}
    return {
        "batch": (GradientDescent(step=BATCH_STEP), 1),
        "batch, SVRG's step": (GradientDescent(step=steps["svrg"] / answers), 1),
        "sgd": (SGD(step=steps["sgd"], decay=0.0), 1),
        "svrg": (SVRG(step=steps["svrg"]), 3),
        "svrg-sbb0": (SVRG(epsilon=0.0, capped=False), 3),
        "svrg-sbb": (SVRG(epsilon=2.5, capped=False), 3),
    }


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """SVRG-SBB, Table II and Figure 5: every loss, solver, noise and seed."""
    for seed, noise, loss in product(range(size.seeds), NOISES, LOSSES):
        for name in (*solvers(loss, 1, 1), *(["cvx"] if seed < size.convex_seeds else [])):
            key = {"loss": loss, "solver": name, "noise": noise, "seed": seed}
            yield Job(key, partial(measured, data, size, key))


@lru_cache(maxsize=2)
def drawn(data: Path, answers: int, noise: float, seed: int) -> tuple[Any, np.ndarray]:
    """Images to learn from and to ask with, and noisy answers about the former."""
    shown = images(data, seed)
    return shown, comparisons_from_labels(shown[1], answers, noise=noise, random_state=seed).indices


def measured(data: Path, size: Size, key: Row) -> list[Row]:
    """A row for every number of passes that is judged; what is missing counts as a ranking by chance."""
    shown, answers = drawn(data, size.answers, key["noise"], key["seed"])
    n, loss, rows = len(shown[1]), get_loss(key["loss"], P), list[Row]()
    first = np.random.default_rng([key["seed"], 9]).uniform(0, 1, (n, P))
    if key["solver"] == "cvx":
        G = projected_gradient(GramObjective(answers, n, loss), first @ first.T, size.convex_passes)
        return [{"passes": size.convex_passes} | retrieved(shown, gram_points(G, P))]
    solver, passes = solvers(key["loss"], n, size.answers)[key["solver"]]

    def keep(epoch: int, record: Row) -> None:
        X = unpad_rows(record["x"], P)
        if epoch * passes in size.checked and np.isfinite(X).all():
            rows.append({"passes": epoch * passes} | retrieved(shown, X))

    with suppress(FloatingPointError):
        solver.minimize(
            OrdinalObjective(answers, n, loss), pad_rows(first), Run(size.checked[-1] // passes, callback=keep)
        )
    return rows


def retrieved(shown: Any, X: np.ndarray) -> Row:
    """The base images at the points X ranked for every query, whose point is a kernel ridge regression's."""
    features, y, fresh, asked = shown
    squared = ((features[:300, None].astype(np.float64) - features[None, :300]) ** 2).sum(axis=2)
    gamma, mean = 1 / float(np.median(squared[np.triu_indices(300, 1)])), X.mean(axis=0)
    queries = KernelRidge(alpha=ALPHA, kernel="rbf", gamma=gamma).fit(features, X - mean).predict(fresh) + mean
    return judge(X, y, queries, asked)


def images(folder: Path, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """60 images of each digit to learn from and 40 others to ask with, as 50 principal components."""
    pixels, labels = arrays(folder, "mnist", "X_train", "y_train")
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(labels == digit))[:100] for digit in range(10)]
    rows = np.concatenate([part[:60] for part in chosen]), np.concatenate([part[60:] for part in chosen])
    X = [pixels[part].astype(np.float64) / 255 for part in rows]
    mean = X[0].mean(axis=0)
    _, _, axes = np.linalg.svd(X[0] - mean, full_matrices=False)
    train, test = ((part - mean) @ axes[:50].T for part in X)
    return train.astype(np.float32), labels[rows[0]], test.astype(np.float32), labels[rows[1]]


def comparisons_from_labels(y: np.ndarray, count: int, *, noise: float = 0.0, random_state: Seed = None) -> Comparisons:
    """Random triplets (i, j, k) with i and j of one class and k of another (SVRG-SBB section 5.4).

    y (n,) are labels of objects 0 ... n - 1; `noise` is the share with j and k exchanged.
    """
    _, label, size = np.unique(y, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(random_state)
    order = np.argsort(label, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    rank = np.empty(len(y), np.int64)  # of an object within its class
    rank[order] = np.arange(len(y)) - starts[label[order]]
    i = rng.choice(np.flatnonzero(size[label] >= 2), count)
    other = (rank[i] + rng.integers(1, size[label[i]])) % size[label[i]]
    j = order[starts[label[i]] + other]
    far = rng.integers(0, len(y) - size[label[i]])  # counts the objects outside the class, in `order`
    k = order[np.where(far < starts[label[i]], far, far + size[label[i]])]
    return flip_answers(Comparisons(np.stack([i, j, k], axis=1), np.arange(len(y))), noise, random_state=rng)


def judge(base: np.ndarray, y: np.ndarray, queries: np.ndarray, asked: np.ndarray) -> Row:
    """MAP over the whole ranking, precision and recall at K, of the base images ranked for every query."""
    distance = ((queries[:, None].astype(np.float64) - base[None]) ** 2).sum(axis=2)
    hit = y[np.argsort(distance, axis=1, kind="stable")] == asked[:, None]
    found = np.cumsum(hit, axis=1)
    precision = found / np.arange(1, len(y) + 1)
    row: Row = {"map": ((precision * hit).sum(axis=1) / hit.sum(axis=1)).mean()}
    row["precision@60"] = precision[:, 59].mean()
    row |= {f"recall@{k}": (found[:, k - 1] / found[:, -1]).mean() for k in (40, 60, 100)}
    return {key: round(float(value), 4) for key, value in row.items()}
