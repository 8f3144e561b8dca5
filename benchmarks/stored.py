"""Results as JSON files: numbers of six figures; a list of like records is one list of names and rows of values."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

_DIGITS = 6
_TABLE = ["columns", "rows"]


def write_json(path: Path, content: Any) -> None:
    """Write a file whole or not at all; what `read_json` gives back differs by rounding alone."""
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_text(_text(_packed(content)) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def read_json(path: Path) -> Any:
    """The content of a file of results."""
    return _unpacked(json.loads(path.read_text(encoding="utf-8")))


def _text(value: Any) -> str:
    """JSON with a line for each entry and row, so that changes of single rows merge."""
    dump = partial(json.dumps, separators=(",", ":"))
    if isinstance(value, dict) and list(value) == _TABLE:
        rows = ",\n".join(map(dump, value["rows"]))
        return f'{{"columns":{dump(value["columns"])},"rows":[\n{rows}\n]}}'
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{dump(key)}:{_text(held)}" for key, held in value.items()) + "}"
    return dump(value)


def _packed(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _packed(held) for key, held in value.items()}
    if not isinstance(value, list | tuple):
        return value
    names = list(value[0]) if value and isinstance(value[0], dict) else []
    if len(value) > 1 and names and all(isinstance(row, dict) and list(row) == names for row in value):
        return dict(zip(_TABLE, (names, [[_packed(row[name]) for name in names] for row in value]), strict=True))
    return [_packed(held) for held in value]


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(held) for held in value]
    if not isinstance(value, dict):
        return value
    if list(value) == _TABLE:
        return [dict(zip(value["columns"], map(_unpacked, row), strict=True)) for row in value["rows"]]
    return {key: _unpacked(held) for key, held in value.items()}
