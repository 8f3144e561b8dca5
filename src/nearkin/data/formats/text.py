"""Text tables of vectors, .csv, .tsv and .txt: a row is a vector; a header and a first column of ids are allowed."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from nearkin._fields import counted
from nearkin.data.column import (
    COMMAS,
    Column,
    arrow_cells,
    by_name,
    is_number,
    number_style,
    text_column,
    whole_float,
)
from nearkin.data.coordinates import FEW, check_whole, choose_columns, text_kind
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows
from nearkin.data.formats.parquet import column_rows, listed, table_rows
from nearkin.data.header import SEEN, is_header
from nearkin.data.lists import LIST_CELL
from nearkin.data.names import names_rows
from nearkin.data.text import (
    WHOLE,
    Cut,
    has_quotes,
    look,
    named_columns,
    numbered_rows,
    pieces,
    read_cells,
    table_cells,
    width_fault,
)

_PIECE = 2**22  # bytes that are parsed at a time
_ENDS = ("]", ")", "}")  # of text of a list
_BLANK = re.compile(rb"\n[ \t]*(?=\n)")


@dataclass(frozen=True)
class _Text:
    """A text file, read a piece at a time: how its numbers are written ("" or ",", decimal commas), whether there is a
    header, and the columns' names, without an empty last one; without a header their places."""

    cut: Cut
    style: str
    header: bool
    names: list[str]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The rows' lines a piece at a time, with the number of the first."""
        cut, number = self.cut, 1
        for at, piece in enumerate(pieces(cut.where, _PIECE)):
            skipped = (cut.body if self.header else cut.start) if at == 0 else 0
            yield number + piece.count(b"\n", 0, skipped), piece[skipped:]
            number += piece.count(b"\n")

    def cells(self, names: list[str], *, text: bool = False) -> Iterator[list[pa.Array]]:
        """The columns of these names a piece at a time, as numbers or as text."""
        at = {name: place for place, name in enumerate(self.names)}
        places = [at[name] for name in names]
        for number, piece in self.lines():
            try:
                yield read_cells(self.cut, piece, places, None if text else self.style or ".")
            except pa.ArrowInvalid:
                raise ValueError(self.fault(piece, number, places)) from None

    def column(self, name: str) -> Iterator[np.ndarray]:
        """The values of a column a piece at a time, as numbers if all of a piece are."""
        return (Column(name, cells).values for (cells,) in self.cells([name], text=True))

    def fault(self, piece: bytes, number: int, places: list[int]) -> str:
        """Name the line, and the cell, that is no row of numbers."""
        where, rows = self.cut.where, list(numbered_rows(self.cut, piece, number))
        for line, cells in rows:
            if len(cells) != self.cut.width:
                return width_fault(self.cut, rows)
            for place in places:
                cell = cells[place]
                if number_style([cell]) is None and not (self.style and "," in cell):
                    what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                    return (
                        f"{where}, line {line}, column {place + 1}: {what}; give numbers (ids only in the first column)"
                    )
        return f"{where} cannot be read as rows of {counted(len(places), 'number')} after line {number}"

    def counted(self) -> "tuple[_Text, int]":
        """The text, knowing whether quotes enclose its cells, and the number of its rows."""
        n, quotes = 0, set[bool]()
        for _, piece in self.lines():
            lines = b"\n" + piece.rstrip(b"\n") + b"\n"
            n += lines.count(b"\n") - len(_BLANK.findall(lines)) - 1
            if b'"' in piece:
                quotes.add(has_quotes(piece, self.cut.delimiter, True))
        return replace(self, cut=replace(self.cut, quoted=quotes == {True})), n


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64, cut as `data.text` finds out.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. Vectors are the columns that `file.csv:f0-f2` names, else those that
    `choose_columns` finds, or lists in the cells of one; a table of lists is read whole. Without a header a first
    column of text holds the rows' ids. Numbers may have decimal commas where commas do not part cells.
    """
    head = next(pieces(where, _PIECE), b"")
    cut = look(where, head, lines_only=True)
    if (
        any(LIST_CELL.match(cell) for cells in [cut.first, *cut.below[:FEW]] for cell in cells)
        and (rows := _of_lists(where, cut)) is not None
    ):
        return rows
    if len(cut.first) != cut.width:
        raise ValueError(width_fault(cut, list(numbered_rows(cut, head[cut.start :], cut.line))))
    text, seen = _looked_at(cut)
    kinds = {name: _kind(name, cells, name == text.names[0]) for name, cells in seen.items()}
    found = choose_columns(kinds, str(where.path), where.key)
    text, n = text.counted()
    if where.key is None and len(seen[found.names[0]]) >= FEW:
        whole = [all(map(WHOLE.fullmatch, seen[name])) for name in found.names]
        check_whole(str(where), found, text.names, whole, text.column, header=text.header)
    if found.ids is not None and (cells := seen[found.ids]) and all(map(whole_float, cells)):
        found = replace(found, written=f" ({cells[0]} is read as {whole_float(cells[0])})")
    if found.ids is not None and not text.header:  # a first column without a name
        text, kinds = replace(text, names=["", *text.names[1:]]), {"": "string", **dict(list(kinds.items())[1:])}
        found = replace(found, ids="")

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        for columns in text.cells(names, text=names == [found.ids]):
            yield from ([c[start : start + rows] for c in columns] for start in range(0, len(columns[0]), rows))

    written = ", written with decimal commas" if text.style else ""
    return table_rows(str(where.path), kinds, found, n, batches, text=True, written=written, notes=cut.notes)


def _of_lists(where: Locator, seen: Cut) -> FileRows | None:
    """Rows of a table with vectors as text in its cells; None if no column holds such."""
    try:
        cut, cells = table_cells(where)
        headed = not any(map(LIST_CELL.match, cut.first)) if cut.headed is None else cut.headed
        columns = by_name(named_columns(cut.first, cells, headed, str(where.path)), str(where.path))
        columns = {name: replace(column, cells=arrow_cells(column.values)) for name, column in columns.items()}
        columns = listed(columns)
        if any(column.kind == "list" for column in columns.values()):
            return column_rows(columns, str(where.path), where.key)
        error = None
    except ValueError as found:
        error = found
    for cells in seen.below:
        torn = [cell for cell in cells if LIST_CELL.match(cell) and cell[0] != '"' and not cell.endswith(_ENDS)]
        if torn and cells[-1].endswith(_ENDS):
            raise ValueError(f"{where}: the list {torn[0]!r} ... is cut at its delimiters; write it between quotes")
    if error is not None:
        raise error
    return None


def _looked_at(cut: Cut) -> tuple[_Text, dict[str, Sequence[str]]]:
    """How numbers are written, and by column the cells of the first lines; ValueError where their commas may be decimal
    or not."""
    lines, width = [cut.first, *cut.below], cut.width
    while width > 1 and not any(cells[width - 1 : width] != [""] for cells in lines):
        width -= 1  # a delimiter at the end of every line
    rows = [cells for cells in lines if len(cells) == cut.width]
    marked = [cell for cells in rows for cell in cells[width > 1 : width] if "," in cell and COMMAS.fullmatch(cell)]
    style = number_style(marked) if marked and cut.delimiter != "," else ""
    if style not in ("", ","):
        point, whole = marked[0].replace(",", "."), marked[0].replace(",", "")
        raise ValueError(f"{cut.where} holds {marked[0]!r}, which may be {point} or {whole}; write {point} or {whole}")
    plain = [[cell.replace(",", ".") if style else cell for cell in cells[:width]] for cells in lines]
    below = list(zip(*(cells for cells in plain[1:] if len(cells) == width), strict=True)) or [()]
    body = [text_column("", list(cells)) for cells in below[:SEEN]]
    header = is_header(plain[0], body, str(cut.where), vectors=True) if cut.headed is None else cut.headed
    counts, places = Counter(cut.first[:width]), list(map(str, range(width)))
    names = [name if counts[name] == 1 else place for name, place in zip(cut.first, places, strict=False)]
    names = names if header else places
    rows = [cells for cells in plain[header:] if len(cells) == width]
    seen: list[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [[]] * width
    return _Text(cut, style, header, names), dict(zip(names, seen, strict=True))


def _kind(name: str, cells: Sequence[str], first: bool) -> str:
    """As `Column.kind`, by some cells. Cells of numbers that are none have errors of their line."""
    try:
        numbers = np.array(["" if "_" in cell else cell for cell in cells], np.float64)  # NumPy reads 1_0 as 10
    except ValueError:
        words = [cell != "" and not is_number(cell) for cell in cells]
        is_text = all(words) or (first and words[0]) or (names_rows(name) and any(words))
        return text_kind(name, cells) if is_text else "float"
    return "integer" if len(cells) and (numbers == np.floor(numbers)).all() else "float"
