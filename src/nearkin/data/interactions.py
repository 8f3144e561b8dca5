"""Tables of observed pairs, read into `Interactions`."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_instance, check_integer, check_real, numpy_generator
from nearkin._fields import FileOrFrame, counted
from nearkin._pairs import Coded
from nearkin._types import Record, Seed
from nearkin.data.accompanying import described_features
from nearkin.data.files import brief
from nearkin.data.tables import NAMES, Column, Table, complete, is_frame, read_table
from nearkin.records import Interactions, Reading


@brief("left='0', right='1'")
def read_interactions(
    path: FileOrFrame, *,
    left: str | None = None, right: str | None = None, weight: str | None = None, timestamp: str | None = None,
    split: str | None = None, header: bool | None = None, delimiter: str | None = None, encoding: str | None = None,
    min_weight: float | None = None, missing: str = "raise",
    left_features: FileOrFrame | None = None, right_features: FileOrFrame | None = None,
) -> Interactions:  # fmt: skip
    r"""Read observed pairs from a table (see `nearkin.data.read_table`) or a DataFrame, with one row a pair. Weights of
    a pair that occurs more than once are added up.

    Of a sparse matrix (m, n) of SciPy, in memory or in a file of `save_npz`, the stored entries are pairs, the values
    weights, and ids the numbers of all rows and columns, also of empty ones.

    A role is the column that is named, else the only one with a usual name (user and item, query and document, rating,
    timestamp; docs/reading.md has the table). It is never a column's place or what its cells hold.

    Parameters
    ----------
    path: file, folder or pattern of parts, DataFrame or sparse matrix.
    left, right: columns of ids, integers or text; without a header "0", "1", ...
    weight: column of numbers; 0 leaves the row out.
    timestamp: column of numbers of one unit, or of ISO dates.
    split: column of 0 for training, 1 for validation, 2 for test, or of train, valid and test.
    header, delimiter, encoding: as in `nearkin.data.read_table`.
    min_weight: rows below it are left out.
    missing: "raise", or "drop" to leave out and count rows that lack an id, a weight or another of these cells.
    left_features, right_features: tables with a column of ids (see `read_features`). Their ids are then the whole
        catalogue of that side, so that ids without any pair get vectors too.

    Returns
    -------
    pairs: `Interactions`; `source` describes the reading.

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
    check_real(0 if min_weight is None else min_weight, "min_weight")
    needed = _SIDES if min_weight is None else (*_SIDES, "weight")
    table = read_table(path, header=header, delimiter=delimiter, encoding=encoding)
    typed = {"left": left, "right": right, "weight": weight, "timestamp": timestamp, "split": split}
    columns, notes = complete(table.roles(needed, **typed), missing)
    more: Record = {f"{side}_ids": np.arange(n) for side, n in zip(_SIDES, table.shape or (), strict=False)}
    for side, source in zip(_SIDES, (left_features, right_features), strict=True):
        if source is not None:
            names, features, _, about = described_features(source, called=columns[side].name)
            columns, others = _listed(columns, side, names, "the table" if is_frame(source) else str(source), missing)
            more |= {f"{side}_ids": names, f"{side}_features": features}
            notes += [about, *others]
    values = {name: read(columns[role]) for role, (name, read) in _VALUES.items() if role in columns}
    keep = _observed(columns["weight"], values["weights"], min_weight) if "weight" in columns else slice(None)
    more |= {name: column[keep] for name, column in values.items()}
    sides = [Coded(codes[keep], names) for codes, names in (columns[side].ids() for side in _SIDES)]
    pairs = Interactions.from_pairs(*sides, **more)
    return replace(pairs, source=_understood(table, columns, len(sides[0].codes), pairs, notes))


_SIDES = ("left", "right")


def _listed(
    columns: dict[str, Column], side: str, names: np.ndarray, file: str, missing: str
) -> tuple[dict[str, Column], list[str]]:
    """The rows whose ids of a side are among the `names` in the file of its features, and a note that counts the
    others; ValueError for these unless `missing` is "drop"."""
    ids = columns[side].plain_ids()
    gone = ~np.isin(ids, names)
    if not gone.any() or ids.dtype.kind != names.dtype.kind:  # of two types: an error of `from_pairs`
        return columns, []
    lacks = f"{file} lacks {counted(len(np.unique(ids[gone])), 'id')} of {columns[side].title}"
    if missing == "raise" or gone.all():
        what = f"{lacks}, the first is {ids[gone][0].item()!r} ({gone.sum():,} of {len(gone):,} rows)"
        raise ValueError(f"{what}; add a row for each, or type missing='drop' to leave their pairs out")
    kept = {role: values.take(~gone) for role, values in columns.items()}
    return kept, [f"{counted(int(gone.sum()), 'row')} left out: {lacks}"]


def _observed(weight: Column, numbers: np.ndarray, least: float | None) -> np.ndarray | slice:
    """Rows whose weight is above 0 and at least `least`."""
    if least is None:
        way = "a weight counts observations: leave such rows out by min_weight=0, or name another column"
        weight.refuse(numbers < 0, "has negative weights", way)
    weight.refuse(np.isinf(numbers), "is infinite", "correct the weight")
    keep = (numbers != 0) & (True if least is None else numbers >= least)
    if not keep.any():
        raise ValueError(f"{weight.title} is 0 or below min_weight=... in every row, so no pair is left: name another")
    return slice(None) if keep.all() else keep


