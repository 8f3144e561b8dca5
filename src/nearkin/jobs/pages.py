"""The report of a saved folder, drawn from the records in it, and the page of a sweep. One line in `PAGES` per kind."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count, product
from pathlib import Path

from rich.filesize import decimal

from nearkin._fields import Fields, Record, StrPath, command, counted, show, with_interval
from nearkin._storage import adding, one_version, read_config
from nearkin.embedding import saved_towers
from nearkin.jobs import demo, ids
from nearkin.jobs.compress import trial_rows, won_line
from nearkin.jobs.demo import MAP as MAP_BY_LABEL
from nearkin.jobs.demo import METHODS, N_QUERIES, RECALL, SHOWN, K, digits, explore_command
from nearkin.jobs.evaluate import search_rows
from nearkin.jobs.inputs import LEFT, MAP, side_names
from nearkin.jobs.pairs import differences_in_words, held_out_in_words
from nearkin.jobs.run import EVALUATION, REPORT, RUN, bytes_on_disk, read_record, times
from nearkin.jobs.sweep import Sweep
from nearkin.plots import new_axes, plot_against_bytes, plot_convergence, to_svg
from nearkin.plots.style import SERIES, for_page, legend
from nearkin.report import Page, Section
from nearkin.report.page import facts, figures, paragraph, table


def folder_page(folder: StrPath) -> Page:
    """The report of a folder that nearkin saved, by its kind; ValueError if there is none, or it is damaged."""
    return one_version(folder, _page)


def write_report(folder: StrPath, overwrite: bool = False) -> Path:
    """Write the report of a folder into it, one HTML page: `nearkin report`."""
    page = folder_page(folder)
    with adding(Path(folder), REPORT, overwrite) as fresh:
        page.write(fresh)
    return Path(folder) / REPORT


def _page(folder: Path) -> Page:
    kind = read_config(folder)["kind"]
    if kind not in PAGES:
        raise ValueError(f"{folder} holds a {kind}; reports are written for {', '.join(PAGES)}")
    return PAGES[kind](folder, read_record(folder, RUN) or {})


def _report(folder: Path, title: str, lead: str, *sections: Section | None) -> Page:
    """A page that `nearkin report` writes again; its title begins with the folder's name."""
    title = f"{folder.resolve().name}: {title}" if title else folder.resolve().name
    return Page(title, lead=lead, made_by=command("report", folder)).add(*sections)


def index_page(folder: Path, run: Record) -> Page:
    """The report of an index: which codec won, how well it answers, its size, its training and its settings."""
    if (folder / LEFT).is_file():  # made by `nearkin train`
        return pairs_page(folder, run)
    title, lead = "", "This index was saved from Python, without a record of its making."
    if run:
        title = f"{counted(run['vectors'], 'vector')}"
        lead = (
            f"{title} of {counted(run['dimensions'], 'dimension')} in {run['bytes_per_vector']:g} bytes each, by the "
            f"method {run.get('method', 'of the caller')}."
        )
    found = read_record(folder, EVALUATION)
    sections = _comparison(run), _answers(found, run), _size(run, folder), _probing(found or {}), _learning(run)
    return _report(folder, title, lead, *sections, _settings(run))


def pairs_page(folder: Path, run: Record) -> Page:
    """The report of pairs, as vectors of both sides or as an index trained with them: how well they rank, examples."""
    names, together = side_names(folder), (folder / LEFT).is_file()
    if together:
        n_bytes, smaller = run["bytes_per_vector"], f"{run['compression']:.3g}×"
        title = f"{run['vectors']:,} {names.right} in {n_bytes:g} bytes each"
        lead = (
            f"Trained on {counted(run['pairs'], 'pair')} with {run['left']:,} {names.left}: towers and index at once."
        )
        size = {f"bytes per {names.right}": n_bytes, "smaller than float32: without rescoring": smaller}
        size |= {"pairs": run["pairs"], "seconds": sum(run["seconds"].values())}
    else:
        towers = saved_towers.read_towers(folder)
        (m, n), count, d = towers.pairs.shape, len(towers.pairs), towers.left.shape[1]
        title = f"vectors of {m:,} {names.left} and {n:,} {names.right}"
        learned = f"{counted(count, 'pair')} of {names.left} and {names.right} in {counted(d, 'dimension')}"
        lead = f"Trained on {learned}; ranked by product."
        size = {names.left: m, names.right: n, "pairs": count, "dimensions": d}
    page = _report(folder, title, lead, _quality(run, together), Section("Size", facts(size)), _learning(run))
    if examples := run.get("examples"):
        rows = [[str(cell) for cell in row] for row in examples]
        columns = [names.right, *(f"#{place}" for place in range(1, len(rows[0])))]
        page.add(
            Section("Neighbours", table(columns, rows), f"The most frequent {names.right}, and their nearest ones.")
        )
    return page.add(_settings(run))


