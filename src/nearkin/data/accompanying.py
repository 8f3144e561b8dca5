"""Files that accompany vectors and pairs: neighbour lists (ground truth), qrels, labels, ids, and features."""

from dataclasses import replace
from typing import Unpack

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from nearkin._check import check_finite
from nearkin._fields import Extra, FileOrFrame, StrPath, counted
from nearkin._pairs import Features, as_ids, check_exact
from nearkin._storage import reading
from nearkin.data import tables
from nearkin.data.files import NO_NAME, TABLES, Locator, TextWords, brief, locate, locate_all, read_utf8, text_of
from nearkin.data.formats.binary import read_array
from nearkin.data.tables import NUMBER, Column, Table, is_frame, kind_of, listed, matches, plain, read_table
from nearkin.data.vectors import ROWS, flattened, open_rows
from nearkin.records import Judgements

_ARRAYS = (".npy", ".npz")


@brief()
def read_neighbors(path: StrPath, **text: Unpack[TextWords]) -> np.ndarray:
    """Read neighbour lists, nearest first, (n, k) int64 or strings: .npy, .npz, .ivecs, .ibin, or a table.

    Numbers must be whole; ValueError otherwise, as for a list that is not 2-D. -1 means "no neighbour". A table has
    one column of lists, or a column for each rank.
    `text` is as in `nearkin.data.read_table`.
    """
    where, *_ = every = locate_all(path, ROWS, text)
    if where.suffix in TABLES and where.suffix not in _ARRAYS:
        return _of_table(read_table(path, **text))
    with reading(where.path):
        arrays = [read_array(at) if at.suffix in _ARRAYS else next(open_rows(at, text).read()) for at in every]
        array = np.concatenate(arrays)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{where} has shape {array.shape}; neighbours must be (n, k), one row a query")
    return whole_or_text(array, str(where))


def _of_table(table: Table) -> np.ndarray:
    width = len(columns := list(table.columns.values()))
    if width == 1 and columns[0].kind == "list":
        columns[0], width = flattened(columns[0])
    elif any(plain(name) in tables.NAMES["left"] or name.startswith(NO_NAME) for name in table.columns):
        what = f"{table.name} has the columns {listed(table.columns)}; neighbours are one column of lists, or one"
        hits = "frame.groupby('query', sort=False).id.apply(list).to_frame().to_parquet('truth.parquet', index=False)"
        raise ValueError(f"{what} for each rank: type {table.name}:n1,n2, ...; of hits {hits}")
    if all(column.is_numeric for column in columns):
        cells = whole_or_text(np.stack([column.numbers() for column in columns], axis=1), table.name)
    else:
        cells = np.stack([np.array(column.text()) for column in columns], axis=1)
    return cells.reshape(-1, width)


@brief("name them query-id,corpus-id,score in a first line")
def read_judgements(source: FileOrFrame, **text: Unpack[TextWords]) -> Judgements:
    """Read graded relevance: a table of query, row and grade, such as BEIR's (query-id, corpus-id, score), or TREC's
    qrels, which have no header: query, 0, row, grade.

    `source` and `text` are as in `read_table`. Files that end in .txt or .qrels are TREC's, cut at blanks. Rows of
    grade 0 and below, which TREC has too, are not relevant. ValueError for other columns, grades that are no finite
    numbers, and a pair that has two grades.
    """
    is_trec = not is_frame(source) and str(source).removesuffix(".gz").endswith(_TREC)
    table = _trec(locate(source), text_of(text).encoding) if is_trec else read_table(source, **text)
    query, row, grade = table.roles(("left", "right", "grade")).values()
    grades = grade.numbers().astype(np.float64)
    grade.refuse(~np.isfinite(grades), "has grades that are not finite", "correct them")
    judged: dict[tuple[str, str], float] = {}
    names = (column.plain_ids().astype(str).tolist() for column in (query, row))
    for name, other, value in zip(*names, grades.tolist(), strict=True):
        if judged.setdefault((name, other), value) != value:
            raise ValueError(f"{table.name} has two grades of {other!r} for {name!r}; leave one of them")
    queries, rows = np.array(list(judged), dtype=object).T
    return Judgements(queries, rows, np.array(list(judged.values())))


_TREC = (".txt", ".qrels")


