"""The columns of a table that are coordinates of its vectors, and the column that names its rows."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearkin._fields import counted, quoted
from nearkin.data.names import names_rows, normal

FEW = 10  # rows that may be too few to tell ids from numbers
_OTHERS = frozenset(  # names, as `normal` leaves them, of columns that are no coordinates
    (
        *("label", "target", "class", "y", "category", "cluster", "group", "species", "split", "fold", "rank"),
        *("labels", "classes", "clusters", "outcome", "quality", "score", "grade", "topic", "sentiment", "diagnosis"),
        *("weight", "count", "rating", "stars", "timestamp", "time", "unixtime", "datetime", "date"),
    )
)
_NUMBERED = ("", "Unnamed: 0", "__index_level_0__")  # the index of pandas, if nothing else names the rows
_FLOAT_IDS = re.compile(r"(.*[\W_])?id|.*[a-z]I[dD]", re.IGNORECASE)  # pandas makes floats of ids if one is missing


def choose_ids(text: list[str], whole: list[str]) -> tuple[str | None, list[str]]:
    """The column that names the rows: `id`, else the only one called so, else the only one of text, else None.

    Also the columns that might be it, where several are called so or are text.
    """
    called = [name for name in (*text, *whole) if name not in _NUMBERED and names_rows(name)]
    exact = [name for name in called if name.strip().lower() == "id"]
    words = [name for name in text if normal(name) not in _OTHERS and (not name.isdigit() or name == "0")]
    index = [name for name in whole if name in _NUMBERED]
    for found in (exact, called, words, index[:1]):
        if len(found) == 1:
            return found[0], []
    return None, called or words


def text_kind(name: str, cells: Sequence[object]) -> str:
    """ "string", which may name the rows, or "category" of cells that recur, under no name of ids."""
    return "category" if 2 * len(set(cells)) <= len(cells) and not names_rows(name) else "string"


@dataclass(frozen=True)
class Chosen:
    """The columns that hold a table's vectors, that of the ids or None, and those that might be it; how ids are written
    if not plainly."""

    names: list[str]
    ids: str | None
    rivals: list[str]
    written: str = ""


def choose_columns(kinds: Mapping[str, str], source: str, key: str | None = None) -> Chosen:
    """The columns of vectors and of ids.

    kinds: name -> kind, as `Column.kind` and `text_kind`. Vectors are the columns that `key` names ("v", "f0-f2,g"),
    the only list column, or the numeric columns. ValueError that names what to type if a column may be a coordinate or
    not.
    """
    lists, text, whole = (
        [n for n, kind in kinds.items() if kind == wanted] for wanted in ("list", "string", "integer")
    )
    whole += [n for n, kind in kinds.items() if kind == "float" and _FLOAT_IDS.fullmatch(n.strip())]
    ids, rivals = choose_ids(text, whole)
    if key is not None:
        names = pick_columns(list(kinds), key, source)
        odd = next((name for name in names if kinds[name] not in ("integer", "float", "bool")), None)
        if odd is not None and names not in [[name] for name in lists]:
            raise ValueError(
                f"{source}: column {odd!r} is of type {kinds[odd]}, no number; name others after the colon"
            )
        return Chosen(names, None if ids in names else ids, rivals)
    if len(lists) > 1:
        listed = ", ".join(f"{source}:{name}" for name in lists)
        raise ValueError(f"{source} has {counted(len(lists), 'list column')}; name one of {listed}, or keep one")
    return Chosen(lists or _coordinates(kinds, source, ids), ids, rivals)


def pick_columns(names: list[str], key: str, source: str) -> list[str]:
    """The columns that `key` names: "v", "a,b", or "f0-f2" for all from f0 to f2 in the order of the table."""
    if key in names:
        return [key]
    found = list[str]()
    for part in key.split(","):
        cuts = [(part[:at], part[at + 1 :]) for at, letter in enumerate(part) if letter == "-"]
        ends = [(part, part)] if part in names else [cut for cut in cuts if cut[0] in names and cut[1] in names]
        if not ends:
            raise ValueError(f"{source} has no column {part!r}; its columns are {_listed(names)}")
        (first, last), *_ = ends
        found += names[names.index(first) : names.index(last) + 1]
    return list(dict.fromkeys(found))


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 10 else column_runs(names, names)


def column_runs(names: list[str], table: list[str]) -> str:
    """Columns as a key names them: those that follow each other in the `table` by the first and the last, apart from
    a few without a number among numbered ones."""
    runs = list[list[str]]()
    few = len([name for name in names if not re.search(r"\d", name)]) < len(names) / 2
    places = {name: place for place, name in enumerate(table)}
    for place, name in ((places[name], name) for name in names):
        follows = runs and place and table[place - 1] == runs[-1][-1]
        if follows and not (few and _form(name) != _form(runs[-1][-1])):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _form(name: str) -> str:
    """A name with its numbers as #: "f#" of f0, f1, ..."""
    return re.sub(r"\d+", "#", name)


