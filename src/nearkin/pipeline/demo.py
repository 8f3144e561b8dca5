"""`nearkin demo`: scikit-learn's handwritten digits searched exactly and through codes, and the page about it."""

import os
import shlex
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin import metrics
from nearkin._storage import check_target, read_config, saving_folder
from nearkin._types import Record, Seed
from nearkin.index.index import Index
from nearkin.pipeline.run import Steps
from nearkin.plots import plot_against_bytes, plot_convergence, to_svg
from nearkin.report import Page, Section
from nearkin.report.page import facts, figures, paragraph, table

KIND = "demo"
K = 10
BYTES = (2, 4, 8, 16)
SHOWN = 4  # bytes of the codes that the page begins with, and of the saved index
CENTROIDS = 16  # codebooks must be small: 256 centroids are 64 kB, and 1,500 codes of 4 bytes are 6 kB
METHODS = {  # rotation -> the method's name in the table and figures
    None: "PQ",
    "procrustes": "OPQ",
    "givens-random": "Givens random",
    "givens-greedy": "Givens greedy",
}
_N_QUERIES = 297  # the last rows; the other 1,500 are indexed and learned from


class Digits(NamedTuple):
    """Images as pixels 0 to 16, with their labels: base (1500, 64) and queries (297, 64)."""

    base: np.ndarray
    labels: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray


@cache
def digits() -> Digits:
    """The data of the demo."""
    X, y = load_digits(return_X_y=True)
    X, y = np.asarray(X, np.float32), np.asarray(y)
    return Digits(X[:-_N_QUERIES], y[:-_N_QUERIES], X[-_N_QUERIES:], y[-_N_QUERIES:])


@dataclass(frozen=True)
class DemoTrial:
    """One method at one size: `ids` (n_queries, K) are the neighbours found, `history` the distortion by round."""

    method: str
    n_bytes: int
    compression: float
    recall: float  # 10-recall@10
    mean_average_precision: float  # by label, over the whole ranking
    ids: np.ndarray = field(repr=False)
    distortion: float = 0.0  # of the queries, which no method has learned from
    seconds: float = 0.0
    history: list[float] = field(default_factory=list, repr=False)

    def record(self) -> Record:
        return {
            "bytes": self.n_bytes,
            "method": self.method,
            "code smaller": self.compression,
            "distortion": self.distortion,
            f"recall@{K}": self.recall,
            "mAP by label": self.mean_average_precision,
            "train s": self.seconds,
        }


def run_demo(random_state: Seed = 0, steps: Steps | None = None) -> list[DemoTrial]:
    """Run every method at every size, in a few seconds in all; the first trial is the exact search."""
    steps, data, total = steps or Steps(), digits(), len(BYTES) * len(METHODS)
    trials = [_judge("exact search", nk.Index.build(data.base), 4 * data.base.shape[1])]
    with steps.step("warm up"):  # the first call of a method compiles its kernels, which is no training time
        for rotation in METHODS:
            _quantizer(2, rotation, random_state).fit(data.base[:64])
    with steps.step("compress") as callback:
        for n, (size, (rotation, name)) in enumerate(product(BYTES, METHODS.items()), 1):
            start = time.perf_counter()
            quantizer = _quantizer(size, rotation, random_state).fit(data.base)
            seconds = time.perf_counter() - start
            trial = _judge(name, nk.Index.build(data.base, quantizer=quantizer), size)
            history = [record["distortion"] for record in quantizer.history_]
            error = quantizer.distortion(data.queries)
            trials.append(replace(trial, distortion=error, seconds=seconds, history=history))
            callback(n, {"total": total, "distortion": error})
    return trials


def _quantizer(n_bytes: int, rotation: str | None, random_state: Seed) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(2 * n_bytes, CENTROIDS, rotation, random_state=random_state)


def _judge(name: str, index: Index, n_bytes: int) -> DemoTrial:
    data = digits()
    ranking = index.search(data.queries, len(data.base))[1]
    return DemoTrial(
        method=name,
        n_bytes=n_bytes,
        compression=metrics.compression_ratio(data.base.shape[1], n_bytes),
        recall=metrics.neighbours_kept(ranking[:, :K], data.base, data.queries),
        mean_average_precision=metrics.label_mean_average_precision(data.labels[ranking], data.query_labels),
        ids=ranking[:, :K].copy(),
    )


