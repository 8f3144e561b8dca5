"""Image retrieval (SVRG-SBB section 5.4) on MNIST: 60 + 40 images of each class, answers from labels, some flipped."""

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.kernel_ridge import KernelRidge

import nearkin as nk
from benchmarks.ordinal.problems import comparisons_from_labels


def measure(quick: bool, data: Path) -> dict[str, Any]:
    features, y, fresh, fresh_y = images(data / "mnist.npz")
    rows = [judge("pixels (no answers)", 0.0, features, y, fresh, fresh_y, 0.0)]
    print(line(rows[-1]))
    count = 10_000 if quick else 70_000
    for noise in (0.05, 0.1, 0.15):
        answers = comparisons_from_labels(y, count, noise=noise, random_state=1)
        for loss in ("gnmds", "ckl", "ste", "t-ste", "soe"):
            began = time.process_time()
            model = nk.OrdinalEmbedding(10, loss=loss, random_state=2).fit(answers)
            placed = place(features, model.embedding_, fresh)
            took = time.process_time() - began
            rows.append(judge(loss, noise, model.embedding_, y, placed, fresh_y, took))
            print(line(rows[-1]), flush=True)
    return {"answers": count, "train": len(y), "test": len(fresh_y), "rows": rows}


def images(path: Path, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """60 images of each digit to learn from and 40 others to ask with, as 50 principal components."""
    file = np.load(path)
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(file["y_train"] == digit))[:100] for digit in range(10)]
    rows = np.concatenate([part[:60] for part in chosen]), np.concatenate([part[60:] for part in chosen])
    X = [file["X_train"][part].astype(np.float64) / 255 for part in rows]
    mean = X[0].mean(axis=0)
    _, _, axes = np.linalg.svd(X[0] - mean, full_matrices=False)
    train, test = ((part - mean) @ axes[:50].T for part in X)
    return train.astype(np.float32), file["y_train"][rows[0]], test.astype(np.float32), file["y_train"][rows[1]]


def place(features: np.ndarray, X: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Points of `fresh` features by kernel ridge regression; its width and strength by a fifth of the rows held out."""
    order = np.random.default_rng(2).permutation(len(X))
    held, kept = order[: len(X) // 5], order[len(X) // 5 :]
    scale = float(np.median(pdist(features[order[:500]].astype(np.float64), "sqeuclidean")))

    def error(choice: tuple[float, float]) -> float:
        return float(np.square(regressed(features[kept], X[kept], features[held], *choice) - X[held]).sum())

    choices = product([factor / scale for factor in (0.5, 1.0, 2.0, 4.0)], (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0))
    return regressed(features, X, fresh, *min(choices, key=error))


def regressed(features: np.ndarray, X: np.ndarray, fresh: np.ndarray, gamma: float, alpha: float) -> np.ndarray:
    """Points of `fresh` features by kernel ridge regression on the other points X."""
    mean = X.mean(axis=0)
    return KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(features, X - mean).predict(fresh) + mean


def judge(
    name: str, noise: float, base: np.ndarray, y: np.ndarray, queries: np.ndarray, asked: np.ndarray, took: float
) -> dict[str, Any]:
    """MAP over the whole ranking, precision and recall at K, of the base images ranked for every query."""
    distance = ((queries[:, None].astype(np.float64) - base[None]) ** 2).sum(axis=2)
    hit = y[np.argsort(distance, axis=1, kind="stable")] == asked[:, None]
    found = np.cumsum(hit, axis=1)
    precision = found / np.arange(1, len(y) + 1)
    row = {"method": name, "noise": noise, "seconds": took}
    row["map"] = float(((precision * hit).sum(axis=1) / hit.sum(axis=1)).mean())
    for k in (20, 40, 60, 100):
        row[f"precision@{k}"] = float(precision[:, k - 1].mean())
        row[f"recall@{k}"] = float((found[:, k - 1] / found[:, -1]).mean())
    return row


def line(row: dict[str, Any]) -> str:
    return (
        "{method:20} {noise:.0%} flipped: MAP {map:.3f}, P@40 {precision@40:.3f}, P@60 {precision@60:.3f}, "
        "R@100 {recall@100:.3f}, {seconds:.2f} s"
    ).format(**row)
