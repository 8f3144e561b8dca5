"""Files of comparisons as columns: which hold objects, which a weight, an annotator or a response."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearkin.data.formats.parquet import import_pyarrow

ROLES = {
    "weights": ("weight", "weights", "vote", "votes", "count", "counts"),
    "annotators": ("annotator", "annotators", "worker", "subject", "user", "participant"),
    "responses": ("response", "responses", "answer", "label"),
}


@dataclass
class Table:
    """The columns of a file: `objects` are the 3 or 4 object columns; `names` is set if these are indices into it."""

    objects: list[np.ndarray] = field(default_factory=list)
    weights: np.ndarray | None = None
    annotators: np.ndarray | None = None
    responses: np.ndarray | None = None
    names: np.ndarray | None = None


def read_table(path: Path, *, header: bool | str = "auto") -> Table:
    """Read `path`, whose ending says what it is. Raises FileNotFoundError, and ValueError for what it cannot be."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is no file")
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv", ".txt"):
        return _read_text(path, header)
    if kind == ".npz":
        return _read_npz(path)
    if kind == ".parquet":
        return _read_parquet(path)
    raise ValueError(f"{path} ends in {kind!r}; comparisons are read from .csv, .tsv, .parquet and .npz")


def _read_text(path: Path, header: bool | str) -> Table:
    if header not in (True, False, "auto"):
        raise ValueError(f"header is {header!r}; it must be True, False or 'auto'")
    with path.open(newline="", encoding="utf-8-sig") as file:
        sample = file.readline()
        delimiter = "\t" if path.suffix.lower() == ".tsv" or "\t" in sample else ";" if ";" in sample else ","
        file.seek(0)
        lines = [row for row in csv.reader(file, delimiter=delimiter) if any(cell.strip() for cell in row)]
    if not lines:
        raise ValueError(f"{path} is empty; at least one comparison is needed")
    width = len(lines[0])
    for number, row in enumerate(lines):
        if len(row) != width:
            raise ValueError(f"{path} row {number} has {len(row)} cells; the first row has {width}")
    lines = [[cell.strip() for cell in row] for row in lines]
    first = lines[0] if header is True or (header == "auto" and _is_header(lines)) else None
    body = lines[1:] if first is not None else lines
    if not body:
        raise ValueError(f"{path} has a header and no rows; at least one comparison is needed")
    columns = [_typed(list(column)) for column in zip(*body, strict=True)]
    return _assign(columns, first or [""] * width, str(path))


def _is_header(lines: list[list[str]]) -> bool:
    """Whether the first line names columns: it has the name of a role, or text above a column of numbers."""
    first = [cell.lower() for cell in lines[0]]
    roles = {name for names in ROLES.values() for name in names}
    if roles & set(first) or set(first) <= {"i", "j", "k", "l", "head", "near", "far", "anchor", "winner", "loser"}:
        return True
    rest = lines[1:]
    return bool(rest) and any(
        not _is_number(cell) and all(_is_number(row[place]) for row in rest) for place, cell in enumerate(first)
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _typed(cells: list[str]) -> np.ndarray:
    """Whole numbers as int64, other numbers as float64, everything else as text."""
    for dtype in (np.int64, np.float64):
        try:
            return np.array(cells, dtype=dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(cells)


def _assign(columns: list[np.ndarray], names: list[str], source: str) -> Table:
    """Give each column its role by its name; what has none is an object column."""
    table = Table()
    for column, name in zip(columns, names, strict=True):
        role = next((role for role, known in ROLES.items() if name.strip().lower() in known), None)
        if role is None:
            if column.dtype.kind == "f" and np.isnan(column).any():
                raise ValueError(f"{source} row {int(np.isnan(column).argmax())} has no object in one column (NaN)")
            if column.dtype.kind in "US" and (column == "").any():
                raise ValueError(
                    f"{source} row {int((column == '').argmax())} has an empty cell where an object must be"
                )
            table.objects.append(column)
        else:
            setattr(table, role, column)
    if len(table.objects) not in (3, 4):
        raise ValueError(
            f"{source} has {len(table.objects)} object columns; 3 mean d(i, j) < d(i, k) and 4 mean d(i, j) < d(l, k). "
            f"Name further columns in a header: {', '.join(known[0] for known in ROLES.values())}"
        )
    kinds = {"text" if column.dtype.kind in "US" else "number" for column in table.objects}
    if len(kinds) > 1:  # an object called 7 in a column of names is the text "7"
        table.objects = [column.astype(str) for column in table.objects]
    return table


def _read_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # zipfile and NumPy raise half a dozen types for a damaged file
        raise ValueError(f"{path} cannot be read as .npz ({error})") from error
    key = next((name for name in ("triplets", "quadruplets", "comparisons", "indices") if name in arrays), None)
    if key is None:
        raise ValueError(f"{path} holds {sorted(arrays)}; it must hold 'triplets' (m, 3) or 'quadruplets' (m, 4)")
    rows = arrays[key]
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(f"{path}: {key} has shape {rows.shape}; it must be (m, 3) or (m, 4)")
    return Table(
        objects=list(rows.T),
        weights=arrays.get("weights"),
        annotators=arrays.get("annotators"),
        responses=arrays.get("responses"),
        names=arrays.get("objects"),
    )


def _read_parquet(path: Path) -> Table:
    _, parquet = import_pyarrow()
    table = parquet.read_table(path)
    columns = [column.to_numpy() for column in table.columns]
    columns = [column.astype(str) if column.dtype.kind == "O" else column for column in columns]
    return _assign(columns, list(table.column_names), str(path))
