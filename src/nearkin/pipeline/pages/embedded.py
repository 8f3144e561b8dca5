"""The reports of folders that `nearkin embed` wrote: vectors of pairs, and the map of comparisons."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.ticker import MaxNLocator

from nearkin._storage import read_config
from nearkin._types import Fields
from nearkin.embedding import saved_towers
from nearkin.pipeline.embedding_folder import words_of
from nearkin.pipeline.folder import RUN, read_record
from nearkin.pipeline.judging import held_out_in_words
from nearkin.plots import new_axes, to_svg
from nearkin.plots.style import SERIES, for_page
from nearkin.report import Page, Section
from nearkin.report.parts import facts, figures, paragraph, table

_MADE = ("data", "solver", "loss", "omega", "regularization", "dim", "split", "start", "steps", "threads")


def towers_page(folder: Path) -> Page:
    """What was learned from how many pairs, how well it ranks beside baselines, what lies near what."""
    run, words = read_record(folder, RUN) or {}, words_of(folder)
    towers = saved_towers.read_towers(folder)
    m, n = towers.pairs.shape
    page = Page(
        title=f"{folder.resolve().name}: vectors of {m:,} {words.left} and {n:,} {words.right}",
        lead=f"Learned from {len(towers.pairs):,} pairs of {words.left} and {words.right}, in "
        f"{towers.left.shape[1]} dimensions: the inner product ranks.",
        made_by=f"nearkin report {folder}",
    )
    size = {words.left: m, words.right: n, "pairs": len(towers.pairs), "dimensions": towers.left.shape[1]}
    page.add(Section("Size", facts(size))).add(quality_section(run)).add(_learning(run))
    return page.add(examples_section(run, words.right)).add(making_section(run, _MADE))


def map_page(folder: Path) -> Page:
    """The map of comparisons, how well it predicts answers, and its notes."""
    config = read_config(folder)
    record = config.get("record", {})
    page = Page(
        title=f"{folder.resolve().name}: a map of {config['n_objects']:,} objects",
        lead=f"Learned from {record.get('comparisons', 0):,} answers in {config['n_components']} dimensions.",
        made_by=f"nearkin report {folder}",
    )
    names = ("held_out_error", "noise_floor", "train_error", "held_out_answers", "contradictions")
    found = {name.replace("_", " "): record[name] for name in names if record.get(name) is not None}
    page.add(Section("Answers", facts(found)) if found else None)
    for title, name in (("Map", "map.svg"), ("Error", "error.svg")):
        file = folder / name
        if file.is_file():
            page.add(Section(title, figures((for_page(file.read_text(encoding="utf-8"), file.stem), ""))))
    notes = "".join(map(paragraph, record.get("notes", [])))
    page.add(Section("Notes", notes) if notes else None)
    made = [[name, str(record[name])] for name in ("path", "understood", "loss", "solver", "dropped") if name in record]
    return page.add(Section("Making", table(["", ""], made)) if made else None)


def quality_section(run: Fields) -> Section | None:
    """The result beside popularity and item-kNN, and how the pairs that judge were chosen."""
    quality = run.get("quality")
    if not quality:
        return None
    shown = list(next(iter(quality.values())))
    rows = [[name, *(values[key] for key in shown)] for name, values in quality.items()]
    ways = {
        "random": "drawn at random",
        "time": "the latest ones",
        "leave-last-out": f"the last one of each {run['words']['left']}",
        "column": "those that the table's column names",
    }
    about = run.get("held_out")
    judged = f" ({held_out_in_words(about, run['words']['left'])})" if about else ""
    lead = (
        f"Pairs held out of training: {ways[run['split']]}{judged}. Pairs of training are left out of the rankings. "
        "Popularity recommends what most have; item-kNN what resembles the history."
    )
    formats = dict.fromkeys(range(1, len(shown) + 1), ".4f")
    return Section("Answers", table(["", *shown], rows, formats=formats), lead)


def examples_section(run: Fields, word: str) -> Section | None:
    """The most frequent entities of the right side and what lies nearest."""
    examples = run.get("examples") or []
    if not examples:
        return None
    places = [f"#{place}" for place in range(1, len(examples[0]))]
    rows = [[str(cell) for cell in row] for row in examples]
    return Section("Neighbours", table([word, *places], rows), f"The most frequent in {word}, and what lies nearest.")


def making_section(run: Fields, names: tuple[str, ...]) -> Section | None:
    """What the folder was made of, and how long it took."""
    made = [[name, in_words(run[name])] for name in names if run.get(name) is not None]
    seconds = run.get("seconds", {})
    steps = seconds if isinstance(seconds, Mapping) else {"embed": seconds}
    made += [[f"seconds to {name}", f"{value:.2f}"] for name, value in steps.items()]
    return Section("Making", table(["", ""], made)) if made else None


def in_words(value: object) -> str:
    """A setting as a page shows it: numbers in four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _learning(run: Fields) -> Section | None:
    values = [entry["objective"] for entry in run.get("history") or [] if "objective" in entry]
    if len(values) < 2:
        return None
    ax = new_axes()
    ax.plot(range(1, len(values) + 1), values, color=SERIES[0], linewidth=1.8, marker="o", markersize=4)
    ax.set_xlabel("step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("objective")
    return Section("Learning", figures((to_svg(ax, "objective"), f"{len(values)} steps.")))
