"""What a table is, and how its cells are written."""

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.stored import read_json

RESULTS = Path(__file__).parent / "results"  # of the full pass, which README and docs quote

Groups = dict[tuple[Any, ...], list[dict[str, Any]]]  # what rows agree in: the rows, one a seed


@dataclass
class Table:
    """Rows of text, ready to be set as HTML or Markdown; `source` names the JSON."""

    name: str
    title: str
    columns: list[str]
    source: str
    note: str = ""
    listed: bool = False  # on a page: a line a row, for long cells
    rows: list[list[str]] = field(default_factory=list)


class Results:
    """The JSON of one folder; what was not run, or not to its end, is None."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> Any:
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        content = read_json(file)
        if not isinstance(content, dict) or "results" not in content:
            return content
        return None if content.get("settings", {}).get("unfinished") else content["results"]


def plain(
    rows: list[dict[str, Any]] | None, name: str, title: str, columns: str, line: Callable[[dict[str, Any]], list[str]],
    source: str = "", note: str = "",
) -> Iterator[Table]:  # fmt: skip
    """A line a row, where there are rows; `columns` stand between bars."""
    if rows:
        yield Table(
            name, title, columns.split(" | "), source or name.replace("-", "_"), note, rows=list(map(line, rows))
        )


def number(value: Any, digits: int = 3) -> str:
    """Three figures, and a dash for what was not reached or not measured."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):g}"


def ratio(peer: float | None, ours: float | None) -> str:
    """How many times faster than the peer we are."""
    return "-" if not peer or not ours or not math.isfinite(peer) or not math.isfinite(ours) else f"{peer / ours:.3g}x"


def grouped(rows: list[dict[str, Any]], *keys: str) -> Groups:
    """Rows by what they agree in, in the order of the first."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def mean(rows: list[dict[str, Any]], measure: str, digits: int = 1, *, spread: bool = False) -> str:
    """The mean over seeds, with the standard deviation; a dash for what was not measured."""
    values = [row[measure] for row in rows if row.get(measure) is not None]
    more = f" ± {statistics.pstdev(values):.{digits}f}" if spread and len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{more}" if values else "-"
