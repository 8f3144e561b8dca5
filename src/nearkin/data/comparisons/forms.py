"""Other ways to write an answer down, turned into ordered comparisons: cblearn's responses, central and odd objects."""

import numpy as np

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
