"""Comparisons from arrays and from names, and the forms that answers come in as ordered comparisons."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from nearkin import _check
from nearkin._pairs import Coded, number_ids
from nearkin._types import ArrayLike, Record
from nearkin.records import Answers, Comparisons, as_indices, describe_invalid, invalid_rows

FORMS = ("ordered", "odd-one-out")
MOST_OBJECTS = 10_000_000  # of an array of numbers that has fewer comparisons


def comparisons_from_names(
    rows: "ArrayLike | Coded", *, objects: Sequence[object] | None = None, **options: Any
) -> Comparisons:
    """Comparisons from rows (m, 3) or (m, 4) of names of any one type; options as in `comparisons_from_array`.

    >>> comparisons_from_names([["Rome", "Milan", "Oslo"]]).objects.tolist()
    ['Milan', 'Oslo', 'Rome']
    """
    rows = rows if isinstance(rows, Coded) else _check.as_array(rows, "rows")
    shape = rows.codes.shape if isinstance(rows, Coded) else rows.shape
    if len(shape) != 2 or shape[1] not in (3, 4):
        raise ValueError(f"rows has shape {shape}; it must be (m, 3) or (m, 4)")
    flat = Coded(rows.codes.ravel(), rows.names) if isinstance(rows, Coded) else rows.ravel()
    numbers, names = number_ids(flat, cast("ArrayLike | None", objects), "rows", "objects")
    return comparisons_from_array(numbers.reshape(shape), objects=names, **options)


def comparisons_from_array(
    indices: ArrayLike, *,
    objects: ArrayLike | Sequence[object] | None = None, weights: ArrayLike | None = None,
    annotators: ArrayLike | None = None, responses: ArrayLike | None = None, judgements: ArrayLike | None = None,
    form: str = "ordered", missing: str = "raise",
) -> Comparisons:  # fmt: skip
    """Comparisons from integer rows (m, 3) or (m, 4); `objects` are the names, None for 0 ... the largest index.

    A row (a, b, c) of the form "odd-one-out", where a is the odd one, is d(b, c) < d(b, a) and d(c, b) < d(c, a).

    `judgements`, (m,) or (m, 2), are those of `Comparisons`; rows of odd or central ones are a judgement each.

    Raises ValueError or TypeError for an empty table, indices that are no objects, NaN and text, and for rows that
    repeat an index unless missing="drop".
    """
    _check.check_choice(missing, "missing", ("raise", "drop"))
    _check.check_choice(form, "form", FORMS)
    rows = as_indices(indices, "comparisons")
    n_rows, source = len(rows), np.arange(len(rows))  # of each comparison its row
    if n_rows == 0:
        raise ValueError("comparisons is empty; at least one row is needed")
    largest = int(rows.max())
    if objects is None and largest > max(MOST_OBJECTS, 10 * rows.size):
        way = "an embedding has a row for each index from 0. For ids, use nearkin.data.comparisons_from_names(rows)"
        raise ValueError(f"comparisons has the index {largest:,}; {way}")
    names = np.arange(largest + 1) if objects is None else _check.as_array(cast("ArrayLike", objects), "objects")
    if form == "odd-one-out":
        if rows.shape[1] != 3:
            raise ValueError(f"form={form!r} needs rows of three objects; these have {rows.shape[1]}")
        rows, source = rows[:, [[1, 2, 0], [2, 1, 0]]].reshape(-1, 3), np.repeat(source, 2)
        judgements = np.arange(n_rows) if judgements is None else judgements
    bad = invalid_rows(rows)
    if bad.any() and missing == "raise":
        raise ValueError(describe_invalid(bad, rows))
    if bad.all():
        raise ValueError(f"all {len(rows)} comparisons repeat an index; none is left")
    keep = source[~bad]
    columns: Record = {"weights": weights, "annotators": annotators, "judgements": judgements, "responses": responses}
    for name, column in columns.items():
        if column is not None and np.shape(column)[:1] != (n_rows,):
            raise ValueError(f"{name} has shape {np.shape(column)}; it must be {(n_rows,)}, a value for each row")
        columns[name] = None if column is None else _check.as_array(column, name)[keep]
    turned, events = columns.pop("responses"), keep if form == "odd-one-out" else None
    answers = Comparisons(rows[~bad], names, n_dropped=int(bad.sum()), events=events, **columns)
    return answers if turned is None else turn(answers, turned)


def as_comparisons(comparisons: Answers, y: object = None) -> Comparisons:
    """`comparisons` itself if it is a `Comparisons`, otherwise `comparisons_from_array` of it.

    With responses y (m,) it is reversed where y is False or -1, as cblearn reads them: (i, j, k) becomes (i, k, j)
    and (i, j, l, k) becomes (l, k, i, j). ValueError if y has another length or other values.
    """
    if not isinstance(comparisons, Comparisons):
        comparisons = comparisons_from_array(comparisons)
    return comparisons if y is None else turn(comparisons, _check.as_array(cast("ArrayLike", y), "y"), "y")


def turn(comparisons: Comparisons, responses: np.ndarray, name: str = "responses") -> Comparisons:
    """`comparisons` with those reversed for which `orient` reverses the row."""
    indices, judgements = orient(comparisons.indices, responses, name), comparisons.judgements
    if judgements is not None and judgements.ndim == 2:
        judgements = orient(judgements, responses, name)
    return replace(comparisons, indices=indices, judgements=judgements)


def orient(indices: np.ndarray, responses: np.ndarray, name: str = "responses") -> np.ndarray:
    """Turn (i, j, k) to (i, k, j), (i, j, l, k) to (l, k, i, j) where responses (m,) are -1 or false, not 1 or true."""
    responses = np.asarray(responses.tolist()) if responses.dtype.kind == "O" else responses
    if responses.shape != (len(indices),):
        raise ValueError(f"{name} has shape {responses.shape}; it must be ({len(indices)},), one response a comparison")
    if responses.dtype.kind != "b" and not (responses.dtype.kind in "iuf" and np.isin(responses, (-1, 1)).all()):
        shown = list(dict.fromkeys(map(repr, responses[:100].tolist())))
        what = f"{name} holds {', '.join(shown[:4])}; it must hold True and False, or 1 and -1"
        raise ValueError(f"{what}: whether the row is the answer. For 0 and 1 pass {name} == 1")
    turned = indices[:, {2: [1, 0], 3: [0, 2, 1], 4: [2, 3, 0, 1]}[indices.shape[1]]]  # 2: judgements of two pairs
    return np.where((responses > 0)[:, None], indices, turned)


_MOST = 40  # comparisons of one rated pair at most


def rated_quadruplets(
    pairs: np.ndarray, ratings: np.ndarray, raters: np.ndarray | None, *, high_is_near: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, 4) of ids (i, j, l, k), and (m, 2) the numbers of the two ratings compared, the nearer pair's first.

    pairs (n, 2), ratings (n,). Two ratings are compared if one rater gave both and they differ. Each is compared with
    at most 40 others, evenly spaced among the rater's ratings; the rows are the same in every run.
    """
    nearness = ratings if high_is_near else -ratings
    groups = np.zeros(len(pairs), np.int64) if raters is None else np.unique(raters, return_inverse=True)[1].reshape(-1)
    near, far = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        rows = rows[np.argsort(nearness[rows], kind="stable")]
        most = len(rows) - 1
        for stride in np.unique(np.linspace(1, most, min(_MOST, most)).astype(np.int64)):
            low, high = rows[:-stride], rows[stride:]
            differ = nearness[high] > nearness[low]
            near.append(high[differ])
            far.append(low[differ])
    first, second = np.concatenate(near), np.concatenate(far)
    swapped = (pairs[first] == pairs[second][:, ::-1]).all(axis=1)
    apart = ~swapped & (pairs[first] != pairs[second]).any(axis=1)  # a pair rated twice does not rank another
    first, second = first[apart], second[apart]
    return np.concatenate([pairs[first], pairs[second]], axis=1), np.stack([first, second], axis=1)