def _trec(where: Locator, encoding: str) -> Table:
    with reading(where.path):
        lines = read_utf8(where, encoding).decode().splitlines()
    rows = {number: cells for number, line in enumerate(lines, 1) if (cells := line.split())}
    for number, cells in rows.items():
        if len(cells) != 4:
            way = "TREC's qrels have four a line; six are a run, which has no grades"
            raise ValueError(f"{where}, line {number}: {counted(len(cells), 'cell')}; {way}")
    columns = zip(("left", "0", "right", "grade"), zip(*rows.values(), strict=True), strict=False)
    return Table(str(where), {name: Column(name, pa.array(cells), str(where)) for name, cells in columns})


@brief()
def read_column(
    path: StrPath, n: int | None = None, *, several: bool = False, long: bool = False, **text: Unpack[TextWords]
) -> np.ndarray:
    """Read one value a row, (n,) int64 or strings: labels or ids from .npy, .npz, a table, or the lines of a .txt.

    A table of several columns needs the name of one: `file.csv:column`. Raises ValueError for several columns of
    which none is named, for missing cells (of the lines of a .txt that are words: empty ones), for numbers that are not
    whole, and for another number than `n`.
    `several`: columns (n, c) of 0 and 1, of a .npy or `file.csv:a,b`, are read too, as the labels of each row. `long`:
    text has any length, in an array of objects. `text` is as in `nearkin.data.read_table`.
    """
    where, *_ = every = locate_all(path, (".npy", *TABLES), text)
    if where.suffix in _ARRAYS:
        with reading(where.path):
            array = np.concatenate([np.atleast_1d(read_array(at)) for at in every])
        if several and array.ndim == 2 and array.shape[1] > 1:
            return _mask(array, str(where))
        if array.size != len(np.atleast_1d(array)) or not array.size:
            raise ValueError(f"{where} has shape {array.shape}; it must be (n,), one value a row")
        values = whole_or_text(array.ravel(), str(where))
    else:
        is_lines = where.suffix == ".txt" and where.key is None and text_of(text).delimiter is None
        words: TextWords = {**text, "header": False, "delimiter": "\x1f"} if is_lines else text
        table = read_table(path, **words)
        columns = list(table.columns.values())[: len(where.columns or table.columns)]  # others follow those typed
        if several and len(columns) > 1 and where.key is not None:
            return _mask(np.stack([column.numbers() for column in columns], axis=1), str(where))
        if len(columns) > 1:
            names = listed(table.columns)
            raise ValueError(f"{where} has several columns ({names}); name one of them: {where.path}:{columns[0].name}")
        # of lines of words none is missing: vocabularies hold "nan" and "null"
        column = replace(columns[0], words=is_lines and not several and matches(columns[0].cells, NUMBER).mean() < 0.5)
        column.refuse(column.missing, "has missing values", "give every row one")
        values = np.array(column.text(), object) if long else column.labels()
        values = whole_or_text(column.numbers(), str(where)) if column.kind == "float" else values
    if n is not None and len(values) != n:
        raise ValueError(f"{where} has {counted(len(values), 'value')}, and {n:,} are needed, one for each row")
    return values


def _mask(columns: np.ndarray, source: str) -> np.ndarray:
    """Columns (n, c) of 0 and 1 as bool; ValueError for other values."""
    if not np.isin(columns, (0, 1)).all():
        raise ValueError(f"{source} has columns with other values than 0 and 1; name one column of classes")
    return columns.astype(bool)


def whole_or_text(array: np.ndarray, source: str) -> np.ndarray:
    """Text, or int64; ValueError for fractions and for what else there is."""
    if array.dtype.kind == "U" and (array != "").all():
        return array
    if array.dtype.kind in "USO":
        return as_ids(array.ravel(), source).astype(str).reshape(array.shape)
    if array.dtype.kind not in "iuf" or not np.array_equal(array, np.floor(array)):
        raise ValueError(f"{source} has dtype {array.dtype}; it must hold whole numbers or text")
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise ValueError(f"{source} has numbers above 2^63; write them as text")
    return check_exact(array, source).astype(np.int64)


def read_features(
    path: FileOrFrame, id_column: str | None = None, **text: Unpack[TextWords]
) -> tuple[np.ndarray, Features, list[str]]:
    r"""Read features of ids from a table, or a sparse matrix of `scipy.sparse.save_npz`.

    Columns of numbers are brought to mean 0 and variance 1, those of text become one column of 0 and 1 for each
    category; an entry such as "Drama|War" has both, an empty one none. A missing number becomes the mean. A sparse
    matrix has a row of features, unchanged, for each of the ids 0, 1, ...

    Parameters
    ----------
    path: the table, as in `read_table`.
    id_column: the column of ids, by default that with a usual name (id, item, user, ...).
    text: header, delimiter, encoding, as in `read_table`.

    Returns
    -------
    ids: (n,).
    features: (n, d) float32, dense, or CSR with categories.
    names: of the d columns.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("items.csv").write_text("item,year\n7,1990\n9,2010\n")
    >>> nk.data.read_features("items.csv")
    (array([7, 9]), array([[-1.],
           [ 1.]], dtype=float32), ['year'])
    """
    return described_features(path, id_column, **text)[:3]