_DRAWINGS = {  # of a map's folder, with what they show
    "Map": "Objects that people called alike lie together; directions and the scale mean nothing.",
    "Error": "Held-out answers that the map violates, with more answers and with more dimensions; lower is better.",
}


def map_page(folder: Path, run: Record) -> Page:
    """The report of comparisons: the map, how well it predicts answers, and notes."""
    config = read_config(folder)
    record = config.get("record", {})
    title = f"a map of {counted(config['n_objects'], 'object')}"
    answers = counted(record.get("comparisons", 0), "answer")
    lead = f"Trained on {answers} in {counted(config['n_components'], 'dimension')}."
    values = {name.replace("_", " "): record.get(name) for name in ("noise_floor", "train_error", "contradictions")}
    if (error := record.get("held_out_error")) is not None:
        n, (low, high) = record["held_out_answers"], record["held_out_interval"]
        of = f"{round(error * n):,} wrong of {counted(n, 'comparison')}, 90 % interval {low:.3f} to {high:.3f}"
        values = {f"held-out error: {of}": f"{error:.3f}"} | values
    page = _report(folder, title, lead, _facts("Results", values))
    for title in _DRAWINGS:
        file = folder / f"{title.lower()}.svg"
        if file.is_file():
            drawing = for_page(file.read_text(encoding="utf-8"), file.stem)
            low, high = record.get("held_out_interval", (0.0, 0.0))
            chance = f" Differences below about {(high - low) / 2:.2f} are chance." if title == "Error" else ""
            page.add(Section(title, figures((drawing, _DRAWINGS[title] + chance))))
    notes = "".join(map(paragraph, record.get("notes", [])))
    return page.add(Section("Notes", notes) if notes else None, _settings(record))


def ids_page(folder: Path, run: Record) -> Page:
    """The report of semantic ids: sharing, codes in use, neighbours by prefix, and what shares a prefix."""
    if not run:
        kind = read_config(folder)["kind"]
        lead = f"These {kind} were saved from Python, without a record; nearkin ids writes one."
        return _report(folder, "semantic ids", lead)
    towers = f" and, with alpha {run['alpha']:g}, {run['towers']}" if run["towers"] else ""
    size = {
        "shared their nearest id": f"{run['shared_before']:.1%}",
        "share an id now": "0%",
        "distortion added for that": f"{run['distortion_added']:.2%}",
        "seconds": sum(run["seconds"].values()),
    }
    page = _report(
        folder,
        f"semantic ids of {counted(run['items'], 'item')}",
        f"{run['levels']} codes of {counted(run['codes'], 'value')} each, trained on {run['data']}{towers}.",
        Section("Unique ids", facts(size), "Each item has the free id that adds the least squared error in all."),
    )
    dead = (run["codes"] - used for used in run["used"])
    rows = list(zip(count(1), dead, run["perplexity"], run["prefix_recall"], run["behind_prefix"], strict=False))
    lead = (
        "Dead codes name no item. Perplexity is the number of equally used codes of the same entropy. The fourth "
        f"column is the share of an item's 10 nearest, among {run['judged_rows']:,}, that share its codes up to this "
        "level; the last, how many items share them with the average item."
    )
    columns = ["level", "dead", "perplexity", "nearest", "items"]
    page.add(Section("Levels", table(columns, rows, formats={2: ".1f", 3: ".3f", 4: ".1f"}), lead))
    if prefixes := run.get("prefixes"):
        lead = "The fullest first codes and their items; their fullest prefixes, with the items and some of them."
        page.add(Section("What shares a prefix", table([""] * len(prefixes[0]), prefixes), lead))
    return page.add(_quality(run, True))


