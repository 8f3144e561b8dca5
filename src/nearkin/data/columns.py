"""Files that accompany vectors: neighbour lists (ground truth), relevance judgements, labels, ids, and features."""

import re
from itertools import chain
from os import PathLike
from typing import Unpack, cast

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_finite, check_labels, check_lengths
from nearkin._fields import FileOrFrame, Record, StrPath, counted
from nearkin._pairs import Features, check_exact
from nearkin.data.column import Column, as_64_bits, as_text, is_number, text_column
from nearkin.data.files import FRAMES, TEXT, Locator, TextWords, brief, locate, reading, unknown_ending
from nearkin.data.formats import open_rows
from nearkin.data.formats.binary import read_array
from nearkin.data.formats.parquet import open_file
from nearkin.data.lists import list_cells
from nearkin.data.names import normal
from nearkin.data.tables import Table, file_table, read_table
from nearkin.data.text import look, pieces
from nearkin.records import Judgements

_HITS = ("query", "rank", "id")


@brief()
def read_neighbors(path: StrPath, **text: Unpack[TextWords]) -> np.ndarray:
    """Read neighbour lists, nearest first, (n, k) int64 or strings: .npy, .npz, .ivecs, .csv, .tsv, .parquet.

    Numbers must be whole; ValueError otherwise, as for a list that is not 2-D. -1 means "no neighbour". A table
    with the columns query, rank and id, as `nearkin search --out` writes it, becomes a row a query, in its order.
    `text` is as in `nearkin.data.open_vectors`.
    """
    where = locate(path).reading(**text)
    if where.suffix in (*TEXT, ".parquet") and where.key is None and (hits := _read_hits(where)) is not None:
        return hits
    if where.suffix in (".npy", ".npz"):
        with reading(where):
            array = read_array(where)
        if array.ndim != 2:
            raise ValueError(f"{where} has shape {array.shape}; neighbours must be 2-D (n, k), one row a query")
    else:
        rows = open_rows(where)
        if not rows.shape[0]:
            raise ValueError(f"{where} has shape {rows.shape}; it needs at least one row")
        array = np.concatenate(list(rows.blocks(65536, 0, rows.shape[0])))
    return _whole_or_text(array, where)


def _read_hits(where: Locator) -> np.ndarray | None:
    """The ids (n, k) of a table of hits, what is missing as -1 or ""; None for another table."""
    with reading(where):
        if where.suffix == ".parquet":
            with open_file(where.path) as file:
                names = set(file.schema_arrow.names)
        else:
            names = set(look(where, next(pieces(where, 2**20), b"")).first)
    if not set(_HITS) <= names:
        return None
    columns = file_table(where if where.suffix == ".parquet" else where.reading(header=True)).columns
    queries, rank, ids = (columns[name].as_ids().values for name in _HITS)
    row = np.cumsum(np.r_[False, queries[1:] != queries[:-1]])
    if row[-1] + 1 != len(np.unique(queries)) or rank.dtype.kind not in "iu" or rank.min() < 1:
        raise ValueError(f"{where} has the columns of hits, but not query after query, each ranked from 1")
    found = np.full((row[-1] + 1, int(rank.max())), "" if ids.dtype.kind in "UO" else -1, ids.dtype)
    found[row, rank - 1] = ids
    return found


_QRELS = (  # query, row and grade: the names of columns that mean it, as `normal` leaves them
    {"query", "q", "topic"},
    {"corpus", "doc", "document", "docno", "passage", "p", "item", "product", "row"},
    {"relevance", "rel", "grade", "score", "qrel", "label", "rating", "judgement", "judgment"},
)


@brief()
def read_judgements(source: FileOrFrame, **text: Unpack[TextWords]) -> Judgements:
    """Read graded relevance: TREC's qrels (query, 0, row, grade), BEIR's, or any table of query, row and grade.

    `source` is what `read_table` takes. Columns go by their usual names (query-id, corpus-id, score), else by position.
    A header is a first line whose last cell is no number. Rows of grade 0 and below, which TREC has too, are not
    relevant. `text` is as in `nearkin.data.open_vectors`. ValueError for other columns, grades that are no finite
    numbers, and a pair that has two grades.
    """
    options, where = Record(text), locate(source).reading(**text) if isinstance(source, str | PathLike) else None
    if where is not None and where.suffix in TEXT:
        options["header"] = bool(where.text.header)
    table = read_table(source, **options)
    unsaid = table.header is False and where is not None and where.text.header is None
    if unsaid and not is_number(str(list(table.columns.values())[-1].cell(0))):
        table = table.headed()
    *names, graded = _qrels(table)
    grades = graded.numbers().astype(np.float64)
    if not (finite := np.isfinite(grades)).all():
        row = int(finite.argmin())
        raise ValueError(f"{table.name} has the grade {grades[row]} in row {row}; grades must be finite numbers")
    queries, rows = (column.as_ids().ids().astype(str).tolist() for column in names)
    judged: dict[tuple[str, str], float] = {}
    for query, row, grade in zip(queries, rows, grades.tolist(), strict=True):
        if judged.setdefault((query, row), grade) != grade:
            raise ValueError(f"{table.name} has two grades of {row!r} for {query!r}; leave one of them")
    pairs = np.array(list(judged), dtype=object)
    return Judgements(pairs[:, 0], pairs[:, 1], np.array(list(judged.values())))


