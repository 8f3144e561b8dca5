"""What the comparisons themselves can tell: how much is known of each object, and what cannot be known."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nearkin._types import Record
from nearkin.data.comparisons.votes import count_contradictions
from nearkin.records import Comparisons


def count_per_object(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of comparisons that each object takes part in."""
    flat = comparisons.indices.ravel()
    counts = np.bincount(flat, minlength=comparisons.n_objects)
    if comparisons.indices.shape[1] == 4:  # an object may stand in both pairs of a quadruplet: count the row once
        i, j, l, k = comparisons.indices.T  # noqa: E741  the paper's letters
        for twice in (np.where(i == l, i, k)[(i == l) | (i == k)], np.where(j == l, j, k)[(j == l) | (j == k)]):
            counts -= np.bincount(twice, minlength=comparisons.n_objects)
    return counts


def group_objects(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of each object's group; objects of different groups were never in one pair, even indirectly.

    Distances within groups may be compared (a quadruplet can do so), but where the groups lie to each other means
    nothing. Objects without comparisons are groups of their own.
    """
    i, j, l, k = comparisons.quadruplets().T.astype(np.int64)  # noqa: E741
    rows, columns = np.concatenate([i, l]), np.concatenate([j, k])
    n = comparisons.n_objects
    graph = coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(n, n)).tocsr()
    return connected_components(graph, directed=False)[1]


def describe(comparisons: Comparisons, few: int) -> Record:
    """Counts and, in "notes", a sentence for everything that limits what an embedding of `comparisons` can mean.

    `few`: fewer comparisons than this leave an object badly placed (p + 1 fix a point in p dimensions at best).
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
            f"{n_groups} groups of objects are not connected by any comparison: their relative place means nothing"
        )
    if (~used).any():
        notes.append(f"{int((~used).sum())} objects have no comparison: they stand at the origin")
    if len(report["few"]):
        notes.append(
            f"{len(report['few'])} objects have fewer than {few} comparisons: their place is hardly determined"
        )
    if report["n_contradictions"]:
        notes.append(f"{report['n_contradictions']} questions were answered both ways")
    report["notes"] = notes
    return report
