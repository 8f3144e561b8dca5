"""A sweep as one HTML page: the answers, recall against bytes and speed, the table."""

import html
import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from nearkin.pipeline.sweep import Sweep
from nearkin.pipeline.sweep_trials import Trial, frontier
from nearkin.plots import plot_against_bytes, to_svg
from nearkin.plots.figures import set_ticks
from nearkin.plots.style import FAINT, INK, legend, new_axes, series_style
from nearkin.report import Page, Section
from nearkin.report.parts import figures, table


def sweep_page(sweep: Sweep, vectors: str, queries: str | None = None) -> Page:
    """The page of a sweep over the file `vectors`, judged by the file `queries`."""
    page = Page(
        title=f"{vectors}: how few bytes keep {sweep.target:.0%} of {sweep.k} neighbours",
        lead=" ".join(f"{text[0].upper()}{text[1:]}." for text in sweep.diagnosis.sentences()),
        made_by=f"nearkin sweep {vectors}",
    )
    answers = "".join(
        f"<p>{_with_options(text)}</p>" + "".join(f"<p>{html_command(command)}</p>" for command in commands)
        for text, commands in sweep.answers(vectors, queries)
    )
    notes = "".join(f"<p>{_with_options(note)}</p>" for note in sweep.notes())
    page.add(Section("The answer", answers + notes, sweep.judged_by()))
    drawn = _pictures(sweep)
    page.add(Section("Recall against bytes and speed", figures(*drawn)) if drawn else None)
    return page.add(Section("All trained codes", table(*sweep.rows())))


def _pictures(sweep: Sweep) -> list[tuple[str, str]]:
    """The figures that have more than one point."""
    drawn = []
    if len(sweep.codes(scouts=True)) > 1:
        text = "Neighbours kept by the codes alone, and by candidates ranked again with exact vectors."
        drawn.append((to_svg(_by_bytes(sweep), "bytes"), text))
    if len(sweep.trials) > 1:
        text = "Codes that no other code beats in both, on this machine, by codes alone."
        drawn.append((to_svg(_by_speed(sweep), "speed"), text))
    return drawn


def _by_bytes(sweep: Sweep) -> Axes:
    """Recall against bytes: by codes alone, of the cheapest answer with vectors, and of the scouts."""
    flat = [trial for trial in sweep.trials if not trial.code.n_lists]
    curves = {name: _curve(flat, name) for name in dict.fromkeys(trial.method for trial in flat)}
    if (found := sweep.with_vectors) is not None and found.trial.method in curves:
        o, name = found.oversample, found.trial.method
        curves[f"{name}, best of {o} times {sweep.k} ranked again"] = _curve(flat, name, o)
    label = f"recall {sweep.k}@{sweep.k}"
    ax = plot_against_bytes(curves, label, new_axes(5.4, 3.4), reference=(f"{sweep.target:g} wanted", sweep.target))
    for i, name in enumerate(dict.fromkeys(scout.method for scout in sweep.scouts)):
        points = sorted(_curve(sweep.scouts, name).items())
        how = {"color": FAINT, "linewidth": 1.0, "markersize": 4, "marker": "x", "zorder": 1.5}
        ax.plot(*zip(*points, strict=True), label=None if i else "learned from few rows", **how)
    set_ticks(ax, [trial.n_bytes for trial in [*flat, *sweep.scouts]])
    legend(ax, ncols=2, loc="upper center", bbox_to_anchor=(0.45, -0.18))  # clear of the points and the line wanted
    return ax


def _curve(trials: Sequence[Trial], method: str, oversample: int = 1) -> dict[float, float]:
    """{bytes: recall} of a method."""
    return {float(t.n_bytes): t.mean(oversample) for t in trials if t.method == method and oversample in t.recall}


def _by_speed(sweep: Sweep) -> Axes:
    """Recall against queries per second: the frontiers of codes without and with lists."""
    ax = new_axes(5.4, 3.4)
    kinds = {
        "all rows compared": [trial for trial in sweep.trials if not trial.code.n_lists],
        "in inverted lists": [trial for trial in sweep.trials if trial.code.n_lists],
    }
    for (name, trials), style in zip(kinds.items(), series_style(kinds).values(), strict=True):
        best = frontier(trials, by="speed")
        points = [(trial.mean(), trial.queries_per_second) for trial in best]
        if not points:
            continue
        ax.plot(*zip(*points, strict=True), label=name, linewidth=1.6, markersize=4, **style)
        for trial, where in zip(best, points, strict=True):
            text = f"{trial.n_bytes} B" if trial.n_probe is None else f"{trial.n_probe}"
            ax.annotate(text, where, fontsize=7, color=INK, xytext=(4, 4), textcoords="offset points")
    ax.axvline(sweep.target, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.set_xlabel(f"recall {sweep.k}@{sweep.k} (numbers: bytes of the code, searched lists)")
    ax.set_ylabel("queries per second")
    ax.set_yscale("log")
    ax.margins(x=0.08, y=0.12)
    ax.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    for set_format in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        set_format(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    legend(ax)
    return ax


def _with_options(text: str) -> str:
    """A sentence as HTML in which options do not break."""
    return re.sub(r"--[\w-]+(?: \d+)?", lambda found: f"<code><span>{found[0]}</span></code>", html.escape(text))


def html_command(command: str) -> str:
    """A command as HTML in which words do not break."""
    words = " ".join(f"<span>{html.escape(word)}</span>" for word in command.split())
    return f"<code>{words}</code>"