def demo_page(folder: Path, run: Record) -> Page:
    config = read_config(folder, demo.KIND)
    trials, (n, d) = config["trials"], digits()[0].shape
    best = max((trial for trial in trials[1:] if trial["bytes"] == SHOWN), key=lambda trial: trial[RECALL])
    page = Page(
        title=f"{n:,} handwritten digits, {SHOWN} bytes each",
        eyebrow="nearkin demo",
        lead=(
            f"Each image is {d} numbers, {4 * d} bytes as float32. Product quantization codes it in {SHOWN} bytes; a "
            "trained rotation decides which directions share a byte. Searching the codes still finds the right digits."
        ),
        made_by="nearkin demo",
    )
    values = {
        f"smaller than float32: codes of {SHOWN} bytes": f"{best['times_smaller']:.0f}×",
        f"recall@{K} ({best['method']})": f"{best[RECALL]:.3f}",
        f"mAP by label; exact search has {trials[0][MAP_BY_LABEL]:.3f}": f"{best[MAP_BY_LABEL]:.3f}",
    }
    see = html_command(explore_command(folder))
    see = f"<p>Every digit, its exact neighbours and those through {SHOWN} bytes: {see}</p>"
    shown = [trial | {"times_smaller": f"{trial['times_smaller']:.0f}×"} for trial in trials]
    formats = {2: ".3f", 3: ".3f", 4: ".1f", 6: ".2f"}
    columns = [name.replace("_", " ") for name in shown[0]]
    body = table(columns, [list(trial.values()) for trial in shown], formats=formats)
    lead = (
        f"Distortion is the mean squared error on {N_QUERIES} queries that no method was trained on. Recall@{K} is "
        f"the share of the {K} exact neighbours among the {K} found. Differences in the third digit are chance with as "
        "few queries, and so are those in seconds."
    )
    limits = (
        "1,500 images are few. A subspace has 16 centroids; with 256, the codebooks would be ten times larger than the "
        "codes. The rotation takes 16 kB for any number of vectors: little for a million vectors, much for these. The "
        "methods may rank differently on your vectors: measure it with nearkin compress and nearkin evaluate."
    )
    return page.add(
        Section("In short", facts(values) + see),
        Section("All methods, all sizes", body, lead),
        _demo_curves(trials, config["history"]),
        Section("Limits of this demo", paragraph(limits)),
    )


def _demo_curves(trials: list[Record], history: Mapping[str, Sequence[float]]) -> Section:
    def by_size(measure: str, ylabel: str, caption: str, reference: tuple[str, float] | None = None) -> tuple[str, str]:
        curves = {
            name: {float(t["bytes"]): t[measure] for t in trials[1:] if t["method"] == name}
            for name in METHODS.values()
        }
        ax = plot_against_bytes(curves, ylabel, reference=reference)
        if reference is not None:
            ax.set_ylim(0, 0.8)  # from zero: the differences are below 0.02
        return to_svg(ax, re.sub(r"\W+", "-", measure)), caption

    text = f"Distortion while rotation and codebooks are trained, {SHOWN} bytes."
    unseen = "Distortion of images that the codebooks have not trained on."
    by_label = "The same digit, ranked high; the line is exact search."
    drawn = (
        (to_svg(plot_convergence(history), "convergence"), text),
        by_size("distortion", "distortion of unseen images", unseen),
        by_size(RECALL, f"recall@{K} against exact search", "The share of the exact neighbours that is found."),
        by_size(MAP_BY_LABEL, "mAP by label", by_label, ("exact search", trials[0][MAP_BY_LABEL])),
    )
    return Section("With and without a rotation", figures(*drawn))


PAGES: dict[str, Callable[[Path, Record], Page]] = {  # kind of a folder -> the page of it and its run.json
    "index": index_page,
    saved_towers.KIND: pairs_page,
    MAP: map_page,
    demo.KIND: demo_page,
    ids.KIND: ids_page,
}


