"""Answers about the same objects: matched and joined by the objects' names, counted, and what they cannot determine."""

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nearkin._types import Record
from nearkin.data.comparisons import as_comparisons
from nearkin.data.comparisons.votes import count_contradictions
from nearkin.records import Answers, Comparisons


def match(comparisons: Answers, objects: np.ndarray) -> Comparisons:
    """`comparisons` with indices into `objects`. Raises ValueError for an object that is not among them.

    An integer array is taken to index `objects` already.
    """
    if not isinstance(comparisons, Comparisons):
        comparisons = as_comparisons(comparisons)
        if comparisons.n_objects > len(objects):
            raise ValueError(
                f"comparisons has the index {comparisons.n_objects - 1}; the embedding has {len(objects)} objects, "
                f"0 ... {len(objects) - 1}"
            )
        return replace(comparisons, objects=objects)
    if comparisons.objects is objects or np.array_equal(comparisons.objects, objects):
        return comparisons
    used = np.unique(comparisons.indices)
    place = {name: index for index, name in enumerate(objects.tolist())}
    names = comparisons.objects[used].tolist()
    unknown = [name for name in names if name not in place]
    if unknown:
        raise ValueError(
            f"comparisons has {len(unknown)} objects that are not in the embedding, the first is {unknown[0]!r}; "
            "learn them with partial_fit, or place them with transform"
        )
    table = np.zeros(comparisons.n_objects, np.uint32)
    table[used] = [place[name] for name in names]
    return replace(comparisons, indices=table[comparisons.indices], objects=objects)


def join(first: Comparisons, second: Comparisons) -> Comparisons:
    """Both sets of answers; objects of `first` keep their rows, new ones follow. Mixed kinds all become quadruplets."""
    if np.array_equal(first.objects, second.objects):
        objects, moved = first.objects, second.indices
    else:
        place = {name: index for index, name in enumerate(first.objects.tolist())}
        fresh = [name for name in second.objects.tolist() if name not in place]
        objects = np.concatenate([first.objects, np.asarray(fresh)]) if fresh else first.objects
        place.update({name: len(first.objects) + index for index, name in enumerate(fresh)})
        moved = np.array([place[name] for name in second.objects.tolist()], np.uint32)[second.indices]
    second = replace(second, indices=moved, objects=objects)
    first = replace(first, objects=objects)
    mixed = first.n_columns != second.n_columns
    rows = [part.quadruplets() if mixed else part.indices for part in (first, second)]
    weights = None
    if first.weights is not None or second.weights is not None:
        weights = np.concatenate([np.ones(len(c)) if c.weights is None else c.weights for c in (first, second)])
    n_dropped, events = first.n_dropped + second.n_dropped, _join_events(first, second)
    return Comparisons(np.concatenate(rows), objects, weights=weights, n_dropped=n_dropped, events=events)


def _join_events(first: Comparisons, second: Comparisons) -> np.ndarray | None:
    """The events of both, no number in common; rows of a record without events are events of their own."""
    if first.events is None and second.events is None:
        return None
    parts = [
        np.arange(len(c)) if c.events is None else np.unique(c.events, return_inverse=True)[1] for c in (first, second)
    ]
    return np.concatenate([parts[0], parts[1] + len(first)])


def count_per_object(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of comparisons that each object takes part in."""
    flat = comparisons.indices.ravel()
    counts = np.bincount(flat, minlength=comparisons.n_objects)
    if comparisons.indices.shape[1] == 4:  # an object may occur in both pairs of a quadruplet: count the row once
        i, j, l, k = comparisons.indices.T  # noqa: E741  the paper's letters
        for twice in (np.where(i == l, i, k)[(i == l) | (i == k)], np.where(j == l, j, k)[(j == l) | (j == k)]):
            counts -= np.bincount(twice, minlength=comparisons.n_objects)
    return counts


def group_objects(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of each object's group; objects of different groups were never in one pair, even indirectly.

    Distances within groups may be compared (a quadruplet can do so), but the groups' relative position is arbitrary. An
    object without comparisons is a group by itself.
    """
    i, j, l, k = comparisons.quadruplets().T.astype(np.int64)  # noqa: E741
    rows, columns = np.concatenate([i, l]), np.concatenate([j, k])
    n = comparisons.n_objects
    graph = coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(n, n)).tocsr()
    return connected_components(graph, directed=False)[1]


def describe(comparisons: Comparisons, few: int) -> Record:
    """Counts and, in "notes", a sentence for every limit of an embedding of `comparisons`.

    `few`: fewer comparisons than this leave an object's place uncertain (a point in p dimensions needs at least p + 1).
    """
    counts, groups = count_per_object(comparisons), group_objects(comparisons)
    used = counts > 0
    n_groups = len(np.unique(groups[used]))
    names = comparisons.objects
    report: Record = {
        "n_objects": comparisons.n_objects,
        "n_comparisons": len(comparisons),
        "n_dropped": comparisons.n_dropped,
        "n_contradictions": count_contradictions(comparisons),
        "n_groups": n_groups,
        "groups": groups,
        "comparisons_per_object": counts,
        "unplaced": names[~used],
        "few": names[used & (counts < few)],
    }
    notes = []
    if n_groups > 1:
        notes.append(
            f"{n_groups} groups of objects are not connected by any comparison: their relative place is arbitrary"
        )
    if (~used).any():
        notes.append(f"{int((~used).sum())} objects have no comparison: they are put at the origin")
    if len(report["few"]):
        notes.append(
            f"{len(report['few'])} objects have fewer than {few} comparisons: their place is hardly determined"
        )
    if report["n_contradictions"]:
        notes.append(f"{report['n_contradictions']} questions were answered both ways")
    report["notes"] = notes
    return report