def _qrels(table: Table) -> list[Column]:
    """The columns of query, row and grade: by usual names if each role has one column, else by position."""
    columns = list(table.columns.values())
    usual = [[column for column in columns if normal(column.name) in names] for names in _QRELS]
    if all(len(found) == 1 for found in usual):
        return [column for (column,) in usual]
    if len(columns) not in (3, 4):
        raise ValueError(
            f"{table.name} has {counted(len(columns), 'column')} ({', '.join(list(table.columns)[:6])}); qrels have "
            "three (query, row, grade), TREC's four (query, 0, row, grade), or the names query-id, corpus-id and score"
        )
    return [columns[0], *columns[-2:]]


@brief()
def read_column(
    path: StrPath, n: int | None = None, *, several: bool = False, long: bool = False, **text: Unpack[TextWords]
) -> np.ndarray:
    """Read one value a row, (n,) int64 or strings: labels or ids from .npy, .npz or a table.

    A table of several columns needs the name of one: `file.csv:column`. Where `n` values are
    wanted and a text file has one more, its first line is the column's name. Raises ValueError for several columns of
    which none is named, for numbers that are not whole, and for text of more than 1,000 characters. `several`: columns
    (n, c) of 0 and 1 are read too, as the labels of each row. `long`: text has any length, in an array of
    objects. `text` is as in `nearkin.data.open_vectors`.
    """
    where = locate(path).reading(**text)
    arrays, frames = (".npy", ".npz"), (".parquet", *FRAMES)
    if where.suffix not in (*arrays, *frames, *TEXT):
        raise unknown_ending(where, (*arrays, *frames, *TEXT))
    with reading(where):
        array = read_array(where) if where.suffix in arrays else _read_table_column(where, several)
    if where.suffix in TEXT and where.key is None and n is not None and len(array) == n + 1:
        array = text_column("", list(map(str, array[1:].tolist()))).values  # without the name, they may be numbers
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if several and array.ndim == 2:
        return check_labels(array, str(where), len(array))
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{where} has shape {array.shape}; it must be (n,), one value a row")
    if long and array.dtype.kind in "OU":
        return as_text(list(map(str, array.tolist())))
    found = _whole_or_text(array, where)
    if several and found.dtype.kind == "U" and any(mark in cell for cell in found.tolist() for mark in ";|"):
        return _sets(found.tolist())
    return found


def _sets(cells: list[str]) -> np.ndarray:
    """(n,) sets of the labels in each cell, separated by ; or |; an empty part is none."""
    parts = [[part for name in re.split("[;|]", cell) if (part := name.strip())] for cell in cells]
    names = iter(text_column("", [*chain.from_iterable(parts)]).values.tolist())
    sets = np.empty(len(cells), object)
    sets[:] = [{next(names) for _ in part} for part in parts]
    return sets


def _read_table_column(where: Locator, several: bool) -> np.ndarray:
    """The column that the locator names, or the only one, or `several` of 0 and 1; of .txt the lines, uncut."""
    if where.suffix == ".txt" and where.key is None:
        lines = list(filter(None, map(str.strip, b"".join(pieces(where)).decode().split("\n"))))
        values = text_column("", lines).values
        return text_column("", lines[1:]).values if lines and lines[0].startswith("# ") else values
    given, is_text = where, where.suffix in TEXT
    if is_text:
        mark = where.text.delimiter or (None if where.suffix == ".csv" or where.key is not None else "\t")
        where = where.reading(header=where.key is not None, delimiter=mark)
    columns = list(file_table(where).columns.values())
    if len(columns) > 1:
        rows = list(file_table(given).columns.values()) if several else []
        marks = [column.maybe_numbers for column in rows]
        if several and all(column is not None and np.isin(column, (0, 1)).all() for column in marks):
            return np.stack(cast("list[np.ndarray]", marks), axis=1)
        names = [str(column.cell(0)) if is_text and where.key is None else column.name for column in columns]
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise ValueError(
            f"{where} has several columns ({listed}); name the one to read, {where.path}:{names[0]}, or give a file of "
            f"one value a line{', or columns of 0 and 1 alone' * several}"
        )
    if not is_text and (gaps := columns[0].gaps()).any():
        raise ValueError(f"{where} has {counted(int(gaps.sum()), 'null')}; every row needs a value")
    return columns[0].values


