"""What new codes gain for rows that differ from those that an index learned from, and in what time.

    python -m benchmarks answers refresh [--quick] [--data DIR]

Product codes of 16 bytes: learned from the old rows, learned again from old and new ones (what `nearkin refresh` does),
the old ones carried on by `partial_fit` in batches or by the learner's rounds from their rotation and codebooks, and
learned again in fewer rounds from principal axes alone. Recall of ten neighbours among new rows that nobody learned
from; gain and CPU seconds as shares of those of learning again. Coding the rows takes the same time after each, and is
left out. MNIST: digits 0 to 4, then 5 to 9. GIST: turned by a
rotation. WordNet: another encoder (tf-idf and SVD). Writes results/answers_refresh.json.
"""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser
from nearkin.metrics import neighbours_kept
from nearkin.quantization.codebooks import State, TrainingRows, exact_update, refine
from nearkin.quantization.training import DEFAULTS
from nearkin.statistics import Shard

ANGLE = 1.5
QUERIES = 1_000
BATCHES = (4_096, 16_384)
WARM = ((4, 8_192), (20, 30_000))  # rounds, and rows at most
SHORT = ((8, 8_192), (12, 30_000))


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    most = 4_000 if options.quick else 20_000
    records = [row for drift, old, new in drifts(options.data) for row in compared(drift, old[:most], new[:most])]
    save("answers_refresh", records, queries=QUERIES, rows=most, threads=options.threads)


def drifts(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, old and new rows."""
    generator = np.random.default_rng(0)
    with np.load(folder / "mnist.npz") as data:
        order = generator.permutation(len(data["X_train"]))
        X, y = data["X_train"][order].astype(np.float32), data["y_train"][order]
    yield "new digits", X[y < 5], X[y >= 5]
    with np.load(folder / "cifar10_gist512.npz") as data:
        X = data["X"].astype(np.float32)[generator.permutation(16_000)]
    d = X.shape[1]
    A = generator.normal(size=(d, d))
    X -= X.mean(axis=0)
    yield "turned", X[:8_000], X[8_000:] @ expm((A - A.T) * ANGLE / np.sqrt(d)).astype(np.float32)
    with np.load(folder / "wordnet_minilm.npz") as data:
        X, texts = data["X"].astype(np.float32), data["text"].astype(str)
    words = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    other = TruncatedSVD(X.shape[1], random_state=0, n_iter=2).fit_transform(words).astype(np.float32)
    other /= np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1e-9)
    order = generator.permutation(len(X))
    yield "another encoder", X[order[:20_000]], other[order[20_000:]]


def compared(drift: str, old: np.ndarray, new: np.ndarray) -> list[dict[str, Any]]:
    """A record for each way to learn."""
    half = len(new) // 2
    Q, base, learned = new[:QUERIES], new[QUERIES:half], new[half:]
    both = np.random.default_rng(1).permutation(np.concatenate([old, learned]))
    before = nk.ProductQuantizer(16, random_state=0).fit(old)

    def carried_on(batch: int) -> nk.ProductQuantizer:
        quantizer = copy.deepcopy(before)
        for first in range(0, len(both), batch):
            quantizer.partial_fit(both[first : first + batch])
        return quantizer

    def from_present(rounds: int, rows: int) -> nk.ProductQuantizer:
        mean = both[:rows].mean(axis=0)
        X, M = both[:rows] - mean, before.n_subspaces
        start = State(before.rotation_, before.codebooks_ - (mean @ before.rotation_).reshape(M, 1, -1))
        seen = TrainingRows(X, Shard.of(X))
        state = refine(seen, start, exact_update, rounds, beyond=DEFAULTS.beyond)
        state = refine(seen, state, None, DEFAULTS.last_iterations)
        codebooks = state.codebooks + (mean @ state.rotation).reshape(M, 1, -1)
        return nk.ProductQuantizer.from_arrays(codebooks, state.rotation)

    def short(rounds: int, rows: int) -> nk.ProductQuantizer:
        return nk.ProductQuantizer(16, init="pca", max_iter=rounds, random_state=0).fit(both[:rows])

    ways: dict[str, Callable[[], nk.ProductQuantizer]] = {
        "old codes": lambda: before,
        "learned again": lambda: nk.ProductQuantizer(16, random_state=0).fit(both),
        **{f"partial_fit, batches of {batch:,}": lambda batch=batch: carried_on(batch) for batch in BATCHES},
        **{
            f"{rounds} rounds from them, {rows:,} rows": lambda to=(rounds, rows): from_present(*to)
            for rounds, rows in WARM
        },
        **{
            f"{rounds} rounds from principal axes, {rows:,} rows": lambda to=(rounds, rows): short(*to)
            for rounds, rows in SHORT
        },
    }
    records = []
    for name, way in ways.items():
        seconds, quantizer = cpu_seconds(way)
        found = nk.Index.build(base, quantizer).search(Q, 10)[1]
        recall = float(neighbours_kept(found, base, Q))
        records.append({"drift": drift, "way": name, "recall": recall, "seconds": seconds, "rows": len(both)})
    start, again = records[0]["recall"], records[1]
    for record in records:
        record["share_of_gain"] = (record["recall"] - start) / (again["recall"] - start)
        record["share_of_time"] = record["seconds"] / again["seconds"]
        print(record, flush=True)
    return records


if __name__ == "__main__":
    main()