def comparison_page(folders: Sequence[StrPath]) -> Page:
    """Several indexes: sizes and recall, a row for each measured search."""
    rows, measured, setups = list[list[object]](), list[tuple[float, list[float]]](), set[object]()
    for folder in map(Path, folders):
        if read_config(folder)["kind"] != "index":
            raise ValueError(f"{folder} is no index; several folders in one report must be indexes")
        run, found = read_record(folder, RUN) or {}, read_record(folder, EVALUATION)
        if not found or "searches" not in found:
            raise ValueError(f"{folder} has not been evaluated; run {command('evaluate', folder, 'QUERIES')} first")
        k = found["k"]
        for search, cells in zip(found["searches"], search_rows(found["searches"])[1], strict=True):
            measure = [name for name in found["searches"][-1] if "recall@" in name][-1]
            rows.append([
                folder.resolve().name, cells[-1], *cells[:2], str(run.get("method", "-")), k,
                found.get("n_probe"),
            ])  # fmt: skip
            measured.append((search[measure], search.get("intervals", {}).get(measure) or [search[measure]] * 2))
            setups.add((measure, found["queries"], found.get("compared_by"), found["vectors"]))
    columns = ["index", "k-recall@k (95 % interval)", "search", "needs", "method", "k", "n_probe"]
    lead = "All of one search for k: k-recall@k is the share of the k nearest that it finds."
    page = Page(title=f"{len(folders)} indexes side by side", made_by="nearkin report")
    unequal = "The indexes were evaluated with other queries, vectors, k or metric: their recalls do not compare."
    body = paragraph(_highest(rows, measured) if len(setups) == 1 else unequal) + table(columns, rows)
    return page.add(Section("Results", body, lead))


def _highest(rows: Sequence[Sequence[object]], measured: Sequence[tuple[float, Sequence[float]]]) -> str:
    """The search of the highest recall in words, and those that are level with it."""
    best = max(range(len(rows)), key=lambda number: measured[number][0])
    low, name = measured[best][1][0], [f"{row[0]}, {row[2]}" for row in rows]
    level = [name[n] for n, (_, interval) in enumerate(measured) if n != best and interval[1] >= low]
    tie = f"Ties with it, as 95 % intervals overlap: {'; '.join(level)}." if level else "No other is level with it."
    return f"Highest recall: {name[best]}, {rows[best][1]}, with {rows[best][3]}. {tie}"


def _facts(title: str, values: Fields) -> Section | None:
    """A section of those values that are known."""
    known = {name: value for name, value in values.items() if value is not None}
    return Section(title, facts(known)) if known else None


def _size(run: Fields, folder: Path) -> Section | None:
    if not run:
        return None
    raw, on_disk = 4 * run["dimensions"] * run["vectors"], bytes_on_disk(folder)
    return _facts("Size", {
        "bytes of a code": run["bytes_per_vector"],
        "smaller than float32: without rescoring": f"{run['compression']:.3g}×",
        "on disk: codes, codebooks, ids, kept vectors": decimal(on_disk),
        "the vectors as float32": decimal(raw),
        "the folder, compared with the vectors": times(raw / on_disk),
        "distortion (mean squared error)": run.get("distortion"),  # not after a change
        "share of the variance kept": run.get("variance_kept"),
    })  # fmt: skip


def _comparison(run: Fields) -> Section | None:
    """The codec that won, with its lead over each of its rivals."""
    trials = run.get("comparison", {}).get("trials", ())
    if not trials or "lead" not in trials[0]:  # one method was given
        return None
    how = (
        f"{counted(len(trials), 'codec')} of at most {counted(max(row['bytes'] for row in trials), 'byte')} in short "
        f"fits on {counted(trials[0]['rows'], 'vector')}, searched without rescoring. The fastest wins of those that "
        "none leads by more than one standard error. A lead whose 95 % interval includes 0 is a tie."
    )
    said = won_line(trials)
    body = paragraph(said[0].upper() + said[1:] + ".") + table(*trial_rows(trials)) + paragraph(how)
    return Section("The codec that won", body)


