"""What a table is, and how its cells are written."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.stored import read_json

RESULTS = Path(__file__).parent / "results"  # of the full pass, which README and docs quote


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
