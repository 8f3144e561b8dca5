"""Where are the cities? A map from 2,000 answers "a is nearer to b than to c", and one from the distances.

Run with a table of distances (first row and first column are names) or without, on a made-up one:

    python examples/eurodist.py ../shared/data/eurodist.csv --out eurodist.png

The answers contain no kilometres, yet both maps agree (SVRG-SBB, section 5.2 and Figure 3).
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import nearkin as nk


def read_distances(path: Path) -> tuple[list[str], np.ndarray]:
    """Names (n,) and distances (n, n)."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return rows[0][1:], np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])


def invent_distances(n: int = 21) -> tuple[list[str], np.ndarray]:
    """Towns strewn over a plane, whose roads are up to a quarter longer than the straight line."""
    rng = np.random.default_rng(8)
    points = rng.uniform(0, [3000, 2000], (n, 2))
    straight = np.linalg.norm(points[:, None] - points, axis=2)
    detour = np.triu(rng.uniform(1.0, 1.25, (n, n)), 1)
    return [f"town {chr(65 + i)}" for i in range(n)], straight * (detour + detour.T)


def ask(distances: np.ndarray) -> np.ndarray:
    """(m, 3) rows (i, j, k) with i nearer to j than to k: every question once, shuffled."""
    n = len(distances)
    rows = np.array([(i, j, k) for i in range(n) for j in range(n) for k in range(j) if i not in (j, k)])
    near, far = distances[rows[:, 0], rows[:, 1]], distances[rows[:, 0], rows[:, 2]]
    return np.random.default_rng(1).permutation(np.where((near < far)[:, None], rows, rows[:, [0, 2, 1]]))


def metric_scaling(distances: np.ndarray) -> np.ndarray:
    """Torgerson's classical scaling: (n, 2) points from all distances."""
    squares = distances**2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(centred)
    return vectors[:, -2:] * np.sqrt(values[-2:])


def align(X: np.ndarray, target: np.ndarray) -> np.ndarray:
    """X turned, mirrored and scaled onto the target (Procrustes); both are centred."""
    U, s, Vt = np.linalg.svd(X.T @ target)
    return X @ U @ Vt * s.sum() / (X**2).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("distances", nargs="?", type=Path)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("eurodist.png"))
    options = parser.parse_args()

    names, distances = read_distances(options.distances) if options.distances else invent_distances()
    answers, fresh = np.split(ask(distances), [options.answers])
    reference = metric_scaling(distances)
    losses = ("gnmds", "ckl", "ste", "t-ste")
    figure = Figure(figsize=(11, 10), layout="constrained")
    for ax, loss in zip(figure.subplots(2, 2).flat, losses, strict=True):
        model = nk.OrdinalEmbedding(2, loss=loss, random_state=0).fit(answers)
        at = align(model.embedding_.astype(float), reference)
        apart = np.linalg.norm(at - reference, axis=1).mean()
        nk.plots.plot_map(at, names, ax=ax, reference=reference)
        ax.set_title(f"{loss}: {1 - model.score(fresh):.1%} of new answers wrong", fontsize=11)
        print(f"{loss:6}  wrong on new answers {1 - model.score(fresh):.3f}, {apart:.0f} km from metric scaling")
    figure.savefig(options.out, dpi=120)
    print(f"wrote {options.out} (dots: from {len(answers)} answers; circles: from the distances)")


if __name__ == "__main__":
    main()
