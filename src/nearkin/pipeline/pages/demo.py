"""The demo's report: what it shows, in the order in which a newcomer asks."""

import html
import os
import shlex

import numpy as np

import nearkin as nk
from nearkin._storage import check_target, saving_folder
from nearkin._types import Seed
from nearkin.pipeline.demo import CENTROIDS, METHODS, Demo, K, Trial, run_demo
from nearkin.pipeline.methods import CodeSize, find_method
from nearkin.pipeline.steps import Steps
from nearkin.plots import plot_against_bytes, plot_convergence, to_svg
from nearkin.report import Page, Section
from nearkin.report.parts import facts, figures, paragraph, table, thumbnail

SHOWN = 4  # bytes of the code whose neighbours are pictured


def demo_page(demo: Demo) -> Page:
    """The page for one run of the demo."""
    n, d = demo.base.shape
    best = max((t for t in demo.trials[1:] if t.n_bytes == SHOWN), key=lambda t: t.recall)
    page = Page(
        title=f"{n:,} handwritten digits, {SHOWN} bytes each",
        eyebrow="nearkin demo",
        lead=(
            f"Each image is {d} numbers, {4 * d} bytes as float32. Product quantization keeps {SHOWN} of them, and a "
            "learned rotation decides which directions share a byte. Searching the codes still finds the right digits."
        ),
        made_by="nearkin demo",
    )
    page.add(_summary(demo, best)).add(_pictures(demo, best)).add(_table(demo)).add(_curves(demo))
    return page.add(_reading())


def save_demo(out: str | os.PathLike, random_state: Seed = 0, steps: Steps | None = None) -> tuple[Demo, str]:
    """Run the demo and write the folder `out`: the report, an index of 4-byte codes, the labels and the images.

    Returns the demo and the command that shows the index. ValueError before any work if the folder holds anything else.
    """
    check_target(out, "demo")
    demo = run_demo(random_state, steps)
    config = {"trials": [trial.record() for trial in demo.trials]}
    with saving_folder(out, "demo", config) as folder:
        demo_page(demo).write(folder / "report.html")
        quantizer = find_method("givens-greedy").make(CodeSize(4, n_centroids=CENTROIDS), random_state)
        nk.Index.build(demo.base, quantizer, keep_vectors=True).save(folder / "index")
        np.save(folder / "labels.npy", demo.labels)
        np.save(folder / "images.npy", demo.base.reshape(-1, 8, 8).astype(np.uint8))
    index, labels, images = (shlex.quote(f"{out}/{name}") for name in ("index", "labels.npy", "images.npy"))
    return demo, f"nearkin explore {index} --labels {labels} --images {images}"


def _summary(demo: Demo, best: Trial) -> Section:
    exact = demo.trials[0]
    values = {
        f"smaller than float32, at {SHOWN} bytes": f"{best.compression:.0f}×",
        f"of the exact {K} neighbours kept ({best.method})": f"{best.recall:.0%}",
        f"mAP by label; exact search has {exact.mean_average_precision:.3f}": f"{best.mean_average_precision:.3f}",
        "longest training of any method": f"{max(t.seconds for t in demo.trials):.2f} s",
    }
    return Section("In short", facts(values))


def _pictures(demo: Demo, best: Trial) -> Section:
    rows = "".join(_picture_row(demo, best, int(np.argmax(demo.query_labels == digit))) for digit in range(10))
    key = (
        '<p class="lead"><span class="key hit"></span> also among the exact ten &ensp; '
        '<span class="key wrong"></span> another digit than the query</p>'
    )
    return Section(
        f"A query, its exact neighbours, its neighbours through {SHOWN} bytes",
        f'{key}<div class="neighbours">{rows}</div>',
        f"The first test image of every digit, nearest first. Codes by {best.method}, distances by table look-up.",
    )


def _picture_row(demo: Demo, best: Trial, query: int) -> str:
    digit = demo.query_labels[query]
    exact, coded = demo.trials[0].ids[query], best.ids[query]
    lists = "".join(
        f'<div class="list"><span class="name">{html.escape(name)}</span><div class="strip">{strip}</div></div>'
        for name, strip in [
            ("exact", "".join(_neighbour(demo, int(i), digit, hit=False) for i in exact)),
            (f"{SHOWN} bytes", "".join(_neighbour(demo, int(i), digit, hit=i in exact) for i in coded)),
        ]
    )
    picture = thumbnail(demo.queries[query].reshape(8, 8) / 16, f"query: a {digit}")
    return f'<div class="neighbour-row"><div class="query">{picture}</div><div class="lists">{lists}</div></div>'


def _neighbour(demo: Demo, row: int, digit: int, hit: bool) -> str:
    label = demo.labels[row]
    kind = "wrong" if label != digit else "hit" if hit else ""
    picture = thumbnail(demo.base[row].reshape(8, 8) / 16, f"a {label}")
    return f'<span class="{kind}">{picture}</span>' if kind else f"<span>{picture}</span>"


def _table(demo: Demo) -> Section:
    columns = ["bytes", "method", "smaller", "distortion", f"recall@{K}", "mAP by label", "train s"]
    rows = [
        [t.n_bytes, t.method, f"{t.compression:.0f}×", t.distortion, t.recall, t.mean_average_precision, t.seconds]
        for t in demo.trials
    ]
    return Section(
        "All methods, all sizes",
        table(columns, rows, formats={3: ".1f", 4: ".3f", 5: ".3f", 6: ".2f"}, best={3: "min", 4: "max", 5: "max"}),
        f"Distortion is the mean squared error on {len(demo.queries)} queries that no method has seen. Recall@{K} "
        f"counts how many of the {K} exact neighbours are among the {K} found. Bold is the best of a size.",
    )


def _curves(demo: Demo) -> Section:
    def by_size(measure: str) -> dict[str, dict[float, float]]:
        coded = demo.trials[1:]
        return {name: {t.n_bytes: getattr(t, measure) for t in coded if t.method == name} for name in METHODS.values()}

    histories = {t.method: t.history for t in demo.trials[1:] if t.n_bytes == SHOWN}
    exact = ("exact search", demo.trials[0].mean_average_precision)
    convergence = plot_convergence(histories)
    distortion = plot_against_bytes(by_size("distortion"), "distortion of unseen images")
    recall = plot_against_bytes(by_size("recall"), f"recall@{K} against exact search")
    by_label = plot_against_bytes(by_size("mean_average_precision"), "mAP by label", reference=exact)
    by_label.set_ylim(0, 0.8)  # from zero: what is left are differences of less than 0.02
    return Section(
        "What a rotation buys",
        figures(
            (
                to_svg(convergence, "convergence"),
                f"Distortion while rotation and codebooks are learned, {SHOWN} bytes.",
            ),
            (to_svg(distortion, "distortion"), "Distortion of images that the codebooks have not seen."),
            (to_svg(recall, "recall"), "More bytes, more of the exact neighbours."),
            (to_svg(by_label, "map"), "The same digit, ranked high: two bytes do it as well as exact search."),
        ),
    )


def _reading() -> Section:
    return Section(
        "What this does not say",
        paragraph(
            "1,500 images are few. A subspace has 16 centroids here, half a byte each; with 256, the codebooks alone "
            "would weigh ten times the codes. The rotation weighs 16 kB whatever the number of rows: it vanishes "
            "beside a million vectors, not beside these. On your own vectors the order of the methods may differ: "
            "nearkin compress, then nearkin evaluate, shows it."
        ),
    )