def _answers(record: Fields | None, run: Fields) -> Section:
    if record is None:
        recalls = {name: with_interval(run[name], run.get("recall_interval")) for name in run if "-recall@" in name}
        tiles = facts({f"{name}, without rescoring": text for name, text in recalls.items()}) if recalls else ""
        by = f" nearkin compress measured this by {run['judged_by']}." if recalls else ""
        return Section("Results", tiles, f"Not evaluated yet: nearkin evaluate adds queries, and mAP by label.{by}")
    source = f" of {record['query_file']}" if record.get("query_file") else ""
    options = [f"{name} = {record[name]}" for name in ("k", "oversample", "n_probe") if record.get(name) is not None]
    lead = (
        f"{record['judged_by']}{source}, one search with {', '.join(options)}. 1-recall@k: how often the nearest "
        "neighbour is among the first k found; k-recall@k: the share of the k nearest that is, with its 95 % "
        "interval over the queries."
    )
    measures = [[name, value] for name, value in record.items() if name[:3] in ("mAP", "pre")]
    body = table(["measure", "value"], measures, formats={1: ".3f"}) if measures else ""
    if "searches" in record:
        columns, rows = search_rows(record["searches"])
        tiles = facts({f"{columns[-1]}, {row[0]}": row[-1] for row in rows})
        body = tiles + table(columns, rows, formats=dict.fromkeys(range(2, len(columns)), ".3f")) + body
    return Section("Results", body, lead)


def _probing(record: Fields) -> Section | None:
    curve = record.get("probing")
    if not curve:
        return None
    columns, depths = list(curve[0]), [row["n_probe"] for row in curve]
    ax = new_axes()
    ax.plot(depths, [row[columns[1]] for row in curve], color=SERIES[0], marker="o")
    ax.set(xscale="log", xlabel="inverted lists searched (n_probe)", ylabel=columns[1], xticks=depths)
    ax.set_xticks([], minor=True)
    ax.set_xticklabels(f"{depth:,}" for depth in depths)
    text = "More lists find more neighbours and take longer; where the curve is flat, fewer lists are enough."
    rows = [list(row.values()) for row in curve]
    return Section("Inverted lists", figures((to_svg(ax, "probing"), text)) + table(columns, rows, formats={1: ".3f"}))


_CURVES = {  # quantities of a training's history, with the axis labels and their meaning
    "loss": ("loss on the training vectors", "What training minimizes"),
    "objective": ("objective", "What training minimizes, the regularization included"),
    "distortion": ("distortion on the training vectors", "Mean squared error of the decoded training vectors"),
    "metric": ("held-out NDCG@100", "How well held-out pairs are ranked"),
}
_PHASES = {"teacher": "sweeps of the towers", "index": "rounds with the index"}  # of towers learned with an index


def _learning(run: Fields) -> Section | None:
    """Figures of the records of a training, one for each quantity; towers with an index have two phases."""
    history = [entry if isinstance(entry, Mapping) else {"loss": entry} for entry in run.get("history") or []]
    together, drawn, lead = any("phase" in entry for entry in history), [], ""
    for (name, (ylabel, what)), (phase, steps) in product(_CURVES.items(), _PHASES.items()):
        values = [entry[name] for entry in history if name in entry and entry.get("phase", "index") == phase]
        again = name == "objective" and values == [entry.get("distortion") for entry in history]
        if len(values) > 1 and (phase == "index" or name == "objective") and not again:
            better = "higher" if name == "metric" else "lower"
            svg = to_svg(plot_convergence({ylabel: values}, ylabel=ylabel), f"{phase}-{name}")
            counts = steps if together else counted(len(values), "step")
            drawn.append((svg, f"{what}, {counts}; {better} is better."))
    if together:
        lead = (
            "First the towers are trained alone; then codes, codebooks and the left side are optimized in turn. The "
            "distortion may rise: the objective is the error of the scores near the top, not of the vectors."
        )
    return Section("Training", figures(*drawn), lead) if drawn else None


