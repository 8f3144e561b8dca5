"""The report of a folder that `nearkin train` wrote."""

from pathlib import Path

from matplotlib.ticker import MaxNLocator

from nearkin._types import Record
from nearkin.pipeline.embedding_folder import words_of
from nearkin.pipeline.folder import RUN, read_record
from nearkin.pipeline.pages.embedded import examples_section, making_section
from nearkin.plots import new_axes, to_svg
from nearkin.plots.style import SERIES
from nearkin.report import Page, Section
from nearkin.report.parts import facts, figures, table

_MADE = ("data", "solver", "loss", "dimensions", "regularization", "seed", "threads")
_SHOWN = ("recall@20", "ndcg@20", "recall@100", "precision@100", "ndcg@100")  # those that the run has


def trained_page(folder: Path) -> Page:
    """What was learned from how much, how well it answers beside exact search, how it was learned, some neighbours."""
    run, words = read_record(folder, RUN) or {}, words_of(folder)
    page = Page(
        title=f"{folder.resolve().name}: {run['vectors']:,} {words.right} in {run['bytes_per_vector']:g} bytes each",
        lead=f"Learned from {run['pairs']:,} pairs with {run['left']:,} {words.left}: towers and index together.",
        made_by=f"nearkin report {folder}",
    )
    size = {
        f"bytes per {words.right}": run["bytes_per_vector"],
        "smaller than float32: the codes alone": f"{run['compression']:.3g}×",
        "pairs": run["pairs"],
        "seconds": sum(run["seconds"].values()),
    }
    page.add(Section("Size", facts(size))).add(_quality(run)).add(_learning(run))
    return page.add(examples_section(run, words.right)).add(making_section(run, _MADE))


def _quality(run: Record) -> Section | None:
    quality = run["quality"]
    if not quality:
        return None
    shown = [key for key in _SHOWN if all(key in values for values in quality.values())]
    rows = [[name, *(values[key] for key in shown)] for name, values in quality.items()]
    exact, after, learned = (values["ndcg@100"] for values in list(quality.values())[:3])
    lead = "Pairs held out from training, pairs of training left out of the rankings."
    if exact > after:
        share = (learned - after) / (exact - after)
        lead += f" Of the NDCG@100 that compression after training loses, learning together wins back {share:.0%}."
    return Section(
        "Answers", table(["search", *shown], rows, formats=dict.fromkeys(range(1, 1 + len(shown)), ".4f")), lead
    )


def _learning(run: Record) -> Section | None:
    history = [{"objective": entry["value"], **entry} if "value" in entry else entry for entry in run["history"]]
    parts = []
    for name, title in (("objective", "loss"), ("distortion", "distortion"), ("metric", "held-out NDCG@100")):
        for phase in ("teacher", "index") if name == "objective" else ("index",):
            values = [h[name] for h in history if name in h and h.get("phase", "index") == phase]
            if len(values) > 1:
                label = f"{title}, {'sweeps of the towers' if phase == 'teacher' else 'rounds with the index'}"
                parts.append((_curve(values, title, f"{phase}-{name}"), label))
    return Section("Learning", figures(*parts), _HOW) if parts else None


_HOW = (
    "First the towers alone, then rounds in which codes, codebooks and the left side are each made best for the "
    "others. The distortion may rise: what is minimised is the error of the scores near the top, not of the vectors."
)


def _curve(values: list[float], name: str, key: str) -> str:
    ax = new_axes()
    ax.plot(range(1, len(values) + 1), values, color=SERIES[0], linewidth=1.8, marker="o", markersize=4)
    ax.set_xlabel("step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel(name)
    return to_svg(ax, key)
