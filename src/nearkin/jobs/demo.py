"""`nearkin demo`: scikit-learn's handwritten digits searched exactly and through codes."""

import time
from functools import cache
from itertools import product

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin import metrics
from nearkin._fields import command
from nearkin._storage import check_target, saving_folder
from nearkin._types import Record, Seed
from nearkin.jobs.arguments import Folder
from nearkin.jobs.run import Steps
from nearkin.metrics.hamming import RankHistograms
from nearkin.metrics.neighbours import ExactNeighbours

KIND = "demo"
K = 10
RECALL, MAP = f"recall@{K}", "mAP_by_label"  # of trials; the mAP is over the whole ranking
BYTES = (2, 4, 8, 16)
SHOWN = 4  # bytes of the codes that the page begins with, and of the saved index
CENTROIDS = 16  # codebooks must be small: 256 centroids are 64 kB, and 1,500 codes of 4 bytes are 6 kB
METHODS: dict[str | None, str] = {  # rotation -> the method's name in the table and figures
    None: "PQ",
    "procrustes": "OPQ",
    "givens-random": "Givens random",
    "givens-greedy": "Givens greedy",
}
N_QUERIES = 297  # the last rows; the other 1,500 are indexed and learned from


@cache
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images (1500, 64) as pixels 0 to 16 and their labels, and queries (297, 64) with theirs."""
    X, y = load_digits(return_X_y=True)
    X, y = np.asarray(X, np.float32), np.asarray(y)
    return X[:-N_QUERIES], y[:-N_QUERIES], X[-N_QUERIES:], y[-N_QUERIES:]


def demo(*, out: Folder = "demo", seed: int = 0, overwrite: bool = False) -> Record:
    """Search 1,500 handwritten digits exactly and through codes of 2 to 16 bytes, and save an index.

    Takes a few seconds and no download: the images ship with scikit-learn. The folder holds the trials, the distortion
    by round of the methods at 4 bytes, an index of such codes, the labels and the images.

    Examples:

    - nearkin demo
    - nearkin demo --out digits --json

    Parameters
    ----------
    out: Folder to write.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    check_target(out, overwrite)
    steps, history, (base, labels, queries, _) = Steps(), dict[str, list[float]](), digits()
    trials = [_trial("exact search", nk.Index.build(base), 4 * base.shape[1])]
    with steps.step("warm up"):  # the first call of a method compiles its kernels, which is no training time
        for rotation in METHODS:
            _quantizer(2, rotation, seed).fit(base[:64])
    with steps.step("compress") as callback:
        for n, (size, (rotation, name)) in enumerate(product(BYTES, METHODS.items()), 1):
            start = time.perf_counter()
            quantizer = _quantizer(size, rotation, seed).fit(base)
            seconds, error = time.perf_counter() - start, quantizer.distortion(queries)
            trials.append(_trial(name, nk.Index.build(base, quantizer), size, error, seconds))
            if size == SHOWN:
                history[name] = [record["distortion"] for record in quantizer.history_]
            callback(n, {"total": len(BYTES) * len(METHODS), "distortion": error})
    with saving_folder(out, KIND, {"trials": trials, "history": history}, overwrite) as folder:
        quantizer = _quantizer(SHOWN, "givens-greedy", seed)
        nk.Index.build(base, quantizer, keep_vectors=True).save(folder / "index")
        np.save(folder / "labels.npy", labels)
        np.save(folder / "images.npy", (15 * base).reshape(-1, 8, 8).astype(np.uint8))  # of 0 to 16
    explored = command("explore", f"{out}/index", labels=f"{out}/labels.npy", images=f"{out}/images.npy")
    return {"seed": seed, "out": str(out), "trials": trials, "next": [explored, command("report", out)]}


def _quantizer(n_bytes: int, rotation: str | None, random_state: Seed) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(2 * n_bytes, CENTROIDS, rotation, random_state=random_state)


def _trial(name: str, index: nk.Index, n_bytes: int, distortion: float = 0.0, seconds: float = 0.0) -> Record:
    """One method at one size; `distortion` is that of the queries, which no method has learned from."""
    base, labels, queries, query_labels = digits()
    scores, ranking = index.search(queries, len(base))
    ranks = RankHistograms.of(scores, metrics.label_relevance(labels[ranking], query_labels))
    return {
        "bytes": n_bytes, "method": name,
        RECALL: float(ExactNeighbours.of(base, queries, K).recall(ranking, scores).mean()),
        MAP: float(ranks.average_precision().mean()), "distortion": distortion,
        "times_smaller": 4 * base.shape[1] / n_bytes, "train_seconds": seconds,
    }  # fmt: skip