def _coordinates(kinds: Mapping[str, str], source: str, ids: str | None) -> list[str]:
    """The numeric columns without those that are usually called otherwise, if the rest is plainly the vector: numbered
    names (f0, f1, ...), or fractions where the others have none."""
    numeric = [name for name in kinds if name != ids and kinds[name] in ("integer", "float")]
    called = [name for name in numeric if normal(name) in _OTHERS or names_rows(name)]
    if {"x", "X"} & set(kinds):  # y is an axis
        called = [name for name in called if name not in ("y", "Y")]
    called = [] if called == numeric else called
    found = [name for name in numeric if name not in called]
    text = [name for name in kinds if name != ids and kinds[name] not in ("integer", "float")]
    strange = [name for name in text if normal(name) not in _OTHERS and not names_rows(name)]
    forms = {_form(name) for name in found}
    numbered = len(forms) == 1 and len(found) > 1 and "#" in "".join(forms)
    words = [name for name in found if not re.search(r"\d", name)]
    words = words if len(forms) == len(words) + 1 and len(found) > 2 * len(words) else []
    if words:  # next to f0, f1, ...: a price, a length of the text
        called, found = [*called, *words], [name for name in found if name not in words]
        forms = forms - set(words)
    plain = numbered or (
        not words and all(kinds[name] == ("integer" if name in called else "float") for name in numeric)
    )
    clear = numbered and not forms & {_form(name) for name in strange}
    if found and (plain or not called) and (not strange or clear):
        return found
    drop = f"frame.drop(columns={[*strange, *called][:4]})"  # what to type for a DataFrame
    leave = drop if source.startswith("the ") else f"{source}:{column_runs(found, list(kinds))}"
    if strange or not numeric:
        odd = (strange or list(kinds))[0]
        way = f"type {leave}" if found else "it has no column of numbers"
        if len(kinds) == 1:
            way = "if its lines hold several cells, type delimiter=... (on the command line --delimiter)"
        raise ValueError(
            f"{source}: column {odd!r} is of type {kinds[odd]}, no number; vectors are one column of "
            f"lists, or numeric columns, next to a column of ids: {way}"
        )
    take = "rename the column" if leave == drop else f"type {source}:{column_runs(numeric, list(kinds))}"
    asked = f"is {called[0]} a coordinate" if len(called) == 1 else f"are {', '.join(called)} coordinates"
    first = next(iter(kinds))
    ids = "; if it holds ids, call it id" if kinds[first] == "integer" and first in called else ""
    raise ValueError(f"{source}: {asked}? If not, type {leave} to leave out what is none; otherwise {take}{ids}")


