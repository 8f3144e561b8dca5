"""One run of a job: its inputs, its timed steps, its records in a saved folder, run.json and evaluation.json, and how a
record is laid out for people, in a terminal and on a page alike: facts, tables and lines, by one rule."""

import glob
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, cast

from nearkin._fields import Fields, Record, StrPath, counted, show
from nearkin._json import parsed_json
from nearkin._storage import MANIFEST, Manifest, adding, read_config, read_manifest, regular_file
from nearkin.contracts import Callback, ignore
from nearkin.metrics.trial import Difference

RUN, EVALUATION, REPORT = "run.json", "evaluation.json", "report.html"
Watch = Callable[[str], AbstractContextManager[Callback]]
_MOST = 60  # rows of a table
_MEANINGS = {  # of entries of a record
    "1-recall@1": "How often the nearest neighbour is found first; 1-recall@k: among the first k; k-recall@k: the "
    "share of the k nearest among them. All are of one search for k neighbours.",
    "comparison": "Short fits, searched without rescoring. Of those that none leads by more than one standard error, "
    "the longest sum of centroids wins. A lead whose 95 % interval includes 0 is a tie.",
    "differences": "Paired over the queries, with 95 % intervals; one that includes 0 is a tie.",
    "perplexity": "The number of equally used codes of the same entropy, by level.",
    "prefix_recall": "The share of an item's 10 nearest that share its codes up to each level.",
    "codes": "The recall of a search, and of comparing every decoded code: if they are equal, speed loses nothing.",
}
_NO_FACTS = ("understood", "links", "link", "notes", "next", "words")  # entries of lines, and a part of "understood"


_WATCH: ContextVar[Watch] = ContextVar("watch", default=lambda name: nullcontext(ignore))


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Show the progress of the jobs in the block.

    Parameters
    ----------
    watch: `watch(name)` is entered around each step of a job, and yields the callback for it.

    >>> @contextmanager
    ... def watch(name):
    ...     print(name)
    ...     yield lambda step, record: None
    >>> with watched(watch), Steps().step("read"):
    ...     pass
    read
    """
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def check_input(name: str) -> None:
    """FileNotFoundError if nothing has the name (FILE, FILE:KEY or a pattern), before a model is loaded."""
    # a key may hold more colons, and so may a folder
    if not (glob.has_magic(name) or any(map(os.path.exists, (name, name.partition(":")[0], name.rpartition(":")[0])))):
        regular_file(name)


def threads_used() -> int:
    """Threads of numerical libraries: from the environment, else the cores of this process."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(given) if given.isdecimal() and int(given) else cores


class Steps:
    """Times the named steps of a job in `seconds`, and shows their progress where it is `watched`."""

    def __init__(self) -> None:
        self._watch: Watch = _WATCH.get()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[Callback]:
        """Time the block under `name`; yields its callback."""
        start = time.perf_counter()
        with self._watch(name) as callback:
            yield callback
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def read_record(folder: StrPath, name: str) -> Record | None:
    """Read run.json or evaluation.json of a saved folder; None if there is none, ValueError if it is damaged."""
    read_config(folder)
    file = Path(folder) / name
    try:
        return parsed_json(file.read_bytes()) if file.is_file() else None
    except FileNotFoundError:  # removed since the line above
        return None
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}); delete it or make the index again") from error


def version_of(folder: StrPath) -> tuple[int, int]:
    """A value that changes when the folder is saved again."""
    found = (Path(folder) / "config.json").stat()
    return found.st_ino, found.st_mtime_ns


def save_evaluation(folder: StrPath, record: Fields, judged: tuple[int, int]) -> None:
    """Write evaluation.json into an index's folder; ValueError unless its `version_of` is still the `judged` one."""
    with adding(Path(folder), EVALUATION) as fresh:
        if version_of(folder) != judged:
            raise ValueError(f"{folder} was changed while it was evaluated; evaluate it again")
        write_record(fresh, record)


def write_record(path: Path, record: Fields) -> None:
    text = json.dumps(
        record, indent=2, allow_nan=False, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v)
    )
    path.write_text(text + "\n", encoding="utf-8")


