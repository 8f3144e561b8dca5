"""A sweep as one HTML page: the answers, the picture of recall against bytes, the table."""

import html

from matplotlib.ticker import FuncFormatter, LogLocator

from nearkin.pipeline.sweep.choose import frontier
from nearkin.pipeline.sweep.sweep import Sweep
from nearkin.plots import plot_against_bytes, to_svg
from nearkin.plots.style import INK, SERIES, new_axes
from nearkin.report import Page, Section
from nearkin.report.parts import figures, table


def sweep_page(sweep: Sweep, vectors: str) -> Page:
    """The page of a sweep over the file `vectors`."""
    page = Page(
        title=f"{vectors}: how few bytes keep {sweep.target:.0%} of {sweep.k} neighbours",
        lead=" ".join(f"{text[0].upper()}{text[1:]}." for text in sweep.diagnosis.sentences()),
        made_by=f"nearkin sweep {vectors}",
    )
    answers = "".join(f"<p>{html_line(line)}</p>" for line in sweep.answers(vectors))
    page.add(Section("The answer", answers, sweep.judged_by()))
    page.add(Section("Recall against bytes and speed", figures(*_pictures(sweep))))
    columns, rows = sweep.rows()
    return page.add(Section("Every code that was tried", table(columns, rows)))


def _pictures(sweep: Sweep) -> list[tuple[str, str]]:
    names = dict.fromkeys(trial.method for trial in sweep.trials)
    alone = {name: {float(t.n_bytes): t.mean() for t in sweep.trials if t.method == name} for name in names}
    deepest = max(o for trial in sweep.trials for o in trial.recall)
    rescored = {
        f"{name}, rescored {o} x": {
            float(t.n_bytes): t.mean(o) for t in sweep.trials if t.method == name and o in t.recall
        }
        for name in names
        for o in (4, deepest)
        if len(alone[name]) > 1 and o > 1
    }
    target = (f"{sweep.target:g} wanted", sweep.target)
    label = f"recall {sweep.k}@{sweep.k}"
    bytes_picture = plot_against_bytes(alone | rescored, label, new_axes(5.4, 3.4), reference=target)
    ax = new_axes(5.4, 3.4)
    best = frontier(sweep.trials)
    rates = [trial.queries_per_second for trial in best]
    ax.plot([trial.mean() for trial in best], rates, "o-", color=SERIES[0], linewidth=1.6, markersize=4)
    for trial, following in zip(best, [*rates[1:], 0.0], strict=True):
        below = following > trial.queries_per_second  # the line rises: its lower side is free
        ax.annotate(f"{trial.n_bytes} B", (trial.mean(), trial.queries_per_second), fontsize=8, color=INK,
                    xytext=(4, -10 if below else 4), textcoords="offset points")  # fmt: skip
    ax.set_xlabel(label)
    ax.set_ylabel("queries a second")
    ax.set_yscale("log")
    ax.margins(x=0.08, y=0.12)
    ax.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    for set_format in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        set_format(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return [
        (to_svg(bytes_picture, "bytes"), "Neighbours kept by the codes alone, and of the candidates ranked again."),
        (to_svg(ax, "speed"), "Speed of the codes on the frontier, this machine, searched by codes alone."),
    ]


def html_line(text: str) -> str:
    """A line of an answer with its command set as code, whose words do not break."""
    said, found, command = text.partition("nearkin compress")
    words = " ".join(f"<span>{html.escape(word)}</span>" for word in f"{found}{command}".split())
    return html.escape(said) + (f"<code>{words}</code>" if found else "")
