"""Text tables of vectors, .csv, .tsv and .txt: a row is a vector; a header and a first column of ids are allowed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from nearkin._fields import counted
from nearkin.data.column import COMMAS, as_text, number_style, text_column
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, check_layout, streamed_rows
from nearkin.data.header import has_ids, may_be_ids, names_vectors
from nearkin.data.names import understood
from nearkin.data.text import WHOLE, Cut, has_quotes, look, numbered_rows, parted, pieces, width_fault

_PIECE = 2**22  # bytes that are parsed at a time
_FEW = 10  # rows that may be too few to tell ids from numbers
_BLANK = re.compile(rb"\n[ \t]*(?=\n)")


@dataclass(frozen=True)
class _Layout:
    """How numbers are written ("" or ",", decimal commas), whether there are a header and ids."""

    cut: Cut
    style: str
    header: bool
    ids: bool
    width: int  # cells of a line, without an empty last one

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The rows' lines a piece at a time, with the number of the first."""
        cut, number = self.cut, 1
        for at, piece in enumerate(pieces(cut.where, _PIECE)):
            skipped = (cut.body if self.header else cut.start) if at == 0 else 0
            yield number + piece.count(b"\n", 0, skipped), piece[skipped:]
            number += piece.count(b"\n")

    def parted(self, piece: bytes) -> tuple[bytes, bytes]:
        """A piece between two line ends, with one byte between cells, without blank lines; and that byte."""
        data, mark = parted(piece, self.cut.delimiter, self.cut.quoted)
        return _BLANK.sub(b"", b"\n" + data.rstrip(b"\n") + b"\n"), mark.encode()

    def first_cell(self, mark: bytes) -> bytes:
        """The pattern of the first cell of a line, from the end of the line before."""
        letters = rb"[^" + re.escape(mark) + rb"\n]*"
        quoted = rb'[ \t]*"((?:[^"\n]|"")*)"[ \t]*(?=' + re.escape(mark) + rb"|\n)" if self.cut.quoted else rb"(?!)()"
        return rb"\n(?:" + quoted + rb"|(" + letters + rb"))"

    def numbers(self, piece: bytes, number: int) -> np.ndarray:
        """(rows, d) the numbers of a piece that begins in line `number`."""
        data, mark = self.parted(piece)
        if self.ids:
            data = re.sub(self.first_cell(mark) + re.escape(mark), b"\n", data)
        if self.cut.quoted:
            data = data.replace(b'"', b"")
        if self.width < self.cut.width:
            data = data.replace(mark + b"\n", b"\n")
        data = data[1:]
        if data.strip() and not (self.style and b"." in data):
            data = data.replace(b",", b".") if self.style else data
            letters = np.frombuffer(data, np.uint8)
            edges = letters[np.flatnonzero((letters == mark[0]) | (letters == 10))]
            d = self.width - self.ids
            if len(edges) % d == 0 and (edges.reshape(-1, d) == [mark[0]] * (d - 1) + [10]).all():
                try:
                    return _parsed(data.replace(mark, b"\n")).reshape(-1, d)
                except pa.ArrowInvalid:
                    pass
        if data.strip():
            raise ValueError(self.fault(piece, number))
        return np.empty((0, self.width - self.ids))

    def fault(self, piece: bytes, number: int) -> str:
        """Name the line, and the cell, that is no row of numbers."""
        where, rows = self.cut.where, list(numbered_rows(self.cut, piece, number))
        for line, cells in rows:
            if len(cells) not in (self.cut.width, self.width):
                return width_fault(self.cut, rows)
            for column, cell in enumerate(cells[: self.width], 1):
                if column > self.ids and number_style([cell]) is None and not (self.style and "," in cell):
                    what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                    return f"{where}, line {line}, column {column}: {what}; give numbers (ids only in the first column)"
        return f"{where} cannot be read as rows of {counted(self.width, 'number')} after line {number}"

    def names(self) -> list[str]:
        """The first cells of all rows."""
        found = list[str]()
        for _, piece in self.lines():
            data, mark = self.parted(piece)
            if data.strip():
                cells = re.findall(self.first_cell(mark), data.removesuffix(b"\n"))
                found += [(a.replace(b'""', b'"') or b).decode().strip(" \t") for a, b in cells]
        return found


def _parsed(lines: bytes) -> np.ndarray:
    read = arrow.ReadOptions(column_names=["0"], block_size=2**20)
    parse = arrow.ParseOptions(quote_char=False, ignore_empty_lines=False, delimiter="\x1f")
    convert = arrow.ConvertOptions(check_utf8=False, column_types={"0": pa.float64()}, null_values=[])
    return arrow.read_csv(pa.py_buffer(lines), read, parse, convert).column(0).to_numpy()


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64, cut as `data.text` finds out.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. A first column of text, or of whole numbers under a name such as id, holds
    the rows' ids. Numbers may have decimal commas where commas do not part cells. ValueError names the line and cell
    that is no number, or the line of another width, and names what to type if the first column may be ids or not.
    """
    head = next(pieces(where, _PIECE), b"")
    cut = look(where, head, lines_only=True)
    if len(cut.first) != cut.width:
        raise ValueError(width_fault(cut, list(numbered_rows(cut, head[cut.start :], cut.line))))
    layout, n, quotes = _layout(cut), 0, set[bool]()
    for _, piece in layout.lines():
        lines = b"\n" + piece.rstrip(b"\n") + b"\n"
        n += lines.count(b"\n") - len(_BLANK.findall(lines)) - 1
        if b'"' in piece:
            quotes.add(has_quotes(piece, layout.cut.delimiter, True))
    layout = replace(layout, cut=replace(layout.cut, quoted=quotes == {True}))
    shape = check_layout(str(where), (n, layout.width - layout.ids), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        held = np.empty((0, shape[1]))
        for number, piece in layout.lines():
            held = np.concatenate([held, layout.numbers(piece, number)])
            stop = len(held) - len(held) % rows
            yield from (held[start : start + rows] for start in range(0, stop, rows))
            held = held[stop:]
        if len(held):
            yield held

    def ids() -> np.ndarray:
        names = layout.names()
        return text_column("", names).values if all(names) else as_text(names)

    if not layout.ids and layout.width >= 3:
        _check_first(where, layout)
    notes = ", written with decimal commas" if layout.style else ""
    named = (layout.cut.first[0] if layout.header else "") if layout.ids else None
    about = understood(str(where), *shape, named, list(layout.cut.notes), notes)
    rows = streamed_rows(shape, np.dtype(np.float64), blocks)
    return replace(rows, about=about, ids=ids if layout.ids else None)


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
    seen = replace(cut, first=plain[0], below=plain[1:], width=width)
    header = names_vectors(seen)
    return _Layout(cut, style, header, has_ids(seen, header), width)


def _check_first(where: Locator, layout: _Layout) -> None:
    """ValueError where the first column may hold ids without a name."""
    lines = [*([] if layout.header else [layout.cut.first]), *layout.cut.below]
    rows = [cells for cells in lines if len(cells) == layout.cut.width]
    if len(rows) < _FEW or not may_be_ids([cells[: layout.width] for cells in rows]):
        return
    first = layout.names()
    if len(set(first)) == len(first) and all(map(WHOLE.fullmatch, first)):
        name = layout.cut.first[0]
        how = f"call column {name!r}" if layout.header else "begin the file with a line of names and call it"
        raise ValueError(
            f"{where}: the first column is another whole number in every row: ids, or a coordinate? If they are ids, "
            f"{how} id; for a coordinate, write 7.0 in place of 7"
        )