def bytes_on_disk(folder: StrPath) -> int:
    """Bytes of the files that a save wrote: codes, codebooks, ids, kept vectors; not of reports added later."""
    manifest = cast(Manifest, read_manifest(Path(folder)))
    return sum(entry.bytes for entry in manifest.files.values()) + (Path(folder) / MANIFEST).stat().st_size


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
        if value is None or name in _NO_FACTS or (isinstance(value, Sequence | Mapping) and not len(value)):
            continue
        if isinstance(value, list) and isinstance(value[0], list):  # of tables that a file or a page shows
            continue
        rows = _rows(value)
        if rows is not None:
            lines += [f"{title}: {why}" for row in rows if (why := row.pop("why", None))]  # too long for a cell
            tables.append(_table(title, rows))
        elif isinstance(value, Mapping) and any(_rows(one) for one in value.values()):
            inner = laid_out(value)
            facts |= {f"{title}: {name}": text for name, text in inner.facts.items()}
            tables += [made._replace(title=f"{title}: {made.title}") for made in inner.tables]
            lines += inner.lines
        else:
            facts[title] = text_of(value, name)
    lines += [f"{made.title}: {cut}" for made in tables if (cut := _cut(made))]
    # the "codes" of semantic ids are a number
    explained = [name for name in _MEANINGS if record.get(name) and not isinstance(record[name], int)]
    lines += [f"{name.replace('_', ' ')}: {_MEANINGS[name]}" for name in explained]
    links = record.get("links", {"page": record["link"]} if "link" in record else {})
    lines += [f"For {name}: {link}" for name, link in (links | links.get("named", {})).items() if isinstance(link, str)]
    lines += [f"Note: {note}" for note in record.get("notes", ())]
    if following := record.get("next"):
        lines.append(f"Next: {', or '.join(following)}")
    return Layout(facts, tables, lines)


def _rows(value: object) -> list[Record] | None:
    """The records of a table; None for a value that is none."""
    if _is_curve(value):
        return _opened(cast(Mapping, value))
    if isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in value.values()):
        if any(map(_is_curve, value.values())):  # a table each
            return None
        if all("mean" not in one or "low" not in one for one in value.values()):
            return [line for name, one in value.items() for line in _opened({"": str(name), **one})]
        return [{"": str(name), "difference": one} for name, one in value.items()]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return [line for one in value for line in _opened(one)]
    return None


def _is_curve(value: object) -> bool:
    """Whether a value is a record of lists of numbers, such as sizes and the error of each."""
    lists = _lists(value) if isinstance(value, Mapping) else {}
    return any(cell and isinstance(cell[0], int | float) for cell in lists.values())


def _lists(row: Fields) -> dict[str, list]:
    return {name: cell for name, cell in row.items() if isinstance(cell, list) and not name.endswith("interval")}


def _opened(row: Fields) -> list[Record]:
    """A record whose cells are lists, such as the ids and scores of a query, as a record for each of their places; the
    entries of a record in it are cells too, such as "NDCG@10 change"."""
    inner = {name: cell for name, cell in row.items() if isinstance(cell, Mapping) and "mean" not in cell}
    cells = {f"{key} {name.removesuffix('s')}": value for name, cell in inner.items() for key, value in cell.items()}
    row = {name: cell for name, cell in row.items() if name not in inner} | cells
    lists = _lists(row)
    if not lists or len({len(cell) for cell in lists.values()}) > 1:
        return [dict(row)]
    places = range(len(next(iter(lists.values()))))
    return [{**row, **{name: cell[place] for name, cell in lists.items()}} for place in places]


def _table(title: str, rows: list[Record]) -> Table:
    """Rows as a table of the columns that hold something; of few rows with many columns, a column for each of them."""
    # the name of a candidate has its settings
    named = dict.fromkeys(name for row in rows for name in row if not name.endswith(" setting"))
    names = [name for name in named if any(row.get(name) is not None for row in rows)]
    columns = [name.replace("_", " ") for name in names]
    ids = {names[0], "ids"} if title == "answers" else set[str]()  # are copied, so they have no thousands' separators
    cells = [[str(row[name]) if name in ids else _cell(row.get(name), name) for name in names] for row in rows]
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
    >>> text_of(12345), text_of(12345, "seed"), text_of({"seed": 12345})
    ('12,345', '12345', 'seed 12345')
    """
    if isinstance(value, Mapping):
        if value.keys() == set(Difference._fields):
            return str(Difference(**value))
        if "mean" in value and "low" in value:
            return "{mean:.4f} ({low:.4f} to {high:.4f})".format(**value)
        return ", ".join(f"{inner} {text_of(one, inner)}" for inner, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return (" to " if name.endswith("interval") else ", ").join(map(text_of, value))
    return str(value) if name in ("seed", "random_state") else show(value)  # a seed is copied
