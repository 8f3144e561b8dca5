"""`nearkin report`: a page about saved folders, drawn from the records in them by the rule of `laid_out`."""

import html
from collections.abc import Iterator, Mapping
from pathlib import Path

from nearkin._fields import Fields, Record, StrPath, command
from nearkin._storage import adding, one_version, read_config
from nearkin.jobs.arguments import File, Names
from nearkin.jobs.outputs import check_file
from nearkin.jobs.run import EVALUATION, REPORT, RUN, bytes_on_disk, laid_out, read_record
from nearkin.plots import new_axes, plot_against_bytes, plot_convergence, to_svg
from nearkin.plots.style import SERIES, for_page
from nearkin.report import Page, Section
from nearkin.report.page import figures, paragraph, table

_CURVES = {  # quantities of a training's history, with their meaning
    "loss": "What training minimizes; lower is better.",
    "objective": "What training minimizes, the regularization included; lower is better.",
    "distortion": "Mean squared error of the decoded training vectors; lower is better.",
    "metric": "How well held-out pairs are ranked, NDCG@100; higher is better.",
}
_DRAWINGS = {  # of a map's folder, with what they show
    "map": "Objects that people called alike lie together; directions and the scale mean nothing.",
    "error": "Held-out answers that the map violates, with more answers and with more dimensions; lower is better.",
}


def report(folders: Names, *, out: File | None = None, overwrite: bool = False) -> Record:
    """Write a self-contained HTML page about a folder: how it was made, what it costs, its recall.

    It includes the result of `nearkin evaluate`, and compares several indexes. The page needs no network and can be
    mailed. Without a name it is FOLDER/report.html.

    Examples:

    - nearkin report idx --out report.html
    - nearkin report emb
    - nearkin report idx8 idx16 idx32 --out compared.html

    Parameters
    ----------
    folders: A folder that nearkin wrote: an index, vectors or a map; or several indexes.
    out: File to write: an HTML page.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    if pages := [name for name in folders if Path(name).suffix.lower() == ".html"]:
        raise ValueError(f"{pages[0]} is no folder; if the page is to be written there, type out={pages[0]!r}")
    if len(folders) > 1 and out is None:
        raise ValueError("several folders go into one report; say where with out=FILE")
    path = Path(folders[0]) / REPORT if out is None else Path(out)
    check_file(out, overwrite, folders)
    page = folder_page(folders[0]) if len(folders) == 1 else comparison_page(folders)
    if out is None:
        with adding(path.parent, REPORT, overwrite) as fresh:
            page.write(fresh)
    else:
        page.write(out)
    return {"folder": str(folders[0]), "folders": list(map(str, folders)), "report": str(path)}


def folder_page(folder: StrPath) -> Page:
    """The report of a folder that nearkin saved; ValueError if there is none, or it is damaged."""
    return one_version(folder, _page)


def _page(folder: Path) -> Page:
    config = read_config(folder)
    run = (read_record(folder, RUN) or {}) | config.get("record", {})
    run |= {name: config[name] for name in ("trials", "history") if config["kind"] == "demo"}
    found = read_record(folder, EVALUATION)
    page = Page(f"{folder.resolve().name}: {config['kind']}", made_by=command("report", folder))
    if found is not None:
        page.add(record_section("Results", found))
    elif config["kind"] == "index":
        page.add(Section("Results", paragraph("Not evaluated yet; nearkin evaluate adds the recall.")))
    size = {"bytes_on_disk": bytes_on_disk(folder)}
    page.add(record_section("Making", run | size) if run else Section("Making", paragraph("Saved from Python.")))
    if rows := run.get("examples"):
        cells = [[str(cell) for cell in row] for row in rows]
        page.add(Section("The most frequent items, and their nearest ones", table([""] * len(cells[0]), cells)))
    for name, text in _DRAWINGS.items():
        if (file := folder / f"{name}.svg").is_file():
            page.add(Section(name.capitalize(), figures((for_page(file.read_text(encoding="utf-8"), name), text))))
    drawn = [*curves(run), *curves(found or {})]
    return page.add(Section("Curves", figures(*drawn)) if drawn else None)


def record_section(title: str, record: Fields) -> Section:
    """A record as a section of a page."""
    facts, tables, lines = laid_out({name: value for name, value in record.items() if name != "history"})
    body = table(["", ""], [list(pair) for pair in facts.items()])
    for made in tables:
        body += f"<h3>{html.escape(made.title)}</h3>" + table(made.columns, made.rows)
    return Section(title, body + "".join(map(paragraph, lines)))


def curves(record: Fields) -> Iterator[tuple[str, str]]:
    """Figures of a record and their captions: the history of a training, the inverted lists searched, codes by size."""
    history = record.get("history") or []
    if isinstance(history, Mapping):
        yield to_svg(plot_convergence(history), "history"), "Distortion while the codes of each method are trained."
    else:
        entries = [entry if isinstance(entry, Mapping) else {"loss": entry} for entry in history]
        for phase, (name, text) in ((phase, curve) for phase in ("teacher", "index") for curve in _CURVES.items()):
            values = [entry[name] for entry in entries if name in entry and entry.get("phase", "index") == phase]
            if len(values) > 1:
                yield to_svg(plot_convergence({name: values}, ylabel=name), f"{phase}-{name}"), text
    if probing := record.get("probing"):
        _, recall, *_ = probing[0]
        ax = new_axes()
        ax.plot([row["n_probe"] for row in probing], [row[recall] for row in probing], color=SERIES[0], marker="o")
        ax.set(xscale="log", xlabel="inverted lists searched (n_probe)", ylabel=recall)
        yield to_svg(ax, "probing"), "Where the curve is flat, fewer lists are enough."
    trials = [row for row in record.get("trials") or [] if "bytes" in row and "method" in row]
    for measure in [name for name in (trials[0] if len(trials) > 1 else {}) if name.startswith(("recall", "mAP"))]:
        series = dict[str, dict[float, float]]()
        for row in trials:
            deep = row.get("oversample")
            how = "without rescoring" if deep == 1 else f"{deep} x k rescored"
            series.setdefault(row["method"] if deep is None else how, {})[row["bytes"]] = row[measure]
        picture = to_svg(plot_against_bytes(series, measure), measure.replace("@", ""))
        yield picture, f"{measure} against bytes a vector."


def comparison_page(folders: Names) -> Page:
    """Several indexes: sizes and recall, a row for each measured search."""
    rows, setups = list[Record](), set[object]()
    for folder in map(Path, folders):
        if read_config(folder)["kind"] != "index":
            raise ValueError(f"{folder} is no index; several folders in one report must be indexes")
        found = read_record(folder, EVALUATION)
        if not found or "searches" not in found:
            raise ValueError(f"{folder} has not been evaluated; run {command('evaluate', folder, 'QUERIES')} first")
        for search in found["searches"]:
            rows.append({"index": folder.resolve().name, "method": found.get("method"), **search})
        measures = tuple(name for name in found["searches"][-1] if "recall@" in name)
        setups.add((measures, found["queries"], found.get("compared_by"), found["vectors"]))
    unequal = "the indexes were evaluated with other queries, vectors, k or metric: their recalls do not compare"
    record = {"indexes": rows, "notes": [unequal] if len(setups) > 1 else []}
    return Page(f"{len(folders)} indexes side by side", made_by="nearkin report").add(record_section("Results", record))