def _whole_or_text(array: np.ndarray, where: Locator) -> np.ndarray:
    """Text, or int64 (uint64 where values need it); ValueError for fractions and for what else there is."""
    if array.dtype.kind in "USO":
        if odd := {type(value).__name__ for value in array.flat} - {"str", "str_", "bytes", "bytes_"}:
            raise ValueError(f"{where} holds values of type {', '.join(sorted(odd))}; give one number or text a row")
        check_lengths(array.ravel().tolist(), str(where))
        cells = array.ravel().astype(str).astype(object)
        found = Column("", cells, str(where)).as_ids()
        Column("", cells[1:], str(where)).unrounded()  # the first may be a name
        return found.values.reshape(array.shape).astype(str if found.is_text else np.int64)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{where} has dtype {array.dtype}; it must hold whole numbers or strings")
    if array.dtype.kind == "f" and not np.array_equal(array, np.floor(array)):
        raise ValueError(f"{where} has dtype {array.dtype} with fractions or NaN; it must hold whole numbers or text")
    return as_64_bits(check_exact(array, str(where)))


_MONEY = re.compile(r"[$€£¥]\s?[\d.,]+|[\d.,]+\s?[$€£¥%]|\d+/\d+")  # a number with its unit, or a fraction
_SEPARATOR = "|"  # between several categories of one entry, as in MovieLens' genres


def read_features(
    path: StrPath, id_column: str | None = None, **text: Unpack[TextWords]
) -> tuple[np.ndarray, Features, list[str]]:
    r"""Read features of ids from a .csv, .tsv, .parquet or .npz table, or a sparse matrix of `scipy.sparse.save_npz`.

    Columns of numbers are brought to mean 0 and variance 1, those of text become one column of 0 and 1 for each
    category; an entry such as "Drama|War" has both, an empty one none. A missing number becomes the mean. A sparse
    matrix has a row of features, unchanged, for each of the ids 0, 1, ...

    Parameters
    ----------
    path: the file.
    id_column: the column of ids, by default the first.
    text: header, delimiter, encoding, comment, as in `read_table`.

    Returns
    -------
    ids: (n,).
    features: (n, d) float32, dense, or CSR with categories.
    names: of the d columns.

    Raises
    ------
    ValueError: ids that repeat, infinite numbers, a table without features.
    FileNotFoundError: no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("items.csv").write_text("item,year\n7,1990\n9,2010\n")
    >>> nk.data.read_features("items.csv")
    (array([7, 9]), array([[-1.],
           [ 1.]], dtype=float32), ['year'])
    """
    return described_features(path, id_column, **text)[:3]


@brief()
def described_features(
    path: StrPath, id_column: str | None = None, **text: Unpack[TextWords]
) -> tuple[np.ndarray, Features, list[str], str]:
    """As `read_features`, and in words which columns are numbers and which categories, and what is missing."""
    table = read_table(path, **text)
    if table.shape is not None and id_column is None:
        rows, places, values = (column.values for column in table.columns.values())
        features = sp.csr_matrix((check_finite(values, table.name), (rows, places)), table.shape, dtype=np.float32)
        m, n = table.shape
        return np.arange(m), features, list(map(str, range(n))), f"{n:,} features of {table.name}, a sparse matrix"
    name = next(iter(table.columns), "") if id_column is None else id_column
    ids = table.column(name, "id_column").as_ids().ids()
    columns = {column: values for column, values in table.columns.items() if column != name}
    if len(set(ids.tolist())) < len(ids):
        raise ValueError(f"column {name!r} of {table.name} repeats ids; features need one row for each")
    if any(len(values) != len(ids) for values in columns.values()):
        raise ValueError(f"the columns of {table.name} have different lengths; features need one row for each id")
    blocks: list[Features] = []
    names: list[str] = []
    words: dict[str, list[str]] = {"numbers": [], "categories": []}
    for column, values in columns.items():
        numbers = None if _is_code(values) else values.maybe_numbers
        if numbers is None and values.is_text and all(map(_MONEY.fullmatch, filter(None, values.distinct.tolist()))):
            values.numbers()  # names the cell at fault
        lists = None if numbers is not None else list_cells(values) or list_cells(values, ids=True)
        if lists and float in (types := {type(part) for cell in lists for part in cell}) and types <= {int, float}:
            block, labels, numbers = *_numbers(lists, column, table.name), np.zeros(0)
        else:
            block, labels = _categories(values, lists) if numbers is None else _number(numbers, column, table.name)
        blocks.append(block)
        names += labels
        gaps = int(values.gaps().sum() if numbers is None else np.isnan(numbers.astype(np.float64)).sum())
        about = [f"{gaps:,} missing"] * (gaps > 0) + [f"{len(labels):,} different"] * (numbers is None)
        words["categories" if numbers is None else "numbers"].append(
            f"{column} ({', '.join(about)})" if about else column
        )
    if not names:
        raise ValueError(f"{table.name} has no column but {name!r}; it must hold at least one feature")
    kinds = "; ".join(f"{kind} {', '.join(found)}" for kind, found in words.items() if found)
    about = f"features of {table.name}: {kinds}"
    if all(isinstance(block, np.ndarray) for block in blocks):
        return ids, np.hstack([np.asarray(block) for block in blocks]), names, about
    return ids, sp.csr_matrix(sp.hstack(blocks), dtype=np.float32), names, about


