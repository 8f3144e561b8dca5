"""The demo: scikit-learn's handwritten digits searched exactly, and through codes of several methods and sizes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin import metrics
from nearkin._types import Record, Seed
from nearkin.index.index import Index
from nearkin.pipeline.methods import CodeSize, find_method
from nearkin.pipeline.steps import Steps

N_QUERIES = 297  # the last rows; the other 1,500 are searched and trained on
K = 10
BYTES = (2, 4, 8, 16)
# Codebooks must be small beside what they compress: 256 centroids are 64 kB, 1,500 codes of 4 bytes are 6 kB.
CENTROIDS = 16
METHODS = {  # method name -> how the table and figures call it
    "none": "PQ",
    "procrustes": "OPQ",
    "givens-random": "Givens random",
    "givens-greedy": "Givens greedy",
}


@dataclass(frozen=True)
class Trial:
    """One method at one size: `ids` (n_queries, K) are the neighbours it finds, `history` its distortion by round."""

    method: str
    n_bytes: int
    compression: float
    distortion: float  # on the queries, which no method has seen
    recall: float  # k-recall@10
    mean_average_precision: float  # by label, over the whole ranking
    seconds: float
    ids: np.ndarray = field(repr=False)
    history: list[float] = field(default_factory=list, repr=False)

    def record(self) -> Record:
        """The numbers alone, for a table or JSON."""
        return {
            "bytes": self.n_bytes,
            "method": self.method,
            "code smaller": self.compression,
            "distortion": self.distortion,
            f"recall@{K}": self.recall,
            "mAP by label": self.mean_average_precision,
            "train s": self.seconds,
        }


@dataclass(frozen=True)
class Demo:
    """The data and all trials; `trials[0]` is the exact search."""

    base: np.ndarray  # (1500, 64) float32, pixels 0 to 16
    labels: np.ndarray  # (1500,)
    queries: np.ndarray  # (297, 64)
    query_labels: np.ndarray  # (297,)
    trials: list[Trial]

    def trial(self, method: str, n_bytes: int) -> Trial:
        """The trial of a method (as the table calls it) at a size."""
        return next(t for t in self.trials if (t.method, t.n_bytes) == (method, n_bytes))


def run_demo(random_state: Seed = 0, steps: Steps | None = None, n_bytes: Sequence[int] | None = None) -> Demo:
    """Run every method at every size; a few seconds in all."""
    steps, n_bytes = steps or Steps(), n_bytes or BYTES
    X, y = load_digits(return_X_y=True)
    X, y = np.asarray(X, np.float32), np.asarray(y)
    base, queries, labels, query_labels = X[:-N_QUERIES], X[-N_QUERIES:], y[:-N_QUERIES], y[-N_QUERIES:]
    demo = Demo(base, labels, queries, query_labels, [])
    exact = nk.Index.build(base)
    demo.trials.append(_judge(demo, "exact search", exact, 4 * X.shape[1], 0.0, 0.0, []))
    with steps.step("warm up"):  # the first call of a method compiles its kernels; training times should not show that
        for method in METHODS:
            find_method(method).make(CodeSize(2, n_centroids=CENTROIDS), random_state).fit(base[:64])
    total = len(n_bytes) * len(METHODS)
    with steps.step("compress") as callback:
        for size in n_bytes:
            for method, name in METHODS.items():
                demo.trials.append(_try(demo, method, name, size, random_state))
                callback(len(demo.trials) - 1, {"total": total, "distortion": demo.trials[-1].distortion})
    return demo


def _try(demo: Demo, method: str, name: str, size: int, random_state: Seed) -> Trial:
    quantizer = find_method(method).make(CodeSize(size, n_centroids=CENTROIDS), random_state)
    start = time.perf_counter()
    quantizer.fit(demo.base)
    seconds = time.perf_counter() - start
    index = nk.Index.build(demo.base, quantizer=quantizer)
    history = [record["distortion"] for record in quantizer.history_]
    return _judge(demo, name, index, size, quantizer.distortion(demo.queries), seconds, history)


def _judge(
    demo: Demo, name: str, index: Index, n_bytes: int, distortion: float, seconds: float, history: list[float]
) -> Trial:
    _, ranking = index.search(demo.queries, len(demo.base))
    return Trial(
        method=name,
        n_bytes=n_bytes,
        compression=metrics.compression_ratio(demo.base.shape[1], n_bytes),
        distortion=distortion,
        recall=metrics.neighbours_kept(ranking[:, :K], demo.base, demo.queries),
        mean_average_precision=metrics.label_mean_average_precision(demo.labels[ranking], demo.query_labels),
        seconds=seconds,
        ids=ranking[:, :K].copy(),
        history=history,
    )
