"""Text tables of vectors, .csv, .tsv and .txt: a row is a vector; a header and a first column of ids are allowed."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from nearkin._fields import counted
from nearkin.data.column import COMMAS, LIST_CELL, Column, arrow_cells, by_name, is_number, number_style
from nearkin.data.coordinates import choose_columns, column_runs, rival_ids, text_kind, understood
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, check_layout, streamed_rows
from nearkin.data.formats.parquet import column_rows, listed
from nearkin.data.header import may_be_ids, names_vectors
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
_FEW = 10  # rows that may be too few to tell ids from numbers
_ENDS = ("]", ")", "}")  # of text of a list
_FLOAT = re.compile(r"\d+\.0*")
_BLANK = re.compile(rb"\n[ \t]*(?=\n)")


@dataclass(frozen=True)
class _Layout:
    """How numbers are written ("" or ",", decimal commas), whether there is a header, and what the columns hold."""

    cut: Cut
    style: str
    header: bool
    names: list[str]  # of the columns, without an empty last one; without a header their places
    places: list[int]  # of the coordinates
    ids: int | None  # the place of the ids
    rivals: list[str]  # columns that may hold them

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The rows' lines a piece at a time, with the number of the first."""
        cut, number = self.cut, 1
        for at, piece in enumerate(pieces(cut.where, _PIECE)):
            skipped = (cut.body if self.header else cut.start) if at == 0 else 0
            yield number + piece.count(b"\n", 0, skipped), piece[skipped:]
            number += piece.count(b"\n")

    def numbers(self, piece: bytes, number: int) -> np.ndarray:
        """(rows, d) the numbers of a piece that begins in line `number`."""
        try:
            return np.stack([c.to_numpy() for c in read_cells(self.cut, piece, self.places, self.style or ".")], axis=1)
        except pa.ArrowInvalid:
            raise ValueError(self.fault(piece, number)) from None

    def fault(self, piece: bytes, number: int) -> str:
        """Name the line, and the cell, that is no row of numbers."""
        where, rows = self.cut.where, list(numbered_rows(self.cut, piece, number))
        for line, cells in rows:
            if len(cells) != self.cut.width:
                return width_fault(self.cut, rows)
            for place in self.places:
                cell = cells[place]
                if number_style([cell]) is None and not (self.style and "," in cell):
                    what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                    return (
                        f"{where}, line {line}, column {place + 1}: {what}; give numbers (ids only in the first column)"
                    )
        return f"{where} cannot be read as rows of {counted(len(self.places), 'number')} after line {number}"

    def column(self, place: int) -> Column:
        """The cells of all rows in one column."""
        found = list[pa.Array]()
        for number, piece in self.lines():
            try:
                found += read_cells(self.cut, piece, [place])
            except pa.ArrowInvalid:
                raise ValueError(self.fault(piece, number)) from None
        return Column(self.names[place], pa.concat_arrays(found), str(self.cut.where.path))

    def row_ids(self) -> np.ndarray:
        """What the rows are called; "7.0", as pandas writes 7 where others are missing, is the number 7."""
        if self.ids is None:
            raise rival_ids(str(self.cut.where.path), self.rivals)
        column = self.column(self.ids).unrounded()
        whole = column.is_text and all(map(_FLOAT.fullmatch, column.distinct.tolist()))
        return replace(column, cells=column.numbers()).ids() if whole else column.values


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64, cut as `data.text` finds out.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. Vectors are the columns that `file.csv:f0-f2` names, else those that
    `choose_columns` finds, or lists in the cells of one; a table of lists is read whole. Without a header a first
    column of text holds the rows' ids. Numbers may have decimal commas where commas do not part cells. ValueError names
    the line and cell that is no number, or the line of another width, and names what to type if the first column may be
    ids or not.
    """
    head = next(pieces(where, _PIECE), b"")
    cut = look(where, head, lines_only=True)
    if (
        any(LIST_CELL.match(cell) for cells in [cut.first, *cut.below[:_FEW]] for cell in cells)
        and (rows := _of_lists(where, cut)) is not None
    ):
        return rows
    if len(cut.first) != cut.width:
        raise ValueError(width_fault(cut, list(numbered_rows(cut, head[cut.start :], cut.line))))
    layout, n, quotes = _layout(cut), 0, set[bool]()
    for _, piece in layout.lines():
        lines = b"\n" + piece.rstrip(b"\n") + b"\n"
        n += lines.count(b"\n") - len(_BLANK.findall(lines)) - 1
        if b'"' in piece:
            quotes.add(has_quotes(piece, layout.cut.delimiter, True))
    layout = replace(layout, cut=replace(layout.cut, quoted=quotes == {True}))
    shape = check_layout(str(where), (n, len(layout.places)), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        held = np.empty((0, shape[1]))
        for number, piece in layout.lines():
            held = np.concatenate([held, layout.numbers(piece, number)])
            stop = len(held) - len(held) % rows
            yield from (held[start : start + rows] for start in range(0, stop, rows))
            held = held[stop:]
        if len(held):
            yield held

    if len(layout.places) >= 3 and where.key is None:
        if layout.ids is None and layout.places[0] == 0:
            _check_first(where, layout)
        if not layout.header:
            _check_labels(where, layout)
    written = ", written with decimal commas" if layout.style else ""
    names, chosen = layout.names, [layout.names[place] for place in layout.places]
    named = None if layout.ids is None else names[layout.ids] if layout.header else ""
    table = [named, *names[1:]] if named == "" else names
    about = understood(str(where.path), shape, table, chosen, named, written=written, notes=layout.cut.notes)
    rows = streamed_rows(shape, np.dtype(np.float64), blocks)
    return replace(rows, about=about, ids=layout.row_ids if layout.rivals or named is not None else None)


def _of_lists(where: Locator, seen: Cut) -> FileRows | None:
    """Rows of a table with vectors as text in its cells; None if no column holds such."""
    try:
        cut, cells = table_cells(where)
        headed = where.text.header if cut.named is None else cut.named
        headed = not any(map(LIST_CELL.match, cut.first)) if headed is None else headed
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


def _layout(cut: Cut) -> _Layout:
    """Read off the first lines how numbers are written; ValueError where two readings of their commas are possible."""
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
    header = names_vectors(replace(cut, first=plain[0], below=plain[1:], width=width))
    rows = [cells for cells in plain[header:] if len(cells) == width]
    places = [str(place) for place in range(width)]
    counts = Counter(cut.first[:width])
    names = [name if counts[name] == 1 else place for name, place in zip(cut.first, places, strict=False)]
    names = names if header else places
    seen = zip(*rows, strict=True) if rows else [[] for _ in names]
    kinds = {name: _kind(name, cells, name == names[0]) for name, cells in zip(names, seen, strict=True)}
    chosen, ids, rivals = choose_columns(kinds, str(cut.where.path), cut.where.key)
    numbers = dict(zip(names, range(width), strict=True))
    found = [numbers[name] for name in chosen]
    return _Layout(cut, style, header, names, found, None if ids is None else numbers[ids], rivals)


def _kind(name: str, cells: Sequence[str], first: bool) -> str:
    """As `Column.kind`, by some cells. Cells of numbers that are none have errors of their line."""
    try:
        numbers = np.array(["" if "_" in cell else cell for cell in cells], np.float64)  # NumPy reads 1_0 as 10
    except ValueError:
        words = [cell != "" and not is_number(cell) for cell in cells]
        is_text = all(words) or (first and words[0]) or (names_rows(name) and any(words))
        return text_kind(name, cells) if is_text else "float"
    return "integer" if len(cells) and (numbers == np.floor(numbers)).all() else "float"


def _check_first(where: Locator, layout: _Layout) -> None:
    """ValueError where the first column may hold ids without a name."""
    lines = [*([] if layout.header else [layout.cut.first]), *layout.cut.below]
    rows = [[cells[place] for place in layout.places] for cells in lines if len(cells) == layout.cut.width]
    if len(rows) < _FEW:
        return
    if not may_be_ids(rows):
        return
    first = layout.column(0)
    if first.values.dtype.kind in "iu" and first.values.min() >= 0 and len(first.distinct) == len(first):
        name = layout.cut.first[0]
        how = f"call column {name!r}" if layout.header else "begin the file with a line of names and call it"
        kept = column_runs([layout.names[place] for place in layout.places], layout.names)
        raise ValueError(
            f"{where}: the first column is another whole number in every row: ids, or a coordinate? If they are ids, "
            f"{how} id; if not, type {where}:{kept}"
        )


def _check_labels(where: Locator, layout: _Layout) -> None:
    """ValueError where the first or the last column may hold labels: a few whole numbers, and fractions elsewhere."""
    rows = [cells for cells in [layout.cut.first, *layout.cut.below] if len(cells) == layout.cut.width]
    whole = [all(WHOLE.fullmatch(cells[place]) for cells in rows) for place in layout.places]
    if len(rows) < _FEW or sum(whole) != 1 or not (whole[0] or whole[-1]):
        return
    place = whole.index(True)
    column = layout.column(layout.places[place])
    if column.values.dtype.kind in "iu" and 2 * len(column.distinct) <= len(column):
        names = [layout.names[at] for at in layout.places]
        rest = column_runs(names[1:] if place == 0 else names[:-1], layout.names)
        raise ValueError(
            f"{where}: the {'last' if place else 'first'} column of numbers is whole, the others have fractions: "
            f"labels, or a coordinate? If labels, type {where}:{rest} to leave them out; otherwise type "
            f"{where}:{column_runs(names, layout.names)}"
        )