def with_features(
    columns: dict[str, Column], side: str, listed: np.ndarray, file: str, missing: str
) -> tuple[dict[str, Column], list[str]]:
    """The rows whose ids of a side are `listed` in the file of its features, and a note that counts the others;
    ValueError for these unless `missing` is "drop"."""
    column, ids = columns[side], set(listed.tolist())
    codes, names = column.coded
    unknown = np.array([name not in ids for name in names.to_pylist()], bool)
    gone = unknown[codes]
    if not gone.any() or column.is_text != (listed.dtype.kind == "O"):  # of two types: an error of `from_pairs`
        return columns, []
    lacks = f"{file} lacks {counted(int(unknown.sum()), 'id')} of column {column.name!r} of {column.source}"
    if missing == "raise" or gone.all():
        first, other = names[int(unknown.argmax())].as_py(), listed[:1].tolist()
        raise ValueError(
            f"{lacks}, the first is {first!r}, as {other} there ({gone.sum():,} of {len(gone):,} rows); add a "
            "row for each, or type missing='drop' (--missing drop) to leave their pairs out"
        )
    kept = {role: values.take(~gone) for role, values in columns.items()}
    return kept, [f"{counted(int(gone.sum()), 'row')} left out: {lacks}"]


def _number(values: np.ndarray, column: str, path: str) -> tuple[np.ndarray, list[str]]:
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    if len(bad := np.flatnonzero(np.isinf(numbers) | ~known.any())):
        raise ValueError(
            f"column {column!r} of {path} has {counted(len(bad), 'infinite number')}, or no number, the first in row "
            f"{bad[0]}; fill them, or leave the column out"
        )
    numbers = np.where(known, numbers, numbers[known].mean())
    numbers = numbers / (np.abs(numbers).max() or 1.0)  # squares of 1e300 are beyond float64
    return ((numbers - numbers.mean()) / (numbers.std() or 1.0))[:, None].astype(np.float32), [column]


def _numbers(lists: list[list[object]], column: str, path: str) -> tuple[np.ndarray, list[str]]:
    """Features (n, d) of a column of lists of d numbers."""
    widths = sorted(set(map(len, lists)))
    if len(widths) > 1:
        raise ValueError(
            f"the lists of column {column!r} of {path} have lengths {widths[:5]}; every row needs the same"
        )
    blocks = [_number(values, f"{column}[{place}]", path)[0] for place, values in enumerate(np.array(lists).T)]
    return np.hstack(blocks), [f"{column}[{place}]" for place in range(len(blocks))]


def _categories(column: Column, lists: list[list[object]] | None) -> tuple[sp.csr_matrix, list[str]]:
    if lists is not None and (odd := {type(part) for cell in lists for part in cell} & {dict, list}):
        what = " and ".join(kind.__name__ for kind in odd)
        raise ValueError(
            f"column {column.name!r} of {column.source} holds lists of type {what}; a list of features has text or "
            "numbers: write the names alone"
        )
    if lists is not None:
        sets = [list(map(str, cell)) for cell in lists]
    elif column.is_text:
        sets = [[part for part in value.split(_SEPARATOR) if part] for value in column.values.tolist()]
    elif column.values.dtype.kind == "O":
        raise ValueError(
            f"column {column.name!r} of {column.source} holds values of type {column.kind}; features are numbers, text "
            "or lists of these, so take it out"
        )
    else:
        sets = [[str(value)] for value in column.values.tolist()]
    from sklearn.preprocessing import MultiLabelBinarizer  # slow to import, and needed by features of text only

    encoder = MultiLabelBinarizer(sparse_output=True)
    block = sp.csr_matrix(encoder.fit_transform(sets), dtype=np.float32)
    return block, [f"{column.name}={part}" for part in encoder.classes_]


def _is_code(column: Column) -> bool:
    """Whether a column of digits is a code, such as "007" or a postal code: some cell begins with a needless zero."""
    return column.is_text and any(cell[:1] == "0" and cell[1:2].isdigit() for cell in column.distinct.tolist())
