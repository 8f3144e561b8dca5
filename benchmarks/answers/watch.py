"""How often `nearkin watch` finds a drift, where there is one and where there is none.

    python -m benchmarks answers watch [--quick] [--data DIR]

GIST descriptors on their 16 principal axes, 200 draws: 2,000 rows in an index of product codes (2 bytes), 3,000 others
as new rows, unchanged or turned by a rotation. A drift is called if learning again gains more than half a point with
97.5 % confidence; with new rows of the same kind that is a false alarm. Writes results/answers_watch.json.
"""

import tempfile
from typing import Any

import numpy as np
from scipy.linalg import expm

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.pipeline.change import Drift, watch

DRAWS, WIDTH, OLD, NEW = 200, 16, 2_000, 3_000
ANGLES = (0.0, 0.5)  # of the rotation; the second one costs about two points of recall


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    with np.load(options.data / "cifar10_gist512.npz") as data:
        X = data["X"].astype(np.float32)
    X -= X.mean(axis=0)
    X = X @ np.linalg.svd(X[:4_000], full_matrices=False)[2][:WIDTH].T
    records = [over_draws(X, angle, 3 if options.quick else DRAWS) for angle in ANGLES]
    save("answers_watch", records, old=OLD, new=NEW, threads=options.threads)


def over_draws(X: np.ndarray, angle: float, draws: int) -> dict[str, Any]:
    """How many of the draws were called a drift, and what learning again gained."""
    A = np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    rotation = expm((A - A.T) * angle / np.sqrt(WIDTH)).astype(np.float32)
    seconds, found = cpu_seconds(lambda: [one(X, rotation, draw) for draw in range(draws)])
    gains = [drift.gain.mean for drift in found]
    record = {
        "angle": angle,
        "draws": draws,
        "called": sum(drift.drifted for drift in found),
        "mean_gain": float(np.mean(gains)),
        "sd_gain": float(np.std(gains)),
        "seconds": seconds,
    }
    print(record, flush=True)
    return record


def one(X: np.ndarray, rotation: np.ndarray, draw: int) -> Drift:
    order = np.random.default_rng(draw).permutation(len(X))
    old, new = X[order[:OLD]], X[order[OLD : OLD + NEW]] @ rotation
    with tempfile.TemporaryDirectory() as folder:
        nk.Index.build(old, nk.ProductQuantizer(4, 16, random_state=draw)).save(f"{folder}/idx")
        return watch(f"{folder}/idx", VectorFile("new", array_rows(new)), random_state=draw)


if __name__ == "__main__":
    main()
