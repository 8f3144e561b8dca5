"""What a response says: which of two (or of three) objects was chosen, in the many ways that this is written."""

import re

import numpy as np

from nearkin.data.column import Column
from nearkin.data.comparisons.roles import Roles

_NAMES = (("left", "right"), ("l", "r"), ("a", "b"), ("first", "second"))


def answered(roles: Roles, rows: np.ndarray, response: str | None, source: str) -> np.ndarray:
    """Rows (m, 3) or (m, 4) of ids, turned so that they say what the responses say.

    rows: the ids of `roles.objects`. Of three objects without an anchor the chosen one comes first (forms "odd-one-out"
    and "most-central"). ValueError with what to type where the responses have two readings.
    """
    column = roles.response
    if column is None:
        return rows
    if roles.form in ("odd-one-out", "most-central"):
        return _first_of_three(_chosen(column, rows, [c.name for c in roles.objects], source), rows)
    value = None if response is None or "=" not in response else response.partition("=")[2]
    signs = signs_of(column, rows, [c.name for c in roles.objects], value, options=roles.options, source=source)
    return orient(rows, signs)


def signs_of(
    column: Column, rows: np.ndarray, names: list[str], value: str | None, *, options: bool, source: str
) -> np.ndarray:
    """+1 where the row is true as it stands, -1 where it must be turned round, (m,)."""
    texts = np.array([str(cell) for cell in column.values.tolist()])
    if (column.missing is not None and column.missing.any()) or (texts == "").any():
        row = int((texts == "").argmax()) if column.missing is None else int(column.missing.argmax())
        raise ValueError(f"{source}: column {column.name!r} has no response in row {row}; remove the row")
    kinds = set(texts.tolist())
    if value is not None:
        if value not in kinds or len(kinds) > 2:
            raise ValueError(
                f"{source}: column {column.name!r} holds {_some(kinds)}; {value!r} cannot choose the first"
            )
        return np.where(texts == value, 1, -1)
    if column.values.dtype.kind == "b":
        return np.where(column.values, 1, -1)
    readings = dict(_readings(texts, kinds, rows, names, options=options))
    distinct = {signs.tobytes(): signs for signs in readings.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    raise _unclear(column.name, kinds, list(readings), source, texts)


def _readings(texts: np.ndarray, kinds: set[str], rows: np.ndarray, names: list[str], *, options: bool):
    """Every way to read the responses: (in words, signs)."""
    lower = np.char.lower(texts)
    few = set(lower.tolist())
    if few <= {"1", "-1", "+1", "1.0", "-1.0"}:
        yield "+1 as the row says, -1 reversed", np.where(np.char.startswith(texts, "-"), -1, 1)
    if few <= {"1", "2"}:
        yield "1 the first, 2 the second", np.where(texts == "1", 1, -1)
    if few == {"0", "1"}:
        yield "1 as the row says, 0 reversed", np.where(texts == "1", 1, -1)
    if few <= {"0", "1"} and options:
        yield "0 the first, 1 the second", np.where(texts == "0", 1, -1)
    if few <= {"true", "false"}:
        yield "true as the row says", np.where(lower == "true", 1, -1)
    named = _by_name(lower, few, names[-2:])
    if named is not None:
        yield "the column of the chosen object", named
    first, second = (rows[:, 1], rows[:, 2]) if rows.shape[1] == 3 else (rows[:, 0], rows[:, 2])
    chosen = texts.astype(rows.dtype) if rows.dtype.kind == "U" else texts.astype(object)
    first, second = (side.astype(str).astype(chosen.dtype) for side in (first, second))
    if rows.shape[1] == 3 and ((chosen == first) | (chosen == second)).all():
        yield "the name of the chosen object", np.where(chosen == first, 1, -1)


def _by_name(lower: np.ndarray, few: set[str], names: list[str]) -> np.ndarray | None:
    """The response is the name of the chosen column, a word of it, or left and right, a and b, first and second."""
    words = [{name.lower(), *re.split(r"[^a-z0-9]+", name.lower())} for name in names]
    own = [words[0] - words[1], words[1] - words[0]]
    for first, second in (own, *(({a}, {b}) for a, b in _NAMES)):
        if few <= first | second:
            return np.where(np.isin(lower, list(first)), 1, -1)
    return None


def _chosen(column: Column, rows: np.ndarray, names: list[str], source: str) -> np.ndarray:
    """The place (m,) of the chosen one of three objects: by its position 1, 2, 3, its column or its name."""
    texts = np.array([str(cell) for cell in column.values.tolist()])
    few = set(texts.tolist())
    readings = []
    if few <= {"1", "2", "3"}:
        readings.append(texts.astype(np.int64) - 1)
    if few <= {"0", "1", "2"}:
        readings.append(texts.astype(np.int64))
    if few <= set(names):
        readings.append(np.array([names.index(text) for text in texts.tolist()]))
    same = rows.astype(str) == texts[:, None]
    if same.any(axis=1).all():
        readings.append(same.argmax(axis=1))
    distinct = {places.astype(np.int64).tobytes(): places for places in readings}
    if len(distinct) != 1:
        raise _unclear(
            column.name, few, ["0, 1, 2", "1, 2, 3", "the name of the object"][: 3 * bool(readings)], source, texts
        )
    return next(iter(distinct.values()))


def _first_of_three(places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[places]
    return np.take_along_axis(rows, order, axis=1)


def _unclear(name: str, kinds: set[str], readings: list[str], source: str, texts: np.ndarray) -> ValueError:
    if not readings:
        odd = next((row for row, text in enumerate(texts.tolist()) if text not in ("1", "-1", "2")), 0)
        return ValueError(
            f"{source}: column {name!r} holds {_some(kinds)}; responses row {odd} is {str(texts[odd])[:40]!r}. "
            "A response must be +1 (as the row says) or -1 (reversed), 1 or 2, left or right, or the name of "
            "the chosen object"
        )
    value = sorted(kinds)[-1]
    return ValueError(
        f"{source}: column {name!r} holds {_some(kinds)}, which can mean {' or '.join(readings)}; type "
        f"response='{name}={value}' (--response {name}={value}) with the value that chooses the first"
    )


def _some(kinds: set[str]) -> str:
    return ", ".join(repr(kind[:40]) for kind in sorted(kinds)[:4]) + (", ..." if len(kinds) > 4 else "")


FORMS = ("ordered", "most-central", "odd-one-out")


def orient(indices: np.ndarray, responses: np.ndarray) -> np.ndarray:
    """Turn rows with a negative response round: (i, j, k) to (i, k, j), (i, j, l, k) to (l, k, i, j).

    responses (m,) are +1 or -1 (or true and false); 0, NaN and others are a ValueError.
    """
    if responses.shape != (len(indices),):
        raise ValueError(f"responses has shape {responses.shape}; it must be ({len(indices)},), one per comparison")
    if responses.dtype.kind == "b":
        responses = np.where(responses, 1, -1)
    if responses.dtype.kind not in "iuf" or not np.isin(responses, (-1, 1)).all():
        bad = 0 if responses.dtype.kind not in "iuf" else int((~np.isin(responses, (-1, 1))).argmax())
        raise ValueError(f"responses row {bad} is {responses[bad]!r}; it must be +1 (as the row says) or -1 (reversed)")
    turned = indices[:, [0, 2, 1]] if indices.shape[1] == 3 else indices[:, [2, 3, 0, 1]]
    return np.where((responses < 0)[:, None], turned, indices)


def expand_form(indices: np.ndarray, form: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `form` as ordered comparisons, and for each the number of the row it came from.

    "most-central": in (a, b, c), a is between the others: d(b, a) < d(b, c) and d(c, a) < d(c, b).
    "odd-one-out": in (a, b, c), a is the odd one: d(b, c) < d(b, a) and d(c, b) < d(c, a).
    """
    source = np.arange(len(indices))
    if form == "ordered":
        return indices, source
    if indices.shape[1] != 3:
        raise ValueError(f"form={form!r} needs rows of three objects; these have {indices.shape[1]}")
    first, second = ([1, 0, 2], [2, 0, 1]) if form == "most-central" else ([1, 2, 0], [2, 1, 0])
    rows = np.stack([indices[:, first], indices[:, second]], axis=1).reshape(-1, 3)
    return np.ascontiguousarray(rows), np.repeat(source, 2)


_MOST = 40  # comparisons of one rated pair at most


def rated_quadruplets(
    pairs: np.ndarray, ratings: np.ndarray, raters: np.ndarray | None, *, high_is_near: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, 4) of ids (i, j, l, k), and for each the number of the rating (of the nearer pair) it comes from.

    pairs (n, 2), ratings (n,). Two ratings are compared if one rater gave both and they differ. Each is compared with
    at most 40 others, evenly spaced among the rater's ratings; the rows are the same in every run.
    """
    nearness = ratings if high_is_near else -ratings
    groups = np.zeros(len(pairs), np.int64) if raters is None else np.unique(raters, return_inverse=True)[1].reshape(-1)
    near, far = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        rows = rows[np.argsort(nearness[rows], kind="stable")]
        strides = (
            np.unique(np.linspace(1, len(rows) - 1, min(_MOST, len(rows) - 1)).astype(np.int64))
            if len(rows) > 1
            else ()
        )
        for stride in strides:
            low, high = rows[:-stride], rows[stride:]
            differ = nearness[high] > nearness[low]
            near.append(high[differ])
            far.append(low[differ])
    first, second = np.concatenate(near), np.concatenate(far)
    swapped = (pairs[first] == pairs[second][:, ::-1]).all(axis=1)
    apart = ~swapped & (pairs[first] != pairs[second]).any(axis=1)  # a pair rated twice says nothing of another
    first, second = first[apart], second[apart]
    return np.concatenate([pairs[first], pairs[second]], axis=1), first
