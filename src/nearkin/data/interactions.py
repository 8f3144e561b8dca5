"""Tables of observed pairs, read into `Interactions`."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nearkin._check import check_choice, check_instance, check_integer, check_real, numpy_generator
from nearkin._fields import FileOrFrame, StrPath, counted, quoted
from nearkin._types import Seed
from nearkin.data.column import Column, arrow_cells, text_column
from nearkin.data.columns import described_features, with_features
from nearkin.data.files import TextOptions, brief
from nearkin.data.lists import list_cells
from nearkin.data.names import PAIRS as SYNONYMS
from nearkin.data.names import normal, usual
from nearkin.data.tables import POSITIONS, UNIX, Table, asks_comparisons, check_lines, lists_items, no_ids, read_table
from nearkin.records import Interactions, Reading


@brief()
def read_interactions(
    path: FileOrFrame,
    *,
    left: str | None = None,
    right: str | None = None,
    weight: str | None = None,
    timestamp: str | None = None,
    split: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    min_weight: float | None = None,
    duplicates: str = "sum",
    missing: str = "raise",
    left_features: StrPath | None = None,
    right_features: StrPath | None = None,
) -> Interactions:
    r"""Read observed pairs from a table (see `nearkin.data.read_table`) or a DataFrame, with one row a pair.

    Of a sparse matrix (m, n) of SciPy, in memory or in a file of `save_npz`, the stored entries are pairs, the values
    weights, and ids the numbers of all rows and columns, also of empty ones.

    Columns are taken by the names given, else by the usual ones (user and item, query and document, rating, timestamp,
    ...), else, in a table without a header, by position: left, right, weight, timestamp ("0", "1", "2", "3").

    Parameters
    ----------
    path: file, DataFrame or sparse matrix.
    left, right: columns of ids, text or exact integers.
    weight: column of numbers; 0 leaves the row out.
    timestamp: column of numbers or ISO dates; "column=%d.%m.%Y" names another form, as strptime does.
    split: column of 0 for training, 1 for validation, 2 for test, of their names, or a mask of the test pairs.
    header, delimiter, encoding, comment: as in `nearkin.data.read_table`.
    min_weight: rows below it are left out.
    duplicates: weights of a pair that occurs more than once are merged by "sum", "last" or "max".
    missing: "raise", or "drop" to leave out and count rows that lack an id (empty or -1), a weight, another of these
        cells, or their features.
    left_features, right_features: tables with an id in the first column (see `read_features`). Their ids are then the
        whole catalogue of that side, so that ids without any pair get vectors too.

    Returns
    -------
    pairs: `Interactions`; `source` describes the reading.

    Raises
    ------
    ValueError: columns that are missing, a table that can be read in two ways (it names the options to type), missing
        ids, ids of pairs that a table of features lacks.
    FileNotFoundError: no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("pairs.csv").write_text("user,item,rating\nann,7,5\nann,9,2\nbob,7,4\n")
    >>> pairs = nk.read_interactions("pairs.csv")
    >>> pairs.shape, pairs.left_ids.tolist(), pairs.weights.tolist()
    ((2, 2), ['ann', 'bob'], [5.0, 2.0, 4.0])
    >>> pairs.source.first
    'user ann, item 7, rating 5'
    """
    asked = {"left": left, "right": right, "weight": weight, "timestamp": timestamp, "split": split}
    for role, name in asked.items():
        if not isinstance(name, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{role} is {name!r}; it must be the name of a column, or None")
    check_choice(missing, "missing", ("raise", "drop"))
    if min_weight is not None:
        check_real(min_weight, "min_weight")
    when, _, pattern = (timestamp or "").partition("=")
    asked["timestamp"] = when or None
    text = TextOptions(header, delimiter, encoding, comment)
    table = read_table(path, **vars(text), named=asked.values())
    columns, notes = _one_pair_each(table, find_columns(table, asked))
    columns |= {side: columns[side].as_ids() for side in ("left", "right")}
    columns, left_out = (columns, []) if missing == "raise" else _complete(columns)
    tables = {"left": left_features, "right": right_features}
    features = {side: described_features(name) for side, name in tables.items() if name is not None}
    for side, (listed, *_) in features.items():
        columns, others = with_features(columns, side, listed, str(tables[side]), missing)
        left_out += others
    numbers = columns["weight"].numbers() if "weight" in columns else None
    times = columns["timestamp"].times(pattern or None) if "timestamp" in columns else None
    parts = _parts(columns["split"]) if "split" in columns else None
    keep = slice(None) if numbers is None else _observed(columns["weight"], numbers, min_weight)
    ids = {side: columns[side].take(keep).id_codes() for side in ("left", "right")}
    catalogues = {f"{side}_ids": np.arange(n) for side, n in zip(tables, table.shape or (), strict=False)}
    catalogues |= {f"{side}_ids": found[0] for side, found in features.items()}
    catalogues |= {f"{side}_features": found[1] for side, found in features.items()}
    pairs = Interactions.from_pairs(
        ids["left"],
        ids["right"],
        *(None if values is None else values[keep] for values in (numbers, times)),
        split=None if parts is None else parts[keep],
        duplicates=duplicates,
        **catalogues,
    )
    source = _understood(table, columns, len(columns["left"].take(keep)), pairs, [*notes, *left_out])
    stars = [] if numbers is None or min_weight is not None else _stars(columns["weight"], numbers)
    questions = (*(about for *_, about in features.values()), *stars)
    return replace(pairs, source=replace(source, questions=questions))


def _one_pair_each(table: Table, columns: dict[str, Column]) -> tuple[dict[str, Column], list[str]]:
    """The columns with a row for each entry of lists in the cells of one side, and a note; lists of weights, times or
    parts of a split must be as long. ValueError for lists of other lengths and lists on both sides."""
    lists = {role: found for role in ("left", "right") if (found := list_cells(columns[role], ids=True)) is not None}
    if not (side := list(lists)):
        return columns, []
    others = {role: column for role, column in columns.items() if role not in ("left", "right")}
    lists |= {role: found for role in others if (found := _other_lists(others[role])) is not None}
    lengths = {role: np.array([len(cell) for cell in cells]) for role, cells in lists.items()}
    many = lengths[side[0]]
    for role in lists:
        other = columns[role].name
        if role in side[1:] or (wrong := lengths[role] != many).any():
            what = "both hold lists" if role in side else f"hold lists of unequal sizes in row {int(wrong.argmax())}"
            raise ValueError(
                f"columns {columns[side[0]].name!r} and {other!r} of {table.name} {what}; write a pair a row"
            )
    rows = np.repeat(np.arange(len(many)), many)
    spread = {role: column if role in lists else column.take(rows) for role, column in columns.items()}
    for role, cells in lists.items():
        column, entries = columns[role], [value for cell in cells for value in cell]
        text = text_column(column.name, list(map(str, entries))) if column.is_text else None  # typed ones stay typed
        spread[role] = replace(column, cells=arrow_cells(entries) if text is None else text.cells)
    empty = f", {int((many == 0).sum())} of them empty" if (many == 0).any() else ""
    name = side[0] if columns[side[0]].name.isdigit() else columns[side[0]].name
    return spread, [f"lists of {name} read as one pair an entry ({counted(len(many), 'list')}{empty})"]


def _complete(columns: dict[str, Column]) -> tuple[dict[str, Column], list[str]]:
    """The rows of the columns in which no cell is missing, and a note that counts the others."""
    sides = "left", "right"
    gaps = {role: column.without_id() if role in sides else column.gaps() for role, column in columns.items()}
    for role in gaps.keys() - set(sides):
        numbers = columns[role].maybe_numbers
        gaps[role] = gaps[role] if numbers is None else gaps[role] | (numbers != numbers)
    gone = np.any(list(gaps.values()), axis=0)
    if not gone.any():
        return columns, []
    whose = ", ".join(f"{gap.sum():,} without {columns[role].name}" for role, gap in gaps.items() if gap.any())
    if gone.all():
        raise ValueError(f"no row of {columns['left'].source} is complete ({whose}); name other columns")
    note = f"{counted(int(gone.sum()), 'row')} with a missing cell left out ({whose})"
    left = {role: column.take(~gone).retyped() for role, column in columns.items()}
    return left | {side: left[side].as_ids() for side in sides}, [note]


def _other_lists(column: Column) -> list[list[object]] | None:
    """The lists in the cells of a column of weights, times or parts of a split: "5,3,4" is one, "5,3" a number."""
    return list_cells(column, ids=True) if column.kind == "list" or column.maybe_numbers is None else None


def _observed(weight: Column, numbers: np.ndarray, least: float | None) -> np.ndarray | slice:
    """Rows whose weight is above 0 and at least `least`."""
    if least is None and (wrong := numbers < 0).any():
        row = int(wrong.argmax())
        raise ValueError(
            f"column {weight.name!r} of {weight.source} has {counted(int(wrong.sum()), 'negative weight')}, the first "
            f"is {numbers[row]:g} in row {row}; a weight counts observations: type min_weight=0 (--read min_weight=0) "
            "to leave such rows out, or name another column"
        )
    if (endless := np.isinf(numbers)).any():
        raise ValueError(
            f"column {weight.name!r} of {weight.source} is infinite in row {int(endless.argmax())}; correct the weight"
        )
    keep = (numbers != 0) & (True if least is None else numbers >= least)
    if len(numbers) and not keep.any():
        limit = "0" if least is None else f"below min_weight={least:g}, or 0,"
        raise ValueError(
            f"column {weight.name!r} of {weight.source} is {limit} in every row, so no pair is left: name another"
        )
    return slice(None) if keep.all() else keep


def _stars(weight: Column, numbers: np.ndarray) -> list[str]:
    """A question about weights that look like stars: halves or wholes up to 5 or 10, under no name of a count."""
    values = np.unique(numbers).astype(np.float64)
    whole = len(values) >= 3 and values[0] >= 0.5 and values[-1] in (5, 10) and (values * 2 % 1 == 0).all()
    if not whole or normal(weight.name) in ("weight", "count", "plays"):
        return []
    return [
        f"{weight.name} looks like stars ({values[0]:g} to {values[-1]:g}): does {values[0]:g} mean liking? It counts "
        f"as a weak observation; min_weight={0.8 * values[-1]:g} (--read min_weight={0.8 * values[-1]:g}) leaves out "
        "what was not liked, min_weight=0 answers yes"
    ]


def find_columns(table: Table, asked: dict[str, str | None]) -> dict[str, Column]:
    """The columns of the roles: those named, else those with a usual name, else by position without a header."""
    if asked["left"] is None and asked["right"] is None and asks_comparisons(table):
        raise ValueError(
            f"{table.name} reads as comparisons ({', '.join(table.columns)}): use read_comparisons (on the command "
            "line leave out --split and other options for pairs), or name the columns of pairs: left=..., right=..."
        )
    if asked["left"] is None and asked["right"] is None:
        check_lines(table)
    found = {role: _find(table, role, name, asked) for role, name in asked.items()}
    columns = {role: column for role, column in found.items() if column is not None}
    twice = [role for role in columns if sum(columns[role] is other for other in columns.values()) > 1]
    if len(twice) > 1:
        raise ValueError(f"{' and '.join(twice)} are both the column {columns[twice[0]].name!r}; name two columns")
    return columns


def _find(table: Table, role: str, name: str | None, asked: dict[str, str | None]) -> Column | None:
    if name is not None:
        return table.column(name, role)
    named = {other for other in asked.values() if other is not None}
    rivals = usual((column for column in table.columns if column not in named), SYNONYMS[role])
    if len(rivals) > 1:
        raise ValueError(
            f"{table.name} has {counted(len(rivals), 'column')} that can be {role}: {', '.join(rivals)}; type "
            f"{role}={rivals[0]!r} or {role}={rivals[1]!r} (on the command line {_option(role)})"
        )
    if rivals:
        return table.columns[rivals[0]]
    position = POSITIONS.index(role) if role in POSITIONS else len(table.columns)
    places = list(table.columns)
    two = len(places) == 2 and position < 2
    by_place = position < len(places) and (table.header is False or two) and places[position] not in named
    if by_place and position > 1:  # the other columns are in their places, too; if both sides are named, it may be left
        at = {"left": places[:2], "right": places[:2], "weight": places[2:3], "timestamp": places[3:4]}
        cells, sides = table.columns[places[position]], (asked["left"], asked["right"])
        by_place = all(asked[other] in (None, *usual_places) for other, usual_places in at.items())
        by_place &= None in sides or cells.maybe_numbers is not None or None in cells.date_forms()
    if by_place and (position < 2 or not lists_items(table)):
        return _by_position(table, role, table.columns[places[position]])
    if len(places) == 1 and table.header is not None:
        raise ValueError(
            f"{table.name} has one column ({places[0]}); if its lines hold several cells, type what stands between "
            "them: delimiter=... (on the command line --delimiter)"
        )
    if role in ("left", "right"):
        taken = named.union(*(usual(places, SYNONYMS[other]) for other in asked if other != role))
        free = next((column for column in places if column not in taken), "...")
        raise ValueError(
            f"{table.name} has no column with a usual {role} name; its columns are {', '.join(places)}. "
            f"Say which one it is: {role}={free!r} (on the command line {_option(role)})"
        )
    return None


def _option(role: str) -> str:
    return f"--{role}" if role in ("left", "right") else f"--read {role}=..."


def _by_position(table: Table, role: str, column: Column) -> Column:
    """The column, unless it plainly holds something else than its place has: ValueError with what to type."""
    first = role == "left" and len(table.columns) > 2
    held = no_ids(column, first=first) if role in ("left", "right") else ""
    if role == "right" and len(table.columns) > 2 and len(column) > 2 and len(column.distinct) == 1:
        held = "one value in all rows"  # as the second column of TREC's judgements
    if held:
        time = f"timestamp={column.name!r} (--read {quoted(f'timestamp={column.name}')}), " if held == "times" else ""
        raise ValueError(
            f"{table.name}: column {column.name!r} would be the {role} ids by its place, but seems to hold {held} "
            f"({column.cell(0)}, ...). Type {time}left=... and right=... (--left and --right) with the columns of ids"
        )
    if role != "weight":
        return column
    numbers = column.maybe_numbers
    if numbers is None:
        raise ValueError(
            f"{table.name} has no header, and its third column is no weight: its first value is "
            f"{str(column.cell(0))[:40]!r}. Type timestamp='2' if it is a time, read_comparisons (--read "
            "form=triplet) if rows are comparisons (i, j, k), weight=... (--read weight=...), or left='0', right='1' "
            "(--left 0 --right 1) to leave it aside"
        )
    known = numbers[~np.isnan(numbers)]
    if len(known) and known.min() >= UNIX:
        raise ValueError(
            f"{table.name} has no header, and its third column ({known[0]:.0f}, ...) can be a weight or a time; type "
            "weight='2' or timestamp='2' (on the command line --read weight=2 or --read timestamp=2)"
        )
    return column


def _understood(table: Table, columns: dict[str, Column], kept: int, pairs: Interactions, notes: list[str]) -> Reading:
    rows = len(columns["left"])
    words = {role: role if column.name.isdigit() else column.name for role, column in columns.items()}
    left_out, merged = rows - kept, kept - len(pairs)
    if left_out:
        notes = [*notes, f"{counted(left_out, 'row')} of weight 0 or below the smallest, no observed pairs"]
    if merged:
        notes = [*notes, counted(merged, "row repeats a pair and is merged", "rows repeat a pair and are merged")]
    return table.reading(
        columns,
        notes,
        kind="pairs",
        form=None,
        rows=rows,
        distinct={words[side]: count for side, count in zip(("left", "right"), pairs.shape, strict=True)},
        first=", ".join(f"{words[role]} {column.cell(0)}" for role, column in columns.items() if rows),
    )


def _parts(column: Column) -> np.ndarray:
    """Split as 0, 1, 2: numbers unchanged, words by their meaning, a mask (bools, or 0 and 1 under a name with
    "test" in it) as the test pairs."""
    if not column.is_text:
        values = column.numbers()
        mask = values.dtype.kind == "b" or ("test" in column.name.lower() and np.isin(values, (0, 1)).all())
        return values.astype(np.uint8) * 2 if mask else values
    words = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2}
    codes, names = column.coded
    unknown = sorted(set(names.tolist()) - set(words))
    if unknown:
        raise ValueError(f"split holds {unknown[0]!r}; it must hold 0, 1, 2 or train, valid, test")
    return np.array([words[value] for value in names.tolist()], dtype=np.uint8)[codes]


class _Parts(NamedTuple):
    train: Interactions
    valid: Interactions
    test: Interactions


class Parts(_Parts):
    """Training, validation and test pairs over the same ids; a part may be empty. `notes`: what the split did with
    pairs of equal times."""

    notes: tuple[str, ...] = ()


def split_given(interactions: Interactions, *, fit_validation: bool = False) -> Parts:
    """Part by the record's own `split`: 0 training, 1 validation, 2 test.

    Parameters
    ----------
    interactions: `Interactions` with a split.
    fit_validation: put the validation pairs into the training part, as published results on such a split do: they are
        fitted, and left out of the rankings of the test.

    Returns
    -------
    parts: `Parts` with train, valid and test.

    Raises
    ------
    ValueError: no split.
    TypeError: what are no `Interactions`.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1], [0, 1, 1], split=[0, 2, 0])
    >>> len(nk.data.split_given(pairs).test)
    1
    """
    check_instance(interactions, "interactions", Interactions)
    check_instance(fit_validation, "fit_validation", bool, int)
    if interactions.split is None:
        raise ValueError("interactions has no split; read it with split='column', or call split_random(interactions)")
    split = np.where(interactions.split == 1, 0, interactions.split) if fit_validation else interactions.split
    train, valid, test = (interactions.select(split == part) for part in range(3))
    return Parts(train, valid, test)


def split_random(
    interactions: Interactions, *, valid: float = 0.1, test: float = 0.1, random_state: Seed = None
) -> Parts:
    """Part at random, each pair alike. The parts have no timestamps: no later pairs than the fitted ones are held out.

    Parameters
    ----------
    interactions: `Interactions`.
    valid, test: shares of all pairs that are held out.
    random_state: seed, NumPy generator or RandomState.

    Returns
    -------
    parts: `Parts` with train, valid and test, all over the same ids.

    Raises
    ------
    ValueError: shares outside 0..1, or that leave nothing to train.
    TypeError: what are no `Interactions`.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(range(10), range(10))
    >>> parts = nk.data.split_random(pairs, valid=0.0, test=0.5, random_state=0)
    >>> len(parts.train) + len(parts.test), parts.test.shape
    (10, (10, 10))
    """
    check_instance(interactions, "interactions", Interactions)
    _check_shares(valid, test)
    draws = numpy_generator(random_state).random(len(interactions))
    return _split_parts(replace(interactions, timestamps=None), (draws < valid + test).astype(np.int8) + (draws < test))


def split_by_time(interactions: Interactions, *, valid: float = 0.1, test: float = 0.1) -> Parts:
    """Part by time: the latest pairs are the test, those before it the validation.

    A pair's time is that of its first observation. So the test holds new pairs only: none was observed before the cut.
    Pairs of equal times stay together, since a cut among them would show the test's moment in training: each share is
    the nearest that whole times allow, and `notes` has it.

    Parameters
    ----------
    interactions: `Interactions` with timestamps.
    valid, test: shares of all pairs.

    Returns
    -------
    parts: `Parts` with train, valid, test and notes.

    Raises
    ------
    ValueError: no timestamps, fewer different times than parts, shares outside 0..1.
    TypeError: what are no `Interactions`.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0] * 10, range(10), timestamps=np.arange(10.0))
    >>> nk.data.split_by_time(pairs).test.indices.tolist()
    [9]
    """
    check_instance(interactions, "interactions", Interactions)
    _check_shares(valid, test)
    if interactions.timestamps is None:
        raise ValueError("interactions has no timestamps; read it with timestamp='column', or call split_random")
    times, number, sizes = np.unique(interactions.timestamps, return_inverse=True, return_counts=True)
    n, count, parts = len(interactions), len(times), 1 + (valid > 0) + (test > 0)
    if count < parts:
        raise ValueError(
            f"timestamps has {counted(count, 'different time')}; a split into {counted(parts, 'part')} by time needs "
            f"{parts}: call split_random (on the command line --split random)"
        )
    before = np.concatenate([[0.0], np.cumsum(sizes) / n])  # share of the pairs before each time
    first_test = _nearest(before, 1 - test, parts - 1, count) if test else count  # numbers of times
    first_valid = _nearest(before, before[first_test] - valid, 1, first_test) if valid else first_test
    part = (number >= first_valid).astype(np.int8) + (number >= first_test)
    tied = int(sizes[sizes > 1].sum())
    found = ", ".join(
        f"{name} {(part == at).mean():.1%} (asked {share:.1%})"
        for name, at, share in (("validation", 1, valid), ("test", 2, test))
        if share
    )
    note = f"{tied:,} of {n:,} pairs have the time of another; pairs of one time stay together: {found}"
    return _split_parts(interactions, part, note if tied else None)


def _nearest(shares: np.ndarray, wanted: float, low: int, high: int) -> int:
    """The place from `low` to below `high` of the share nearest to the one wanted."""
    return low + int(np.abs(shares[low:high] - wanted).argmin())


def split_leave_last_out(interactions: Interactions, *, n_test: int = 1, random_state: Seed = None) -> Parts:
    """Hold out the last pairs of every left entity as test and the one before as validation.

    Entities with fewer than n_test + 2 pairs keep all of them for training. Pairs of equal times are in random order,
    by the seed, and `notes` counts the entities that this concerns; without timestamps all of the order is random.

    Parameters
    ----------
    interactions: `Interactions`.
    n_test: test pairs of each left entity.
    random_state: seed of the order of equal times.

    Returns
    -------
    parts: `Parts` with train, valid, test and notes.

    Raises
    ------
    ValueError: all times are one, n_test below 1.
    TypeError: what are no `Interactions`.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 0], [5, 6, 7], timestamps=[1.0, 2.0, 3.0])
    >>> parts = nk.data.split_leave_last_out(pairs, random_state=0)
    >>> parts.test.right_ids[parts.test.indices].tolist()
    [7]
    """
    check_instance(interactions, "interactions", Interactions)
    n_test, rows, times = check_integer(n_test, "n_test", low=1), interactions.rows, interactions.timestamps
    if times is not None and len(times) > 1 and (times == times[0]).all():
        raise ValueError(
            f"timestamps are all {times[0]}, and no pair is the last; call split_random (on the command line "
            "--split random)"
        )
    draws = numpy_generator(random_state).random(len(rows))
    order = np.lexsort((draws, rows) if times is None else (draws, times, rows))
    counts = np.diff(interactions.indptr)
    left = np.empty(len(rows), dtype=np.int64)  # how many pairs of the same entity come after
    left[order] = interactions.indptr[rows[order] + 1] - 1 - np.arange(len(rows))
    enough = counts[rows] >= n_test + 2
    part = np.where(enough & (left <= n_test), np.where(left < n_test, 2, 1), 0)
    if times is None:
        return _split_parts(interactions, part)
    tied = np.all([values[order][1:] == values[order][:-1] for values in (rows, times)], axis=0)
    drawn = len(np.unique(rows[order][1:][tied & (np.diff(part[order]) != 0)]))
    note = (
        f"{drawn:,} of {int((counts >= n_test + 2).sum()):,} histories have several pairs at the time of the cut; "
        "the seed draws which of them are held out"
    )
    return _split_parts(interactions, part, note if drawn else None)


def _check_shares(valid: float, test: float) -> None:
    check_real(valid, "valid", low=0)
    check_real(test, "test", low=0)
    if valid + test >= 1:
        raise ValueError(f"valid + test is {valid + test}; it must be below 1, so that pairs remain for training")


def _split_parts(interactions: Interactions, part: np.ndarray, note: str | None = None) -> Parts:
    parts = split_given(replace(interactions, split=part.astype(np.uint8)))
    parts.notes = () if note is None else (note,)
    return parts


class PlantedInteractions(NamedTuple):
    """Observed pairs, and the affinities (m, n) that drew them: sorting a row gives the best ranking there is."""

    interactions: Interactions
    affinities: np.ndarray  # (m, n)


def planted_interactions(
    m: int = 300,
    n: int = 200,
    *,
    rank: int = 8,
    pairs_per_row: int = 20,
    n_features: int = 16,
    random_state: Seed = None,
) -> PlantedInteractions:
    """Draw pairs from planted affinities that are nonlinear in the features of both sides.

    Features are standard normal; hidden vectors are tanh of a random linear map of them, and the affinity is their
    scaled product plus a popularity of the right side.

    Parameters
    ----------
    m, n: entities of both sides.
    rank: columns of the hidden vectors.
    pairs_per_row: distinct items of each row, drawn with probabilities softmax(affinities), by the Gumbel trick.
    n_features: columns of the features.
    random_state: seed, NumPy generator or RandomState.

    Returns
    -------
    planted: `PlantedInteractions` with interactions and the affinities (m, n).

    Raises
    ------
    ValueError: a number below 1, pairs_per_row above n.

    Examples
    --------
    >>> len(nk.data.planted_interactions(20, 10, pairs_per_row=3, random_state=0).interactions)
    60
    """
    m, n = check_integer(m, "m", low=1), check_integer(n, "n", low=1)
    pairs_per_row = check_integer(pairs_per_row, "pairs_per_row", low=1, high=n)
    rng = numpy_generator(random_state)
    left_features = rng.standard_normal((m, n_features), dtype=np.float32)
    right_features = rng.standard_normal((n, n_features), dtype=np.float32)
    maps = rng.standard_normal((2, n_features, rank)) * (2 / np.sqrt(n_features))
    hidden_left, hidden_right = np.tanh(left_features @ maps[0]), np.tanh(right_features @ maps[1])
    affinities = 4.0 * hidden_left @ hidden_right.T / np.sqrt(rank) + 0.5 * rng.standard_normal(n)
    keys = affinities + rng.gumbel(size=(m, n))
    chosen = np.argpartition(-keys, pairs_per_row - 1, axis=1)[:, :pairs_per_row]
    interactions = Interactions.from_pairs(
        np.repeat(np.arange(m), pairs_per_row),
        chosen.ravel(),
        left_ids=np.arange(m),
        right_ids=np.arange(n),
        left_features=left_features,
        right_features=right_features,
    )
    return PlantedInteractions(interactions, affinities)