def check_whole(
    source: str, chosen: Chosen, table: list[str], whole: list[bool], blocks: Callable[[str], Iterator[np.ndarray]],
    *, header: bool = True,
) -> None:  # fmt: skip
    """ValueError where a column of whole numbers, without a name for it, may hold ids (the first of the `table`:
    another number in every row) or labels (the first or the last: a few numbers, and fractions elsewhere).

    whole: whether each of the `chosen` columns has whole numbers only; blocks(name) reads one, (b,) at a time.
    """
    names, alone = chosen.names, sum(whole) == 1
    if len(names) < 3 or not (whole[0] or (whole[-1] and alone)):
        return
    name, place = (names[0], "first") if whole[0] else (names[-1], "last")
    parts = blocks(name)
    head = next(parts, np.empty(0))
    if not (alone or goes_up_by_one(head)):
        return
    found, column = np.concatenate([head, *parts]), f"column {name!r}" if header else f"the {place} column"
    if len(found) < FEW or found.dtype.kind not in "iu":
        return
    rest = [other for other in names if other != name]
    drop, keep = f"{source}:{column_runs(rest, table)}", f"{source}:{column_runs(names, table)}"
    if source.startswith("the "):  # a DataFrame
        drop, keep = f"frame.drop(columns={[name]})", "frame.to_numpy()"
    distinct, first = len(np.unique(found)), chosen.ids is None and whole[0] and names[0] == table[0]
    if first and found.min() >= 0 and distinct == len(found) and (alone or goes_up_by_one(found)):
        how = "call it" if header else "begin the file with a line of names and call it"
        raise ValueError(
            f"{source}: {column} is another whole number in every row: ids, or a coordinate? If they are "
            f"ids, {how} id; if not, type {keep}"
        )
    if alone and 2 * distinct <= len(found):
        raise ValueError(
            f"{source}: {column} of numbers is whole, the others have fractions: labels, or a coordinate? If "
            f"labels, type {drop} to leave them out; otherwise type {keep}"
        )


def goes_up_by_one(numbers: np.ndarray) -> bool:
    """Whether the numbers (n,) go up by 1."""
    return numbers.dtype.kind in "iu" and bool((np.diff(numbers) == 1).all())


def rival_ids(source: str, rivals: list[str]) -> ValueError:
    """The error for several columns that may name the rows."""
    named = f"{source} has {counted(len(rivals), 'column')} that may name its rows ({', '.join(rivals)})"
    way = (
        ""
        if source.startswith("the ")
        else f"type --ids {quoted(f'{source}:{rivals[0]}')} (for queries --query-ids), or "
    )
    return ValueError(f"{named}; {way}call the right one id")


def understood(
    source: str,
    shape: tuple[int, int],
    table: list[str],
    chosen: Chosen,
    *,
    written: str = "",
    notes: Sequence[str] = (),
) -> str:
    """One line for people: what a table of vectors was taken for, with the columns `chosen` of those of the `table`.

    written: how its numbers are; notes: what else was left aside.
    """
    names, ids = chosen.names, chosen.ids
    named = _COUNTED if ids is None else f"ids in column {ids!r}" if ids else "ids in the first column"
    named += chosen.written
    used = {*names, ids}  # a table may have 100,000 columns
    aside = [name or "the first column, which has no name" for name in table if name not in used]
    numbered = len({_form(name) for name in names}) == 1
    runs = f" in {column_runs(names, table)}" if (aside or not numbered) and len(names) == shape[1] else ""
    left = f"{_ASIDE}{', '.join([*notes, *aside])}" if aside or notes else ""
    return f"{source}: {counted(shape[0], 'row')} of {counted(shape[1], 'number')}{runs}{written}; {named}{left}"


_COUNTED, _ASIDE = "rows are counted from 0", "; left aside: "


def with_ids(about: str, path: str) -> str:
    """The line of `understood` for a table whose ids are in a file, or in `path`, one of its columns."""
    head, _, aside = about.partition(_ASIDE)
    left = [name for name in aside.split(", ") if name and name != path.rpartition(":")[2]]
    return head.replace(_COUNTED, f"ids from {path}") + (f"{_ASIDE}{', '.join(left)}" if left else "")