def save_demo(
    out: str | os.PathLike, random_state: Seed = 0, steps: Steps | None = None
) -> tuple[list[DemoTrial], str]:
    """Run the demo and save the folder `out`: the trials, an index of 4-byte codes, the labels and the images.

    Returns the trials and the command that shows the index. ValueError before any work if the folder holds other files.
    """
    check_target(out, KIND)
    trials, data = run_demo(random_state, steps), digits()
    config = {"trials": [{name: value for name, value in asdict(t).items() if name != "ids"} for t in trials]}
    with saving_folder(out, KIND, config) as folder:
        quantizer = _quantizer(SHOWN, "givens-greedy", random_state)
        nk.Index.build(data.base, quantizer, keep_vectors=True).save(folder / "index")
        np.save(folder / "labels.npy", data.labels)
        np.save(folder / "images.npy", data.base.reshape(-1, 8, 8).astype(np.uint8))
    return trials, explore_command(out)


def explore_command(out: str | os.PathLike) -> str:
    """The command that shows the digits in a folder of `save_demo`, with their neighbours."""
    index, labels, images = (shlex.quote(f"{out}/{name}") for name in ("index", "labels.npy", "images.npy"))
    return f"nearkin explore {index} --labels {labels} --images {images}"


def demo_page(folder: Path) -> Page:
    records: list[dict[str, Any]] = read_config(folder, KIND)["trials"]
    trials = [DemoTrial(**record, ids=np.empty(0, int)) for record in records]
    n, d = digits().base.shape
    best = max((trial for trial in trials[1:] if trial.n_bytes == SHOWN), key=lambda trial: trial.recall)
    page = Page(
        title=f"{n:,} handwritten digits, {SHOWN} bytes each",
        eyebrow="nearkin demo",
        lead=(
            f"Each image is {d} numbers, {4 * d} bytes as float32. Product quantization codes it in {SHOWN} bytes; a "
            "learned rotation decides which directions share a byte. Searching the codes still finds the right digits."
        ),
        made_by="nearkin demo",
    )
    exact = trials[0]
    values = {
        f"smaller than float32: codes of {SHOWN} bytes": f"{best.compression:.0f}×",
        f"of the exact {K} neighbours kept ({best.method})": f"{best.recall:.0%}",
        f"mAP by label; exact search has {exact.mean_average_precision:.3f}": f"{best.mean_average_precision:.3f}",
        "longest training of any method": f"{max(trial.seconds for trial in trials):.2f} s",
    }
    see = f"Every digit, its exact neighbours and those through {SHOWN} bytes: {explore_command(folder)}"
    page.add(Section("In short", facts(values), see))
    shown = [trial.record() | {"code smaller": f"{trial.compression:.0f}×"} for trial in trials]
    formats, bold = {3: ".1f", 4: ".3f", 5: ".3f", 6: ".2f"}, {3: "min", 4: "max", 5: "max"}
    body = table(list(shown[0]), [list(record.values()) for record in shown], formats=formats, best=bold)
    lead = (
        f"Distortion is the mean squared error on {_N_QUERIES} queries that no method has learned from. Recall@{K} is "
        f"the share of the {K} exact neighbours among the {K} found. Bold is the best of a size."
    )
    page.add(Section("All methods, all sizes", body, lead)).add(_curves(trials))
    limits = (
        "1,500 images are few. A subspace has 16 centroids here, half a byte each; with 256, the codebooks alone "
        "would be ten times larger than the codes. The rotation takes 16 kB for any number of rows: little for a "
        "million vectors, much for these. On your own vectors the order of the methods may differ: measure it with "
        "nearkin compress and nearkin evaluate."
    )
    return page.add(Section("Limits of this demo", paragraph(limits)))


def _curves(trials: list[DemoTrial]) -> Section:
    def by_size(measure: str, ylabel: str, caption: str, reference: tuple[str, float] | None = None) -> tuple[str, str]:
        curves = {
            name: {float(t.n_bytes): getattr(t, measure) for t in trials[1:] if t.method == name}
            for name in METHODS.values()
        }
        ax = plot_against_bytes(curves, ylabel, reference=reference)
        if reference is not None:
            ax.set_ylim(0, 0.8)  # from zero: the differences are below 0.02
        return to_svg(ax, measure), caption

    convergence = plot_convergence({t.method: t.history for t in trials[1:] if t.n_bytes == SHOWN})
    text = f"Distortion while rotation and codebooks are learned, {SHOWN} bytes."
    unseen = "Distortion of images that the codebooks have not learned from."
    exact = ("exact search", trials[0].mean_average_precision)
    by_label = "The same digit, ranked high: two bytes do it as well as exact search."
    drawn = (
        (to_svg(convergence, "convergence"), text),
        by_size("distortion", "distortion of unseen images", unseen),
        by_size("recall", f"recall@{K} against exact search", "More bytes, more of the exact neighbours."),
        by_size("mean_average_precision", "mAP by label", by_label, exact),
    )
    return Section("What a rotation gains", figures(*drawn))
