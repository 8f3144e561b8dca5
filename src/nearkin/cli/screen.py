"""Output of commands: progress on stderr, then a record on stdout, for people or as JSON."""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from io import TextIOWrapper
from typing import Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn
from rich.table import Table

from nearkin._distributed import current
from nearkin._fields import Fields, is_text, quoted, show

_SHOWN = ("objective", "loss", "error", "distortion", "metric")  # of a record, next to the bar
_NAMED_BY_USERS = ("rater_reliability", "named")  # in records: keys are raters
_QUICK = 2.0  # seconds; shorter steps have no line in the log, except with --verbose


@dataclass
class Log:
    """Settings and state of progress output, set once from --quiet and --verbose."""

    quiet: bool = False
    verbose: bool = False
    command: str = "nearkin"
    began: float | None = None  # when the first step of a run without a terminal began
    written: bool = False  # whether a line was written
    steps: int = 0  # number of steps whose seconds were printed


LOG = Log()


def log_line(text: str, when: float | None = None) -> str:
    """A line of the log, with the time of day."""
    return f"{datetime.fromtimestamp(time.time() if when is None else when):%H:%M:%S} {text}"


def open_streams() -> None:
    """Escape on stdout and stderr what their encoding lacks (\\xe9); a closed one leads nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # `nearkin ... >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            with suppress(OSError):  # a file that has become a pipe
                stream.reconfigure(errors="backslashreplace")


class Screen:
    """Console of one command; with `as_json` stdout holds the record alone."""

    def __init__(self, as_json: bool = False, options: Mapping[str, str] | None = None) -> None:
        self.as_json: bool = as_json
        self._options = options or {}  # the names of a job's arguments on the command line
        self._is_peer = current().rank > 0  # of several processes only the first one prints
        self._silent = self._is_peer or LOG.quiet
        cut = sys.stdout.isatty() or "COLUMNS" in os.environ  # a pipe has no width: nothing is cut there
        self._out = Console(file=sys.stdout, quiet=self._is_peer, emoji=False, width=None if cut else 10_000)
        self._err = Console(file=sys.stderr, quiet=self._is_peer, emoji=False)

    @contextmanager
    def watch(self, title: str) -> Iterator[Callable[[int, Fields], None]]:
        """Show a bar with the time left while the block runs; yields callback(steps done, record with "total").

        Without a terminal: a line with the time of day within long steps, and one with the seconds of each.
        """
        columns = (*Progress.get_default_columns(), TextColumn("[dim]{task.fields[note]}"))
        logs = not self._err.is_terminal
        hidden = logs or self._silent
        console = Console(quiet=True) if hidden else self._err  # rich before 15 prints a line of a bar that is disabled
        start = time.monotonic()
        LOG.began, due = LOG.began or start, start + _QUICK
        with Progress(*columns, console=console, transient=True, disable=hidden) as bars:
            task = bars.add_task(title, total=None, note="")

            def callback(step: int, record: Fields) -> None:
                nonlocal due
                phase, total, note = record.get("phase"), record.get("total"), _note(record)
                name = f"{title}: {phase}" if phase else title
                bars.update(task, description=name, completed=step, total=total, note=note)
                if logs and time.monotonic() >= due:
                    due = time.monotonic() + (5 if LOG.verbose else 60)
                    share = f"{step / total:.0%}  " if total else ""
                    self._line(f"{name}: {share}{note}".rstrip())

            yield callback
        taken = time.monotonic() - start
        if logs and (LOG.verbose or taken >= _QUICK):
            LOG.steps += 1
            self._line(f"{title}: {taken:.1f} s")

    def _line(self, text: str) -> None:
        """Write a line of the log; before the first one, a line with the start of the run."""
        if self._silent:
            return
        if not LOG.written and LOG.began is not None:
            LOG.written = True
            self.say(log_line(f"{LOG.command} began", time.time() - time.monotonic() + LOG.began))
        self.say(log_line(text))

    def say(self, text: str) -> None:
        """Print a line on stderr."""
        self._err.print(printable(text), highlight=False, soft_wrap=True, markup=False)

    def finish(self, record: Fields) -> None:
        """Print a record: as JSON, or its facts, tables and lines. The notes of a negative verdict go to stderr."""
        from nearkin.jobs.run import laid_out, threads_used

        if LOG.steps != 1 and LOG.written and LOG.began is not None:  # one step's seconds are printed already
            self._line(f"done in {time.monotonic() - LOG.began:.1f} s")
        if record.get("passed") is False:
            for note in record["notes"]:
                self.say(f"nearkin: {worded(note, self._options)}")
        if self._is_peer:
            return
        if self.as_json:
            whole = _keyed({**record, "threads": record.get("threads") or threads_used()})
            # echo flushes: the first record of a server must not wait for its end
            typer.echo(json.dumps(whole, default=lambda one: getattr(one, "tolist", one.__str__)(), allow_nan=False))
            return
        hidden = {"notes": [], "passed": None} if record.get("passed") is False else {}
        facts, tables, lines = laid_out({**record, **hidden})
        grid = Table(show_header=False, box=box.SIMPLE)
        grid.add_column(style="dim")
        grid.add_column(overflow="fold")  # else a long name of a file is cut
        for name, value in facts.items():
            grid.add_row(_literal(name), _literal(value))
        if facts:
            self._out.print(grid, highlight=False)
        for made in (table_of(*one) for one in tables):
            least = self._out.measure(made, options=self._out.options.update(max_width=10_000)).minimum
            made.width = least if least > self._out.width else None  # names and numbers are never cut
            self._out.print(made, highlight=False, crop=False)
        for line in lines:
            self._out.print(printable(worded(line, self._options)), highlight=False, markup=False, soft_wrap=True)


def worded(text: str, options: Mapping[str, str]) -> str:
    """A message in which `argument=value` and a leading `argument is` are words of the command line.

    >>> worded("9 vectors have 8 ids; type levels=4 or header=False", {"levels": "--levels", "header": "--header"})
    '9 vectors have 8 ids; type --levels 4 or --no-header'
    >>> worded("scale is (1, 7); type scale=(7, 1) or header=True", {"scale": "--scale", "header": "--header"})
    '--scale is (1, 7); type --scale 7:1 or --header'
    """

    def option(found: re.Match[str]) -> str:
        name, value = options[found[1]], found[2]
        if value in ("True", "False"):
            return name.rstrip("=") if value == "True" else f"--no-{name[2:]}"
        word = ":".join(re.findall(r"[^(), ]+", value)) if value.startswith("(") else value.strip("'")
        return f"{name}{'' if name.endswith('=') else ' '}{quoted(word)}"

    names = "|".join(map(re.escape, options))
    leading = rf"^({names})(?= (?:is|has|needs|are|goes|takes) )"
    text = re.sub(leading, lambda found: options[found[1]].rstrip("="), text)
    # not in a file's name, as in log.csv:left=u,right=i
    return re.sub(rf"(?<![:,])\b({names})=('[^']*'|\([^()]*\)|[\w.]*\w|\.\.\.)", option, text)


def table_of(title: str, columns: list[str], rows: list[list[object]]) -> Table:
    """A rich table: texts left, numbers right in four significant digits."""
    made = Table(
        title=_literal(title), title_justify="left", title_style="bold", header_style="dim", box=box.SIMPLE_HEAD
    )
    for place, column in enumerate(columns):
        texts = any(is_text(row[place]) for row in rows)
        widest = max(cell_len(printable(show(cell))) for cell in (column, *(row[place] for row in rows)))
        least = widest if not texts or place == 0 else None  # other texts fold
        made.add_column(_literal(column), justify="left" if texts else "right", min_width=least, overflow="fold")
    for row in rows:
        made.add_row(*(_literal(show(cell)) for cell in row))
    return made


def printable(text: str) -> str:
    """Text with control characters (terminal escapes, line breaks inside ids) written out: \\x1b, \\n."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _literal(text: str) -> str:
    """Text without markup for rich, whose syntax an id may contain."""
    return escape(printable(text))


def _note(record: Fields) -> str:
    """The note of a record; else its objective, distortion and held-out metric."""
    if isinstance(record.get("note"), str):
        return record["note"]
    return "  ".join(f"{name} {show(record[name])}" for name in _SHOWN if isinstance(record.get(name), int | float))


def _keyed(value: Any) -> Any:
    """A record whose keys have "_" in place of blanks, but for names that users gave."""
    if isinstance(value, Mapping):
        given: Mapping[str, Any] = value
        return {str(k).replace(" ", "_"): v if k in _NAMED_BY_USERS else _keyed(v) for k, v in given.items()}
    return [_keyed(one) for one in value] if isinstance(value, list | tuple) else value