def _understood(table: Table, columns: dict[str, Column], kept: int, pairs: Interactions, notes: list[str]) -> Reading:
    rows = len(columns["left"])
    words = {role: role if column.name.isdigit() else column.name for role, column in columns.items()}
    if "weight" not in columns and len(table.columns) > len(columns):
        notes = [*notes, f"each row counts 1, as no column is called {', '.join(NAMES['weight'])}"]
    if kept < rows:
        notes = [*notes, f"{counted(rows - kept, 'row')} of weight 0 or below the smallest, no observed pairs"]
    if len(pairs) < kept:
        notes = [*notes, counted(kept - len(pairs), "row repeats a pair", "rows repeat a pair") + ", merged"]
    first = ", ".join(f"{words[role]} {column.cells[0].as_py()}" for role, column in columns.items())
    distinct = {words[side]: count for side, count in zip(_SIDES, pairs.shape, strict=True)}
    return table.reading(columns, notes, "pairs", rows, distinct, first)


def _parts(column: Column) -> np.ndarray:
    """Split as 0, 1, 2: these numbers, or train, valid and test."""
    if column.is_numeric and column.kind != "bool":  # True is not 1, which is validation
        return column.numbers()
    places = np.array(column.text())[:, None, None] == [("train", "valid", "test"), ("0", "1", "2")]
    column.refuse(~places.any(axis=(1, 2)), "holds no part", "it must hold 0, 1, 2 or train, valid, test")
    return places.any(axis=1).argmax(axis=1)


# role -> the argument of `from_pairs`, and what its cells are read as
_VALUES = {"weight": ("weights", Column.numbers), "timestamp": ("timestamps", Column.times), "split": ("split", _parts)}


class _Parts(NamedTuple):
    train: Interactions
    valid: Interactions
    test: Interactions


class Parts(_Parts):
    """Training, validation and test pairs over the same ids; a part may be empty. `notes`: what the split did with
    pairs of equal times."""

    notes: tuple[str, ...] = ()


def split_given(interactions: Interactions) -> Parts:
    """Part by the record's own `split`: 0 training, 1 validation, 2 test.

    Parameters
    ----------
    interactions: `Interactions` with a split.

    Returns
    -------
    parts: `Parts` with train, valid and test.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1], [0, 1, 1], split=[0, 2, 0])
    >>> len(nk.data.split_given(pairs).test)
    1
    """
    check_instance(interactions, "interactions", Interactions)
    if interactions.split is None:
        raise ValueError("interactions has no split; read it with split='column', or call split_random(interactions)")
    return Parts(*(interactions.select(interactions.split == part) for part in range(3)))


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
        what = f"timestamps has {counted(count, 'different time')}; a split into {counted(parts, 'part')} by time"
        raise ValueError(f"{what} needs {parts}: call split_random, or type split='random'")
    before = np.concatenate([[0.0], np.cumsum(sizes) / n])  # share of the pairs before each time
    part, stop = np.zeros(n, np.uint8), count  # numbers of times
    for share, low in ((test, parts - 1), (valid, 1)):
        if share:
            stop = low + int(np.abs(before[low:stop] - (before[stop] - share)).argmin())
        part += number >= stop
    tied = int(sizes[sizes > 1].sum())
    asked = ("validation", 1, valid), ("test", 2, test)
    shares = ", ".join(f"{name} {(part == at).mean():.1%} (asked {share:.1%})" for name, at, share in asked if share)
    note = f"{tied:,} of {n:,} pairs have the time of another; pairs of one time stay together: {shares}"
    return _split_parts(interactions, part, note if tied else None)


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
        raise ValueError(f"timestamps are all {times[0]}, so none is last; call split_random, or type split='random'")
    draws = numpy_generator(random_state).random(len(rows))
    when = draws if times is None else times
    order = np.lexsort((draws, when, rows))  # keeps `rows`, which are sorted
    counts = np.diff(interactions.indptr)
    later = np.empty(len(rows), dtype=np.int64)  # pairs of the same entity
    later[order] = interactions.indptr[rows + 1] - 1 - np.arange(len(rows))
    enough = counts[rows] >= n_test + 2
    part = np.where(enough & (later <= n_test), np.where(later < n_test, 2, 1), 0)
    tied = (rows[1:] == rows[:-1]) & (when[order][1:] == when[order][:-1])
    drawn = len(np.unique(rows[1:][tied & (np.diff(part[order]) != 0)]))
    long, way = int((counts >= n_test + 2).sum()), "the seed draws which of them are held out"
    note = f"{drawn:,} of {long:,} histories have several pairs at the time of the cut; {way}"
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
    m: int = 300, n: int = 200, *,
    rank: int = 8, pairs_per_row: int = 20, n_features: int = 16, random_state: Seed = None,
) -> PlantedInteractions:  # fmt: skip
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

    Examples
    --------
    >>> len(nk.data.planted_interactions(20, 10, pairs_per_row=3, random_state=0).interactions)
    60
    """
    m, n = check_integer(m, "m", low=1), check_integer(n, "n", low=1)
    pairs_per_row = check_integer(pairs_per_row, "pairs_per_row", low=1, high=n)
    rng = numpy_generator(random_state)
    left, right = (rng.standard_normal((size, n_features), dtype=np.float32) for size in (m, n))
    maps = rng.standard_normal((2, n_features, rank)) * (2 / np.sqrt(n_features))
    hidden_left, hidden_right = np.tanh(left @ maps[0]), np.tanh(right @ maps[1])
    affinities = 4.0 * hidden_left @ hidden_right.T / np.sqrt(rank) + 0.5 * rng.standard_normal(n)
    chosen = np.argpartition(-affinities - rng.gumbel(size=(m, n)), pairs_per_row - 1, axis=1)[:, :pairs_per_row]
    matrix = sp.csr_matrix((np.ones(chosen.size), chosen.ravel(), np.arange(m + 1) * pairs_per_row), shape=(m, n))
    pairs = Interactions.from_matrix(matrix).with_features(left=left, right=right)
    return PlantedInteractions(pairs, affinities)
