"""What a command shows: progress on stderr while it works, then a table, or one JSON record, on stdout."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from nearkin._distributed import current
from nearkin._fields import Fields

_OBJECTIVES = ("objective", "loss", "value", "error")  # the first one in a record is shown beside the bar,
_BESIDE = ("distortion", "metric")  # and these
_WORTH_A_LINE = 2.0  # seconds after which a log has a first line about a step, unless --verbose asks for all
_NUMBER = set("0123456789.,+-×%")  # cells of these characters alone are set right


@dataclass
class Voice:
    """How much a command says while it works: set once, from --quiet and --verbose, before it begins."""

    quiet: bool = False
    verbose: bool = False
    command: str = "nearkin"
    began: float | None = None  # when the first step of a run without a terminal began
    spoken: bool = False  # whether a line was written

    def every(self) -> float:
        """Seconds between two lines about one step, where there is no terminal to draw a bar on."""
        return 5.0 if self.verbose else 60.0


VOICE = Voice()


class Screen:
    """Console of one command; with `as_json` stdout carries the record alone."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self._quiet = current().rank > 0  # of several processes the first one speaks
        self._silent = self._quiet or VOICE.quiet
        self._out = Console(file=sys.stdout, quiet=self._quiet)
        self._err = Console(file=sys.stderr, quiet=self._quiet)

    @contextmanager
    def watch(self, title: str) -> Iterator[Callable[[int, Fields], None]]:
        """Show a bar with the time left while the block runs; yields callback(steps done, record with "total").

        Where there is no terminal, a line when the block ends says how long it took.
        """
        if not self._err.is_terminal:
            with self._log(title) as log:
                yield log
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=32),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        with Progress(*columns, console=self._err, transient=True, disable=self._silent) as bars:
            task = bars.add_task(title, total=None, note="")

            def callback(step: int, record: Fields) -> None:
                bars.update(task, completed=step, total=record.get("total"), note=_note(record))

            yield callback

    @contextmanager
    def _log(self, title: str) -> Iterator[Callable[[int, Fields], None]]:
        """Lines with the time of day: when the run began, one for each step that takes time, some within long ones."""
        start = time.monotonic()
        due = start + _WORTH_A_LINE
        VOICE.began = VOICE.began or start

        def callback(step: int, record: Fields) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + VOICE.every()
                share = f"{step / record['total']:.0%}  " if record.get("total") else ""
                self._line(f"{title}: {share}{_note(record)}".rstrip())

        yield callback
        taken = time.monotonic() - start
        if VOICE.verbose or taken >= _WORTH_A_LINE:
            self._line(f"{title}: {taken:.1f} s")

    def _line(self, text: str) -> None:
        """One line of the log, after one that says when the run began."""
        if self._silent:
            return
        if not VOICE.spoken:
            VOICE.spoken = True
            ago = time.monotonic() - (VOICE.began or time.monotonic())
            self.say(f"{_clock(time.time() - ago)} {VOICE.command} began")
        self.say(f"{_clock(time.time())} {text}")

    def say(self, text: str) -> None:
        """A line for people, on stderr."""
        self._err.print(printable(text), highlight=False, soft_wrap=True, markup=False)

    def finish(self, record: Fields, *tables: Table | str) -> None:
        """Print the record as JSON, or the tables (and lines) for people; the record names the threads used."""
        if VOICE.spoken and VOICE.began is not None:
            self._line(f"done in {time.monotonic() - VOICE.began:.1f} s")
        if record.get("threads") is None:
            record = {**record, "threads": threads_used()}
        if self.as_json and not self._quiet:
            sys.stdout.write(json.dumps(record, default=_plain, allow_nan=False) + "\n")
            sys.stdout.flush()  # a server's first record must not wait for its end
        if self.as_json:
            return
        for part in filter(None, tables):
            is_text = isinstance(part, str)  # the cells of a table are escaped where they are made
            self._out.print(
                printable(part) if is_text else part, highlight=False, markup=not is_text, soft_wrap=is_text
            )


def read_line(about: object) -> str:
    """What a reader understood of a table, as commands print it; nothing where there was nothing to understand."""
    return f"Read {about}" if about else ""


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def threads_used() -> int:
    """How many threads numerical libraries take: what the environment or --threads says, else the cores we may use."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A rich table: texts left, numbers right in four significant digits, a rule where the first cell changes."""
    made = Table(
        title=_literal(title),
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    for j, column in enumerate(columns):
        cells = [row[j] for row in rows]
        text = any(isinstance(cell, str) and not set(cell) <= _NUMBER for cell in cells)
        made.add_column(_literal(column), justify="left" if text else "right", no_wrap=True)
    for i, row in enumerate(rows):
        repeated = i > 0 and rows[i - 1][0] == row[0]
        if i and not repeated and len(rows) > len({row[0] for row in rows}):
            made.add_section()
        cells = ["" if repeated else show(row[0]), *map(show, row[1:])]
        made.add_row(*map(_literal, cells))
    return made


def pairs(title: str, values: Fields) -> Table:
    """A two-column table of names and values."""
    made = Table(
        title=_literal(title),
        title_justify="left",
        title_style="bold",
        show_header=False,
        box=box.SIMPLE,
        min_width=min(len(title), 78),
    )
    for name, value in values.items():
        made.add_row(f"[dim]{_literal(name)}", _literal(show(value)))
    return made


def show(value: Any) -> str:
    """A value as people read it: 12,345 and 0.1235."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return str(value)


def printable(text: str) -> str:
    """Text in which what steers a terminal (escapes, line breaks inside ids) is written out: \\x1b, \\n."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _literal(text: str) -> str:
    """Text that rich shows as it is: an id may look like its markup."""
    return escape(printable(text))


def _note(record: Fields) -> str:
    """What the work says of itself; else the objective, the distortion and the held-out metric that it has."""
    if isinstance(record.get("note"), str):
        return record["note"]
    objective = [name for name in _OBJECTIVES if isinstance(record.get(name), int | float)][:1]
    others = [name for name in _BESIDE if isinstance(record.get(name), int | float)]
    return "  ".join(f"{name} {show(float(record[name]))}" for name in objective + others)


def _plain(value: object) -> object:
    """NumPy numbers and arrays, and paths, as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
