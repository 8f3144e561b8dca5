"""`nearkin demo`: scikit-learn's handwritten digits searched exactly and through codes, and the page about it."""

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin import metrics
from nearkin._check import check_instance
from nearkin._storage import check_target, read_config, saving_folder
from nearkin._types import Record, Seed
from nearkin.index.index import Index
from nearkin.pipeline.methods import CodeSize, find_method
from nearkin.pipeline.run import Steps
from nearkin.plots import plot_against_bytes, plot_convergence, to_svg
from nearkin.report import Page, Section
from nearkin.report.page import facts, figures, paragraph, table

KIND = "demo"
K = 10
BYTES = (2, 4, 8, 16)
SHOWN = 4  # bytes of the codes that the page begins with, and of the saved index
CENTROIDS = 16  # codebooks must be small: 256 centroids are 64 kB, and 1,500 codes of 4 bytes are 6 kB
METHODS = {  # method -> its name in the table and figures
    "none": "PQ",
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
    distortion: float  # of the queries, which no method has learned from
    recall: float  # 10-recall@10
    mean_average_precision: float  # by label, over the whole ranking
    seconds: float
    history: list[float] = field(repr=False)
    ids: np.ndarray = field(repr=False)

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


def run_demo(
    random_state: Seed = 0, steps: Steps | None = None, n_bytes: Sequence[int] | None = None
) -> list[DemoTrial]:
    """Run every method at every size, in a few seconds in all; the first trial is the exact search."""
    steps, sizes, data = steps or Steps(), n_bytes or BYTES, digits()
    trials = [_judge("exact search", nk.Index.build(data.base), 4 * data.base.shape[1])]
    with steps.step("warm up"):  # the first call of a method compiles its kernels, which is no training time
        for method in METHODS:
            find_method(method).make(CodeSize(2, n_centroids=CENTROIDS), random_state).fit(data.base[:64])
    with steps.step("compress") as callback:
        for size in sizes:
            for method, name in METHODS.items():
                made = find_method(method).make(CodeSize(size, n_centroids=CENTROIDS), random_state)
                quantizer = check_instance(made, "quantizer", nk.ProductQuantizer)
                start = time.perf_counter()
                quantizer.fit(data.base)
                seconds = time.perf_counter() - start
                history = [record["distortion"] for record in quantizer.history_]
                index, error = nk.Index.build(data.base, quantizer=quantizer), quantizer.distortion(data.queries)
                trials.append(_judge(name, index, size, error, seconds, history))
                total = len(sizes) * len(METHODS)
                callback(len(trials) - 1, {"total": total, "distortion": trials[-1].distortion})
    return trials


def _judge(
    name: str, index: Index, n_bytes: int, distortion: float = 0.0, seconds: float = 0.0, history: Sequence[float] = ()
) -> DemoTrial:
    data = digits()
    _, ranking = index.search(data.queries, len(data.base))
    return DemoTrial(
        method=name,
        n_bytes=n_bytes,
        compression=metrics.compression_ratio(data.base.shape[1], n_bytes),
        distortion=distortion,
        recall=metrics.neighbours_kept(ranking[:, :K], data.base, data.queries),
        mean_average_precision=metrics.label_mean_average_precision(data.labels[ranking], data.query_labels),
        seconds=seconds,
        history=list(history),
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
        made = find_method("givens-greedy").make(CodeSize(SHOWN, n_centroids=CENTROIDS), random_state)
        quantizer = check_instance(made, "quantizer", nk.ProductQuantizer)
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
    def by_size(measure: str) -> dict[str, dict[float, float]]:
        return {
            name: {float(t.n_bytes): getattr(t, measure) for t in trials[1:] if t.method == name}
            for name in METHODS.values()
        }

    convergence = plot_convergence({t.method: t.history for t in trials[1:] if t.n_bytes == SHOWN})
    distortion = plot_against_bytes(by_size("distortion"), "distortion of unseen images")
    recall = plot_against_bytes(by_size("recall"), f"recall@{K} against exact search")
    exact = ("exact search", trials[0].mean_average_precision)
    by_label = plot_against_bytes(by_size("mean_average_precision"), "mAP by label", reference=exact)
    by_label.set_ylim(0, 0.8)  # from zero: the differences are below 0.02
    return Section(
        "What a rotation gains",
        figures(
            (
                to_svg(convergence, "convergence"),
                f"Distortion while rotation and codebooks are learned, {SHOWN} bytes.",
            ),
            (to_svg(distortion, "distortion"), "Distortion of images that the codebooks have not learned from."),
            (to_svg(recall, "recall"), "More bytes, more of the exact neighbours."),
            (to_svg(by_label, "map"), "The same digit, ranked high: two bytes do it as well as exact search."),
        ),
    )