def _quality(run: Fields, together: bool) -> Section | None:
    """The test pairs ranked by the model and by the baselines, or by exact search, codes made after, and the index."""
    quality = run.get("quality")
    if not quality:
        return None
    if together:
        lead = "Pairs held out of training; pairs of training are left out of the rankings."
    else:
        left, right, about = run["words"]["left"], run["words"]["right"], run.get("held_out")
        chosen = {"random": "drawn at random", "time": "the latest", "leave-last-out": f"the last one of each {left}"}
        how = chosen.get(run["split"], "those that the table's column names")
        judged = f" ({held_out_in_words(about, left)})" if about else ""
        lead = (
            f"Pairs held out of training: {how}{judged}. Pairs of training are left out of the rankings. "
            f"Popularity ranks each {right} by its number of pairs, item-kNN by similarity to the history."
        )
    paired = "".join(map(paragraph, differences_in_words(run.get("differences", {}))))
    shown = ("recall@20", "ndcg@20", "recall@100", "precision@100", "ndcg@100", "mrr@100")
    measures = [name for name in shown if all(name in values for values in quality.values())]
    rows = [[name, *(values[key] for key in measures)] for name, values in quality.items()]
    body = table(["", *measures], rows, formats=dict.fromkeys(range(1, len(rows[0])), ".4f"))
    return Section("Results", body + paired, lead)


_MADE = (
    *("data", "train", "trained_on", "path", "understood", "metric", "solver", "loss", "omega", "dimensions", "dim"),
    *("regularization", "split", "start", "steps", "dropped", "seed", "threads"),
)


def _settings(run: Fields) -> Section | None:
    made = [[name.replace("_", " "), run[name]] for name in _MADE if run.get(name) is not None]
    seconds = run.get("seconds", {})
    steps = seconds if isinstance(seconds, Mapping) else {"embed": seconds}
    if steps:
        spent = ", ".join(f"{name} {show(value, '.3g')}" for name, value in steps.items() if value)
        made.append(["seconds of this run, by the clock", spent])
    return Section("Making", table(["", ""], made)) if made else None


def sweep_page(sweep: Sweep, vectors: str, queries: str | None = None) -> Page:
    """The page of a sweep over the file `vectors` with the queries in the file `queries`."""
    bench = sweep.bench
    page = Page(
        title=f"{vectors}: how few bytes keep {sweep.target:.0%} of {bench.k} neighbours",
        lead=f"{counted(len(bench.X), 'vector')} of {counted(bench.X.shape[1], 'column')}.",
        made_by=command("sweep", vectors),
    )
    answers = "".join(
        f"<p>{_with_options(text)}</p>" + "".join(f"<p>{html_command(line)}</p>" for line in commands)
        for text, commands in sweep.answers(vectors, queries)
    )
    notes = "".join(f"<p>{_with_options(note)}</p>" for note in sweep.notes())
    page.add(Section("The answer", answers + notes, sweep.judged_by()))
    if len(sweep.trials) > 1:
        rescored = sweep.chosen(rescored=True)
        depths = {"without rescoring": 1}
        if rescored is not None:
            depths[f"best of {rescored.oversample} times {bench.k}, rescored"] = rescored.oversample
        curves = {name: {float(t[o].n_bytes): t[o].mean for t in sweep.trials if o in t} for name, o in depths.items()}
        wanted = f"{sweep.target:g} wanted", sweep.target
        ax = plot_against_bytes(curves, sweep.measure, new_axes(5.4, 3.4), reference=wanted)
        legend(ax, ncols=2, loc="upper center", bbox_to_anchor=(0.45, -0.18))  # clear of the points and the line wanted
        text = "Recall without rescoring, and of candidates rescored by kept vectors."
        page.add(Section("Recall against bytes", figures((to_svg(ax, "bytes"), text))))
    return page.add(Section("All trained codes", table(*sweep.rows())))


def _with_options(text: str) -> str:
    """A sentence as HTML in which options do not break."""
    return re.sub(r"--[\w-]+(?: \d+)?", lambda found: f"<code><span>{found[0]}</span></code>", html.escape(text))


def html_command(line: str) -> str:
    words = " ".join(f"<span>{html.escape(word)}</span>" for word in line.split(" "))
    return f"<code>{words}</code>"
