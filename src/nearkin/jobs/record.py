"""A record of a job laid out for people, in a terminal and on a page alike: facts, tables and lines, by one rule."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nearkin._fields import Fields, Record, counted, show, with_interval
from nearkin.metrics.trial import Difference

_MOST = 60  # rows of a table
_LINES = ("understood", "links", "link", "notes", "next")  # entries that are printed as lines, and not as facts


class Table(NamedTuple):
    """A titled table."""

    title: str
    columns: list[str]
    rows: list[list[object]]


class Layout(NamedTuple):
    """The parts of a record: scalars by their names, lists of records as tables, notes as lines."""

    facts: dict[str, str]
    tables: list[Table]
    lines: list[str]


def laid_out(record: Fields) -> Layout:
    """The parts of a record: a scalar is a fact "name  value", a list of records or a record of records a table, and
    "understood", "notes" and "next" are lines. What is None or empty is left out.

    >>> made = laid_out({"vectors": 3, "trials": [{"code": "int8", "recall": 0.5}], "notes": ["few vectors"]})
    >>> made.facts, made.tables[0].rows, made.lines
    ({'vectors': '3'}, [['int8', 0.5]], ['Note: few vectors'])
    """
    facts, tables = dict[str, str](), list[Table]()
    lines = [f"Read {record['understood']}"] if record.get("understood") else []
    for name, value in record.items():
        title = name.replace("_", " ")
        if value is None or name in _LINES or (isinstance(value, Sequence | Mapping) and not len(value)):
            continue
        if isinstance(value, list) and isinstance(value[0], list):  # of tables that a file or a page shows
            continue
        rows = _rows(value)
        if rows is not None:
            tables.append(_table(title, rows))
        elif isinstance(value, Mapping) and any(_rows(one) for one in value.values()):
            inner = laid_out(value)
            facts |= {f"{title}: {name}": text for name, text in inner.facts.items()}
            tables += [made._replace(title=f"{title}: {made.title}") for made in inner.tables]
            lines += inner.lines
        else:
            facts[title] = text_of(value, name)
    lines += [f"{made.title}: {cut}" for made in tables if (cut := _cut(made))]
    links = record.get("links", {"page": record["link"]} if "link" in record else {})
    lines += [f"For {name}: {link}" for name, link in (links | links.get("named", {})).items() if isinstance(link, str)]
    lines += [f"Note: {note}" for note in record.get("notes", ())]
    if following := record.get("next"):
        lines.append(f"Next: {', or '.join(following)}")
    return Layout(facts, tables, lines)


def _rows(value: object) -> list[Record] | None:
    """The records of a table; None for a value that is none."""
    if isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in value.values()):
        if all("mean" not in one or "low" not in one for one in value.values()):
            return [line for name, one in value.items() for line in _opened({"": str(name), **one})]
        return [{"": str(name), "difference": one} for name, one in value.items()]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return [line for one in value for line in _opened(one)]
    return None


def _opened(row: Fields) -> list[Record]:
    """A record whose cells are lists, such as the ids and scores of a query, as a record for each of their places; the
    entries of a record in it are cells too, such as "NDCG@10 change"."""
    inner = {name: cell for name, cell in row.items() if isinstance(cell, Mapping) and "mean" not in cell}
    cells = {f"{key} {name.removesuffix('s')}": value for name, cell in inner.items() for key, value in cell.items()}
    row = {name: cell for name, cell in row.items() if name not in inner} | cells
    lists = {name: cell for name, cell in row.items() if isinstance(cell, list) and not name.endswith("interval")}
    if not lists or len({len(cell) for cell in lists.values()}) > 1:
        return [dict(row)]
    places = range(len(next(iter(lists.values()))))
    return [{**row, **{name: cell[place] for name, cell in lists.items()}} for place in places]


def _table(title: str, rows: list[Record]) -> Table:
    """Rows as a table of the columns that hold something; of few rows with many columns, a column for each of them."""
    named = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in named if any(row.get(name) is not None for row in rows)]
    columns = [name.replace("_", " ") for name in names]
    cells = [[_cell(row.get(name), name) for name in names] for row in rows]
    if len(rows) < 5 < len(columns):
        turned = [list(line) for line in zip(columns, *cells, strict=True)]
        return Table(title, [str(cell) for cell in turned[0]], turned[1:])
    return Table(title, columns, cells)


def _cell(value: object, name: str) -> object:
    return value if value is None or isinstance(value, int | float) else text_of(value, name)


def _cut(table: Table) -> str:
    """A line about the rows of a long table that are left out; they are taken from it."""
    n = len(table.rows)
    del table.rows[_MOST:]
    return f"the first {_MOST} of {counted(n, 'line')}; a file or the record holds all" if n > _MOST else ""


def text_of(value: object, name: str = "") -> str:
    """A value of a record, called `name`, in words: a difference with its interval, or as a tie; a list in one line.

    >>> text_of({"mean": 0.25, "low": 0.125, "high": 0.375}), text_of([1, 2, 3]), text_of([0.25, 0.5], "interval")
    ('0.2500 (0.1250 to 0.3750)', '1, 2, 3', '0.25 to 0.5')
    """
    if isinstance(value, Mapping):
        if value.keys() == set(Difference._fields):
            return str(Difference(**value))
        if "mean" in value and "low" in value:
            return with_interval(value["mean"], (value["low"], value["high"]), ".4f")
        return ", ".join(f"{inner} {text_of(one)}" for inner, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return (" to " if name.endswith("interval") else ", ").join(map(text_of, value))
    return show(value)
