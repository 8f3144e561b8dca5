"""The report of a saved folder, from the records that lie in it. One function a kind of folder, one line in `PAGES`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nearkin._storage import one_version, read_config
from nearkin._types import Fields
from nearkin.embedding import saved_towers
from nearkin.pipeline.embedding_folder import MAP
from nearkin.pipeline.evaluate.neighbours import search_rows
from nearkin.pipeline.folder import EVALUATION, RUN, bytes_on_disk, megabytes, read_record, times
from nearkin.pipeline.left_side import LEFT
from nearkin.pipeline.pages.embedded import in_words, map_page, towers_page
from nearkin.pipeline.pages.hash_study import study_section
from nearkin.pipeline.pages.trained import trained_page
from nearkin.plots import new_axes, plot_convergence, to_svg
from nearkin.plots.style import SERIES
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
    page.add(_size(run, folder)).add(_answers(evaluation)).add(_probing(evaluation)).add(study_section(evaluation)).add(
        _learning(run)
    )
    return page.add(_making(run))


PAGES: dict[str, Callable[[Path], Page]] = {
    "index": index_page,
    saved_towers.KIND: towers_page,
    MAP: map_page,
}


def folder_page(folder: str | os.PathLike) -> Page:
    """The report of a folder that nearkin saved, by its kind; ValueError if there is none, or it is damaged."""
    return one_version(folder, _page)


def _page(folder: Path) -> Page:
    kind = read_config(folder)["kind"]
    if (folder / LEFT).is_file():
        return trained_page(folder)
    if kind not in PAGES:
        raise ValueError(f"{folder} holds a {kind}; reports are written for {', '.join(PAGES)}")
    return PAGES[kind](folder)


def _lead(run: Fields) -> str:
    if not run:
        return "This index was saved from Python, without a record of its making."
    return (
        f"{run['vectors']:,} vectors of {run['dimensions']:,} dimensions in {run['bytes_per_vector']:g} bytes each, "
        f"by the method {run.get('method', 'of the caller')}."
    )


def _size(run: Fields, folder: Path) -> Section | None:
    if not run:
        return None
    values = {
        "bytes of a code": run["bytes_per_vector"],
        "smaller than float32: the codes alone": f"{run['compression']:.3g}×",
        "bytes on disk: codes, codebooks, ids, kept vectors": megabytes(on_disk := bytes_on_disk(folder)),
        "the vectors as float32": megabytes(raw := 4.0 * run["dimensions"] * run["vectors"]),
        "the folder, compared with the vectors": times(raw / on_disk),
        "distortion (mean squared error)": run["distortion"],
        "share of the variance kept": run.get("variance_kept"),
    }
    return Section("Size", facts({name: value for name, value in values.items() if value is not None}))


def _answers(record: Fields | None) -> Section | None:
    if record is None:
        return Section("Answers", "", "Not judged yet: nearkin evaluate adds recall, and mAP by label, to this page.")
    source = f" of {record['query_file']}" if record.get("query_file") else ""
    asked = "rows, none its own neighbour" if record.get("queries_are_rows") else f"queries{source}"
    by_row = "searches" in record
    measures = [
        [name, value]
        for name, value in record.items()
        if (not by_row and "recall@" in name) or name[:3] in ("mAP", "pre")
    ]
    options = [f"k = {record['k']}"]
    options += [f"{name} = {record[name]}" for name in ("oversample", "n_probe") if record.get(name) is not None]
    lead = (
        f"{record['queries']:,} {asked}, one search with {', '.join(options)}. 1-recall@k: how often the nearest "
        "neighbour is among the first k found; k-recall@k: the share of the k nearest that is."
    )
    body = table(["measure", "value"], measures, formats={1: ".3f"}) if measures else ""
    if by_row:
        columns, rows = search_rows(record["searches"])
        body = table(columns, rows, formats=dict.fromkeys(range(2, len(columns)), ".3f")) + body
    return Section("Answers", body, lead)


def _probing(record: Fields | None) -> Section | None:
    """Recall and speed against the number of coarse cells that a search looks into."""
    curve = (record or {}).get("probing")
    if not curve:
        return None
    columns = list(curve[0])
    ax = new_axes()
    ax.plot([row["n_probe"] for row in curve], [row[columns[1]] for row in curve], color=SERIES[0], marker="o")
    ax.set_xscale("log")
    ax.set_xlabel("coarse cells looked into (n_probe)")
    ax.set_ylabel(columns[1])
    body = figures((to_svg(ax, "probing"), "")) + table(
        columns, [list(row.values()) for row in curve], formats={1: ".3f"}
    )
    return Section("Coarse cells", body)


def comparison_page(folders: Sequence[str | os.PathLike]) -> Page:
    """Several indexes side by side: what each needs and what it finds, a row for each search that was judged."""
    rows: list[list[object]] = []
    missing: list[str] = []
    for folder in map(Path, folders):
        if read_config(folder)["kind"] != "index":
            raise ValueError(f"{folder} is no index; several folders in one report must be indexes")
        run, found = read_record(folder, RUN) or {}, read_record(folder, EVALUATION)
        if not found or "searches" not in found:
            missing.append(str(folder))
            continue
        speed = found["queries_per_second"]
        for row in found["searches"]:
            _, cells = search_rows([row])
            measures = {name: value for name, value in row.items() if "recall@" in name}
            largest = f"{found['k']}-recall@{found['k']}" if found["k"] > 1 else "1-recall@1"
            asked = row["oversample"] == found["oversample"]
            rows.append([
                folder.resolve().name, str(run.get("method", "-")), *cells[0][:2], found["k"], found.get("n_probe"),
                measures.get("1-recall@1"), measures.get(largest), speed if asked else None,
            ])  # fmt: skip
    if missing:
        raise ValueError(f"{missing[0]} has not been judged; run nearkin evaluate {missing[0]} QUERIES first")
    columns = ["index", "method", "search", "needs", "k", "n_probe", "1-recall@1", "k-recall@k", "queries a second"]
    body = table(columns, rows, formats={6: ".3f", 7: ".3f"})
    page = Page(title=f"{len(folders)} indexes side by side", lead="", made_by="nearkin report")
    lead = "All of one search for k: k-recall@k is the share of the k nearest that it finds."
    return page.add(Section("Answers", body, lead))


def _learning(run: Fields) -> Section | None:
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


def _making(run: Fields) -> Section | None:
    if not run:
        return None
    made = [[name.replace("_", " "), in_words(run[name])] for name in _MADE if run.get(name) is not None]
    seconds = [[f"seconds to {name}", f"{value:.2f}"] for name, value in run["seconds"].items()]
    return Section("Making", table(["", ""], made + seconds))
