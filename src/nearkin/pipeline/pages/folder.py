"""The report of a saved folder, from the records that lie in it. One function a kind of folder, one line in `PAGES`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nearkin._storage import read_config
from nearkin.embedding import saved_towers
from nearkin.pipeline.embedding_folder import MAP
from nearkin.pipeline.folder import EVALUATION, RUN, read_record
from nearkin.pipeline.left_side import LEFT
from nearkin.pipeline.pages.embedded import map_page, towers_page
from nearkin.pipeline.pages.hash_study import study_section
from nearkin.pipeline.pages.trained import trained_page
from nearkin.plots import plot_convergence, to_svg
from nearkin.report import Page, Section
from nearkin.report.parts import facts, figures, table

_MADE = ("data", "train", "trained_on", "metric", "seed", "threads")


def index_page(folder: Path) -> Page:
    """The report of an index: what it holds, how it was learned, how well it answers."""
    run = read_record(folder, RUN) or {}
    page = Page(
        title=f"{folder.resolve().name}: {run.get('vectors', 0):,} vectors" if run else folder.resolve().name,
        lead=_lead(run),
        made_by=f"nearkin report {folder}",
    )
    evaluation = read_record(folder, EVALUATION)
    page.add(_size(run)).add(_answers(evaluation)).add(study_section(evaluation)).add(_learning(run))
    return page.add(_making(run))


PAGES: dict[str, Callable[[Path], Page]] = {
    "index": index_page,
    saved_towers.KIND: towers_page,
    MAP: map_page,
}


def folder_page(folder: str | os.PathLike) -> Page:
    """The report of a folder that nearkin saved, by its kind; ValueError if there is none for that kind."""
    kind = read_config(folder)["kind"]
    if (Path(folder) / LEFT).is_file():
        return trained_page(Path(folder))
    if kind not in PAGES:
        raise ValueError(f"{folder} holds a {kind}; reports are written for {', '.join(PAGES)}")
    return PAGES[kind](Path(folder))


def _lead(run: Mapping[str, Any]) -> str:
    if not run:
        return "This index was saved from Python, without a record of its making."
    return (
        f"{run['vectors']:,} vectors of {run['dimensions']:,} dimensions in {run['bytes_per_vector']:g} bytes each, "
        f"by the method {run.get('method', 'of the caller')}."
    )


def _size(run: Mapping[str, Any]) -> Section | None:
    if not run:
        return None
    total = run["bytes_per_vector"] * run["vectors"]
    values = {
        "bytes per vector": run["bytes_per_vector"],
        "smaller than float32": f"{run['compression']:.3g}×",
        "all codes": _bytes(total),
        "the same as float32": _bytes(4.0 * run["dimensions"] * run["vectors"]),
        "distortion (mean squared error)": run["distortion"],
    }
    return Section("Size", facts({name: value for name, value in values.items() if value is not None}))


def _answers(record: Mapping[str, Any] | None) -> Section | None:
    if record is None:
        return Section("Answers", "", "Not judged yet: nearkin evaluate adds recall, and mAP by label, to this page.")
    source = f" of {record['query_file']}" if "query_file" in record else ""
    measures = [[name, value] for name, value in record.items() if "recall@" in name or name[:3] in ("mAP", "pre")]
    lead = (
        f"{record['queries']:,} queries{source}. 1-recall@k: how often the nearest neighbour is "
        "among the k found; k-recall@k: the share of the k nearest that is."
    )
    return Section("Answers", table(["measure", "value"], measures, formats={1: ".3f"}), lead)


def _learning(run: Mapping[str, Any]) -> Section | None:
    history = run.get("history") or []
    name = str(run.get("method", "training"))
    if len(history) > 1 and not isinstance(history[0], Mapping):  # a hasher's: its loss after each iteration
        svg = to_svg(plot_convergence({name: history}, ylabel="loss on the training rows"), "convergence")
        return Section("Learning", figures((svg, f"{len(history)} iterations.")))
    distortions = [entry["distortion"] for entry in history if "distortion" in entry]
    if len(distortions) < 2:
        return None
    parts = {part: sum(entry.get(f"{part}_seconds", 0.0) for entry in history) for part in ("kmeans", "rotation")}
    spent = f" k-means took {parts['kmeans']:.2f} s of it, the rotation {parts['rotation']:.2f} s."
    svg = to_svg(plot_convergence({name: distortions}), "convergence")
    return Section("Learning", figures((svg, f"{len(history)} iterations.{spent}")))


def _making(run: Mapping[str, Any]) -> Section | None:
    if not run:
        return None
    made = [[name.replace("_", " "), str(run[name])] for name in _MADE if run.get(name) is not None]
    seconds = [[f"seconds to {name}", f"{value:.2f}"] for name, value in run["seconds"].items()]
    return Section("Making", table(["", ""], made + seconds))


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
