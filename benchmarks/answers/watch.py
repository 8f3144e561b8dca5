"""How often `nearkin watch` finds a drift, where there is one and where there is none.

    python -m benchmarks answers watch [--quick] [--data DIR]

200 draws of each: 2,000 rows in an index of product codes (2 bytes), 3,000 others as new rows, 16 axes. Three drifts,
each beside new rows of the same kind: GIST descriptors, turned by a rotation; MNIST, new digits in an index of five
others; WordNet entries by a sentence encoder, the new ones by another (tf-idf and SVD, centred and at the first one's
variance), so that the index would mix both. A drift is called if learning again gains more than half a point with
97.5 % confidence; with new rows of the same kind that is a false alarm. Writes results/answers_watch.json.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.pipeline.change import watch

DRAWS, WIDTH, OLD, NEW = 200, 16, 2_000, 3_000
ANGLE = 0.5  # of the rotation, which costs about two points of recall
POINTS = 0.02  # that learning again gains, from which on a drift must be called
Pair = tuple[np.ndarray, np.ndarray]  # rows of the index, new rows
Draw = Callable[[np.random.Generator], Pair]


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    draws, records = 3 if options.quick else DRAWS, []
    for drift, make in {"turned": turned, "new digits": digits, "two encoders": encoders}.items():
        same, drifted = make(options.data)
        records += [over_draws(name, drift, draw, draws) for name, draw in ((None, same), (drift, drifted))]
    save("answers_watch", records, old=OLD, new=NEW, threads=options.threads)


def principal(X: np.ndarray) -> np.ndarray:
    """Rows (n, d) on their first principal axes."""
    X = X.astype(np.float32)
    X -= X.mean(axis=0)
    return X @ np.linalg.svd(X[:4_000], full_matrices=False)[2][:WIDTH].T


def of(X: np.ndarray, generator: np.random.Generator) -> Pair:
    """Two samples of the same rows."""
    order = generator.permutation(len(X))
    return X[order[:OLD]], X[order[OLD : OLD + NEW]]


def turned(folder: Path) -> tuple[Draw, Draw]:
    with np.load(folder / "cifar10_gist512.npz") as data:
        X = principal(data["X"])
    A = np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    rotation = expm((A - A.T) * ANGLE / np.sqrt(WIDTH)).astype(np.float32)

    def drifted(generator: np.random.Generator) -> Pair:
        old, new = of(X, generator)
        return old, new @ rotation

    return lambda generator: of(X, generator), drifted


def digits(folder: Path) -> tuple[Draw, Draw]:
    with np.load(folder / "mnist.npz") as data:
        X, y = principal(data["X_train"][:30_000]), data["y_train"][:30_000]

    def drifted(generator: np.random.Generator) -> Pair:
        known = np.isin(y, generator.permutation(10)[:5])
        return of(X[known], generator)[0], of(X[~known], generator)[1]

    return lambda generator: of(X, generator), drifted


def encoders(folder: Path) -> tuple[Draw, Draw]:
    with np.load(folder / "wordnet_minilm.npz") as data:
        X, texts = principal(data["X"]), data["text"].astype(str)
    other = TruncatedSVD(WIDTH, random_state=0).fit_transform(TfidfVectorizer(sublinear_tf=True).fit_transform(texts))
    other -= other.mean(axis=0)
    other = (other * (X.std() / other.std())).astype(np.float32)

    def drifted(generator: np.random.Generator) -> Pair:
        order = generator.permutation(len(X))
        return X[order[:OLD]], other[order[OLD : OLD + NEW]]

    return lambda generator: of(X, generator), drifted


def over_draws(name: str | None, data: str, draw: Draw, draws: int) -> dict[str, Any]:
    """How many of the draws were called a drift, and what learning again gained."""
    seconds, found = cpu_seconds(lambda: [one(*draw(np.random.default_rng(i)), i) for i in range(draws)])
    gains = np.array([drift["gain"]["mean"] for drift in found])
    called = np.array([drift["drift"] for drift in found])
    record = {
        "drift": name,
        "data": data,
        "draws": draws,
        "called": int(called.sum()),
        "large": int((gains >= POINTS).sum()),
        "large_called": int(called[gains >= POINTS].sum()),
        "mean_gain": float(gains.mean()),
        "sd_gain": float(gains.std()),
        "seconds": seconds,
    }
    print(record, flush=True)
    return record


def one(old: np.ndarray, new: np.ndarray, draw: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        nk.Index.build(old, nk.ProductQuantizer(4, 16, random_state=draw)).save(f"{folder}/idx")
        return watch(f"{folder}/idx", VectorFile("new", array_rows(new)), random_state=draw)


if __name__ == "__main__":
    main()
