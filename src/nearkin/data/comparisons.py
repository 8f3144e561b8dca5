"""Reading comparisons: `read_comparisons` for files, and the same from arrays and from names."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nearkin import _check
from nearkin.data.comparison_forms import FORMS, expand_form, orient
from nearkin.data.comparison_tables import read_table
from nearkin.records import Comparisons, as_indices, describe_invalid, invalid_rows


def read_comparisons(
    path: str | os.PathLike,
    *,
    form: str = "ordered",
    on_invalid: str = "raise",
    header: bool | str = "auto",
    objects: Sequence[Any] | None = None,
) -> Comparisons:
    """Read comparisons from .csv, .tsv, .parquet or .npz.

    Columns: 3 object columns (i, j, k) mean d(i, j) < d(i, k), 4 columns (i, j, l, k) mean d(i, j) < d(l, k), with
    names of any type. A header may name further columns, in any order: `weight` (or `votes`, `count`), `annotator` (or
    `worker`, `subject`, `user`) and `response` (or `answer`), whose negative values turn the comparison round. Columns
    with other names hold objects. An .npz holds `triplets` or `quadruplets` and, if it likes, `objects` (names),
    `weights`, `annotators`, `responses`.

    form: "ordered" as above; "most-central" and "odd-one-out" are rows of three whose *first* is the most central or
        the odd one; each becomes two comparisons (`comparison_forms`).
    on_invalid: "raise" a ValueError with the row numbers of rows that repeat an index, or "drop" and count them in
        `n_dropped`.
    header: whether the first line of a .csv or .tsv names columns; "auto" looks whether it can be data.
    objects: all objects in the order wanted, also those without comparisons; None takes those met, sorted.
    """
    path = Path(path)
    table = read_table(path, header=header)
    rows = np.column_stack(table.objects)
    if table.names is None:
        return comparisons_from_names(
            rows,
            weights=table.weights,
            annotators=table.annotators,
            responses=table.responses,
            form=form,
            on_invalid=on_invalid,
            objects=objects,
        )
    return comparisons_from_array(
        rows,
        objects=table.names if objects is None else objects,
        weights=table.weights,
        annotators=table.annotators,
        responses=table.responses,
        form=form,
        on_invalid=on_invalid,
    )


def comparisons_from_names(
    rows: Any,
    *,
    weights: Any = None,
    annotators: Any = None,
    responses: Any = None,
    form: str = "ordered",
    on_invalid: str = "raise",
    objects: Sequence[Any] | None = None,
) -> Comparisons:
    """Comparisons from rows (m, 3) or (m, 4) of names of any one type; arguments as in `read_comparisons`.

    >>> comparisons_from_names([["Rome", "Milan", "Oslo"]]).objects.tolist()
    ['Milan', 'Oslo', 'Rome']
    """
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(f"rows has shape {rows.shape}; it must be (m, 3) or (m, 4)")
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        row = int(np.isnan(rows).any(axis=1).argmax())
        raise ValueError(f"row {row} is {rows[row].tolist()}; an object is missing (NaN). Remove the row")
    if objects is None:
        names, inverse = np.unique(rows, return_inverse=True)
        indices = inverse.reshape(rows.shape)
    else:
        names = np.asarray(objects)
        place = {name: index for index, name in enumerate(names.tolist())}
        unknown = [name for name in np.unique(rows).tolist() if name not in place]
        if unknown:
            raise ValueError(f"{len(unknown)} names in rows are not in objects, the first is {unknown[0]!r}")
        indices = np.array([place[name] for name in rows.ravel().tolist()], np.int64).reshape(rows.shape)
    return comparisons_from_array(
        indices,
        objects=names,
        weights=weights,
        annotators=annotators,
        responses=responses,
        form=form,
        on_invalid=on_invalid,
    )


def comparisons_from_array(
    indices: Any,
    *,
    objects: Any = None,
    weights: Any = None,
    annotators: Any = None,
    responses: Any = None,
    form: str = "ordered",
    on_invalid: str = "raise",
) -> Comparisons:
    """Comparisons from integer rows (m, 3) or (m, 4); `objects` are the names, None for 0 ... the largest index.

    Raises ValueError or TypeError for an empty table, indices that are no objects, NaN and text, and for rows that
    repeat an index unless on_invalid="drop".
    """
    _check.check_choice(on_invalid, "on_invalid", ("raise", "drop"))
    _check.check_choice(form, "form", FORMS)
    rows = as_indices(indices, "comparisons")
    if len(rows) == 0:
        raise ValueError("comparisons is empty; at least one row is needed")
    names = np.arange(int(rows.max()) + 1) if objects is None else np.asarray(objects)
    if responses is not None:
        rows = orient(rows, np.asarray(responses))
    rows, source = expand_form(rows, form)
    bad = invalid_rows(rows)
    if bad.any() and on_invalid == "raise":
        raise ValueError(describe_invalid(bad, rows))
    keep = source[~bad]
    if len(keep) == 0:
        raise ValueError(f"all {len(rows)} comparisons repeat an index; none is left")
    return Comparisons(
        rows[~bad],
        names,
        weights=None if weights is None else np.asarray(weights)[keep],
        annotators=None if annotators is None else np.asarray(annotators)[keep],
        n_dropped=int(bad.sum()),
    )


def as_comparisons(comparisons: Any, y: Any = None) -> Comparisons:
    """`comparisons` itself if it is a `Comparisons`, otherwise `comparisons_from_array` of it.

    With responses y (m,) it is turned round where y is False or -1, as cblearn reads them: (i, j, k) becomes (i, k, j)
    and (i, j, l, k) becomes (l, k, i, j). Raises ValueError if y has another length, or values other than True and
    False, or 1 and -1.
    """
    if not isinstance(comparisons, Comparisons):
        comparisons = comparisons_from_array(comparisons)
    if y is None:
        return comparisons
    responses = np.asarray(y)
    if responses.shape != (len(comparisons),):
        raise ValueError(f"y has shape {responses.shape}; it must be ({len(comparisons)},), one response a comparison")
    known = responses.dtype.kind == "b" or (responses.dtype.kind in "iuf" and np.isin(responses, (-1, 1)).all())
    if not known:
        shown = list(dict.fromkeys(map(repr, responses[:100].tolist())))
        raise ValueError(
            f"y holds {', '.join(shown[:4])}; it must hold True and False, or 1 and -1: whether the answer is as the "
            "row says. For 0 and 1 pass y == 1"
        )
    return replace(comparisons, indices=orient(comparisons.indices, responses))
