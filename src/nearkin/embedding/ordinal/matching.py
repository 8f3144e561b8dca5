"""Comparisons of the same objects from different sources: matched and joined by the objects' names."""

from dataclasses import replace

import numpy as np

from nearkin.data.comparisons import as_comparisons
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
    """Both sets of answers; objects of `first` keep their rows, new ones follow. If mixed, all become quadruplets."""
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