@brief("id_column='0'")
def described_features(
    path: FileOrFrame, id_column: str | None = None, *, called: str | None = None, **text: Unpack[TextWords]
) -> tuple[np.ndarray, Features, list[str], str]:
    """As `read_features`, and what was read in words. A column `called` as that of the pairs holds the ids."""
    table = read_table(path, **text)
    if table.shape is not None and id_column is None:
        rows, places, values = (column.cells.to_numpy() for column in table.columns.values())
        features = sp.csr_matrix((check_finite(values, table.name), (rows, places)), table.shape, dtype=np.float32)
        m, n = table.shape
        return np.arange(m), features, list(map(str, range(n))), f"{n:,} features of {table.name}, a sparse matrix"
    typed = id_column or next((name for name in ("id_column", called) if name in table.columns), None)
    named = table.roles(["id_column"], id_column=typed)["id_column"]
    ids = named.plain_ids()
    if len(np.unique(ids)) < len(ids):
        raise ValueError(f"{named.title} repeats ids; features need one row for each")
    others = table.without([named]).columns.values()
    reads = [(_number if column.is_numeric and not _is_code(column) else _categories)(column) for column in others]
    blocks, gaps = [block for block, _ in reads], sum(int(column.missing.sum()) for column in others)
    if not (names := [label for _, labels in reads for label in labels]):
        raise ValueError(f"{table.name} has no column but {named.name!r}; it must hold at least one feature")
    is_sparse = any(map(sp.issparse, blocks))
    features = sp.csr_matrix(sp.hstack(blocks), dtype=np.float32) if is_sparse else np.hstack(blocks)
    about = f"features of {table.name}, ids in {named.name}: {listed(names)}"
    return ids, features, names, about + f"; {counted(gaps, 'missing cell')} filled" * (gaps > 0)


def _number(column: Column) -> tuple[Extra, list[str]]:
    numbers = column.numbers(gaps=True).astype(np.float64)
    column.refuse(np.isinf(numbers), "holds infinite numbers", "correct them, or leave the column out")
    numbers = np.where(np.isnan(numbers), np.nanmean(numbers), numbers)
    numbers = numbers / (np.abs(numbers).max() or 1.0)  # squares of 1e300 are beyond float64
    return ((numbers - numbers.mean()) / (numbers.std() or 1.0))[:, None].astype(np.float32), [column.name]


def _categories(column: Column) -> tuple[Extra, list[str]]:
    if column.kind not in ("list", "text"):
        raise ValueError(f"{column.title} has cells of type {column.kind}; features are numbers, text or lists of text")
    if column.kind == "text":
        way = f"type frame[{column.name!r}] = frame[{column.name!r}].map(ast.literal_eval)"
        column.refuse(matches(column.cells, tables.LISTS), "holds lists in text", way)
        if matches(column.cells, rf"{NUMBER}|^[-+]?[\d.' ]*\d,\d+$").mean() >= 1 - tables.FEW:
            column.numbers(gaps=True)  # the error for all but a few
    elif kind_of(column.cells.type.value_type) == "float":
        raise ValueError(f"{column.title} holds lists of numbers, which are no categories; name it by read_vectors")
    # several categories of one entry are parted by bars, as in MovieLens' genres
    cells = column.cells.to_pylist() if column.kind == "list" else [cell.split("|") for cell in column.text()]
    from sklearn.preprocessing import MultiLabelBinarizer  # slow to import, and needed by features of text only

    encoder = MultiLabelBinarizer(sparse_output=True)
    block = sp.csr_matrix(encoder.fit_transform([{str(one) for one in cell or ()} - {""} for cell in cells]))
    return block, [f"{column.name}={part}" for part in encoder.classes_]


def _is_code(column: Column) -> bool:
    """Whether a column of digits is a code, such as "007" or a postal code: some cell begins with a needless zero."""
    return column.kind == "text" and bool(matches(column.cells, "^0[0-9]").any())
