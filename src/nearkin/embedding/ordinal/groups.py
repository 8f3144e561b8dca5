"""A permutation test of two groups of raters."""

from collections.abc import Mapping
from math import comb
from typing import Any

import numpy as np

from nearkin._check import check_instance, check_integer, check_mapping, numpy_generator
from nearkin._types import Record, Seed
from nearkin.embedding.ordinal.estimator import OrdinalEmbedding
from nearkin.metrics.ordinal import triplet_error
from nearkin.records import Comparisons


def compare_groups(
    comparisons: Comparisons,
    groups: Mapping[Any, Any],
    *,
    n_components: int = 2,
    n_permutations: int = 199,
    random_state: Seed = None,
) -> Record:
    """Test whether two groups of raters place the objects differently.

    Each group's answers are embedded by STE. The statistic is the share of a group's answers that the other group's map
    violates, in the mean of both directions. Raters are permuted whole, since the answers of one depend on each other.
    Under the null hypothesis raters are exchangeable; a group that errs more often is a difference too.

    Parameters
    ----------
    comparisons: answers with `annotators`.
    groups: rater -> group, two different values; raters that it lacks are left out.
    n_components: the dimension of the maps.
    n_permutations: random assignments of the raters to groups of the same sizes.
    random_state: seed.

    Returns
    -------
    record: "p", the share of assignments with an error as large, itself counted; "error", the observed one; "permuted"
        (n_permutations,), theirs. ValueError without annotators, for other than two groups, and if fewer than 20
        assignments exist, with which no p is below .05.

    Examples
    --------
    >>> maps = np.random.default_rng(0).normal(size=(2, 12, 2))
    >>> parts = [nk.data.comparisons_from_vectors(X, 900, noise=0.1, random_state=g) for g, X in enumerate(maps)]
    >>> rows = np.concatenate([part.indices for part in parts])
    >>> answers = nk.Comparisons(rows, np.arange(12), annotators=np.repeat(np.arange(10), 180))
    >>> groups = {rater: "AB"[rater // 5] for rater in range(10)}
    >>> nk.embedding.compare_groups(answers, groups, n_permutations=39, random_state=0)["p"]
    0.025
    """
    annotators = check_instance(comparisons, "comparisons", Comparisons).annotators
    if annotators is None:
        raise ValueError("comparisons name no annotators; read them with a column of raters")
    check_integer(n_permutations, "n_permutations", low=19)
    named, who = np.unique(np.asarray(annotators), return_inverse=True)
    values = list(map(check_mapping(groups, "groups").get, named.tolist()))
    kinds = sorted({value for value in values if value is not None}, key=str)
    if len(kinds) != 2:
        raise ValueError(f"groups are {kinds} among these raters; a test needs two")
    group = np.array([kinds.index(value) if value in kinds else -1 for value in values])
    raters = np.flatnonzero(group >= 0)
    first = int((group == 0).sum())
    if comb(len(raters), first) < 20:
        raise ValueError(f"groups have {first} and {len(raters) - first} raters; at least 3 and 3 are needed")
    rng = numpy_generator(random_state)

    def error(group: np.ndarray) -> float:
        parts = [comparisons.take(group[who] == number) for number in (0, 1)]
        maps = [OrdinalEmbedding(n_components, loss="ste", n_init=1, random_state=0).fit(part) for part in parts]
        return float(np.mean([triplet_error(maps[number].embedding_, parts[1 - number]) for number in (0, 1)]))

    observed, permuted = error(group), np.empty(n_permutations)
    for draw in range(n_permutations):
        assigned = group.copy()
        assigned[raters] = rng.permutation(group[raters])
        permuted[draw] = error(assigned)
    return {
        "p": (1 + int((permuted >= observed).sum())) / (1 + n_permutations),
        "error": observed,
        "permuted": permuted,
    }
