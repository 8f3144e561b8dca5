"""What a command shows: progress on stderr while it works, then a table, or one JSON record, on stdout."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from nearkin._distributed import current

_OBJECTIVES = ("objective", "loss", "value", "error")  # the first one in a record is shown beside the bar,
_BESIDE = ("distortion", "metric")  # and these
_NUMBER = set("0123456789.,+-×%")  # cells of these characters alone are set right


class Screen:
    """Console of one command; with `as_json` stdout carries the record alone."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self._quiet = current().rank > 0  # of several processes the first one speaks
        self._out = Console(file=sys.stdout, quiet=self._quiet)
        self._err = Console(file=sys.stderr, quiet=self._quiet)

    @contextmanager
    def watch(self, title: str) -> Iterator[Callable[[int, Mapping[str, Any]], None]]:
        """Show a bar with the time left while the block runs; yields callback(steps done, record with "total")."""
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
        hidden = self._quiet or not self._err.is_terminal
        with Progress(*columns, console=self._err, transient=True, disable=hidden) as bars:
            task = bars.add_task(title, total=None, note="")

            def callback(step: int, record: Mapping[str, Any]) -> None:
                bars.update(task, completed=step, total=record.get("total"), note=_note(record))

            yield callback

    def say(self, text: str) -> None:
        """A line for people, on stderr."""
        self._err.print(printable(text), highlight=False, soft_wrap=True, markup=False)

    def finish(self, record: Mapping[str, Any], *tables: Table | str) -> None:
        """Print the record as JSON, or the tables (and lines) for people."""
        if self.as_json and not self._quiet:
            sys.stdout.write(json.dumps(record, default=_plain, allow_nan=False) + "\n")
        if self.as_json:
            return
        for part in filter(None, tables):
            is_text = isinstance(part, str)  # the cells of a table are escaped where they are made
            self._out.print(printable(part) if is_text else part, highlight=False, markup=not is_text)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
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
        text = any(isinstance(row[j], str) and not set(row[j]) <= _NUMBER for row in rows)
        made.add_column(_literal(column), justify="left" if text else "right", no_wrap=True)
    for i, row in enumerate(rows):
        repeated = i > 0 and rows[i - 1][0] == row[0]
        if i and not repeated and len(rows) > len({row[0] for row in rows}):
            made.add_section()
        cells = ["" if repeated else show(row[0]), *map(show, row[1:])]
        made.add_row(*map(_literal, cells))
    return made


def pairs(title: str, values: Mapping[str, Any]) -> Table:
    """A two-column table of names and values."""
    made = Table(title=_literal(title), title_justify="left", title_style="bold", show_header=False, box=box.SIMPLE)
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


def _note(record: Mapping[str, Any]) -> str:
    """The objective, and where it has them the distortion and the held-out metric."""
    objective = [name for name in _OBJECTIVES if isinstance(record.get(name), int | float)][:1]
    others = [name for name in _BESIDE if isinstance(record.get(name), int | float)]
    return "  ".join(f"{name} {show(float(record[name]))}" for name in objective + others)


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays, and paths, as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
