"""Lists in the cells of a column: of numbers, or of ids."""

import ast
import re
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa

from nearkin._json import parsed_json
from nearkin.data.column import Column, integers, is_number

_ARRAY = re.compile(r"(?:array|tensor)\((.*[\])}])[^\[\](){}]*\)", re.DOTALL)  # as NumPy and torch print them
_SCALAR = re.compile(r"\bnp\.\w+\(([^()]*)\)")  # as NumPy 2 prints the entries of a list
_REAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+|nan)(?:[eE][+-]?\d+)?"
_MARKED = r"(?:\s*[,;|]\s*|\s+)"
_NUMBERS = re.compile(rf"\s*{_REAL}(?:{_MARKED}{_REAL}){{2,}}\s*", re.ASCII)  # three or more in a cell
LIST_CELL = re.compile(rf'"?(?:\s*((array|tensor)\()?[\[({{]\s*(?:[-+.\d]|nan|np\.)|{_NUMBERS.pattern}"?$)', re.ASCII)
"""How text of a list of numbers begins."""
_FEW = 100  # cells that show whether a column may hold lists
_ID_MARKS = "|;, "  # what parts ids in a cell
_DIGITS = re.compile(r"\d+")
_CODE = re.compile(r"[^\s,;|\d]*\d[^\s,;|]*")


def list_cells(column: Column, *, ids: bool = False) -> list[list[object]] | None:
    """The lists in the cells of a column, or None if it holds something else.

    Lists are those of a typed column and text such as "[1, 2]", "{1,2}", "[a, b]" and NumPy's "[0.1 0.2]". Of `ids`,
    also text without brackets, as `_parts` finds it; else three numbers or more in every cell. ValueError for
    "[0.1 ... 0.2]", whose numbers are lost.
    """
    if not column.is_text:
        return column.values.tolist() if column.kind == "list" else None
    few = [cell for cell in column.take(slice(_FEW)).values.tolist() if cell]
    if not few or not (few[0][0] in "[({at" or (_parts(few) if ids else all(map(_NUMBERS.fullmatch, few)))):
        return None
    cells = [cell.strip() for cell in column.values.tolist()]
    cells = [found[1] if (found := _ARRAY.fullmatch(cell)) else cell for cell in cells]
    known = [cell for cell in cells if cell]
    if known and all(cell[0] + cell[-1] in ("[]", "()", "{}") for cell in known):
        if cut := next((cell for cell in known if "..." in cell), None):
            raise ValueError(
                f"column {column.name!r} of {column.source}: row {cells.index(cut)} holds {cut[:40]!r}, which lacks "
                'the numbers at "..."; write whole lists, for example as .parquet or .jsonl'
            )
        found = [_listed(_SCALAR.sub(r"\1", cell)) if cell else [] for cell in cells]
        if None in found and 2 * sum("," in cell for cell in known) > len(known):
            found = [[*filter(None, map(str.strip, cell[1:-1].split(",")))] for cell in cells]
        return None if None in found else cast("list[list[object]]", found)
    if not ids:
        if not all(map(_NUMBERS.fullmatch, known)) or column.maybe_numbers is not None:
            return None
        kind = float if any(letter in cell for cell in known for letter in ".nN") else int
        return [[*map(kind, re.split(_MARKED, cell))] if cell else [] for cell in cells]
    found = _parts(cells)
    return None if found is None else cast("list[list[object]]", found)


def _parts(cells: list[str]) -> list[list[str]] | None:
    """The ids between bars, semicolons, commas or blanks in most cells, or None where a cell may be one id.

    Ids have parts, too, but always as many, of different kinds. So a list is where cells differ in the number of
    parts, or parts at one place also stand at others or all have one form; parts between commas or blanks must have
    digits, or words between commas recur in other cells.
    """
    for mark in _ID_MARKS:
        lists = [[part.strip() for part in cell.split(mark) if part.strip()] for cell in cells]
        known = [parts for parts in lists if parts]
        counts, many = {len(parts) for parts in known}, sum(len(parts) > 1 for parts in known)
        digits = mark == " " and all(part.isdecimal() for parts in known for part in parts)
        if not many or (2 * many <= len(known) and not (digits and len(counts) > 1)):
            continue
        entries = [part for parts in known for part in parts]
        codes, recur = all(map(_CODE.fullmatch, entries)), 2 * len(set(entries)) <= len(entries)
        if counts == {2} or (len(counts) == 1 and len(set(cells)) > 1):
            sides = [set(side) for side in zip(*known, strict=True)]
            elsewhere = 2 * (sum(map(len, sides)) - len(set(entries)))  # twice the parts that stand at two places
            if counts == {2}:
                fits = codes and elsewhere >= min(map(len, sides))
            else:
                alike = len({_DIGITS.sub("0", entry) for entry in entries}) == 1
                fits = (codes and alike) or ((codes or (mark != " " and recur)) and elsewhere >= len(set(entries)))
        else:
            fits = codes or (mark != " " and recur) or (mark in "|;" and len(counts) > 1)
        if fits:
            return lists
    return None


def _listed(cell: str) -> list[Any] | None:
    """The entries of a list as JSON, Python or NumPy writes it, or None."""
    inner = cell[1:-1].strip().removesuffix(",")
    with suppress(ValueError):
        return parsed_json(f"[{inner}]".replace("nan", "NaN"))
    if all(map(is_number, words := inner.split())):
        numbers = integers(pa.array(words, pa.string()))
        return list(map(float, words)) if numbers is None else numbers.tolist()
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return list(ast.literal_eval(f"({inner},)"))
    return None
