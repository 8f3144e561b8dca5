"""The test of two groups of raters: small for other maps, uniform for the same."""

import numpy as np
import pandas as pd
import pytest

import nearkin as nk
from nearkin.records import Comparisons


def study(seed: int, apart: float) -> tuple[Comparisons, dict[int, str]]:
    """Six raters about twelve points; those of the second three lie `apart` from those of the first."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 2))
    moved = points + apart * rng.normal(size=points.shape)
    parts = [
        nk.data.comparisons_from_vectors(points if rater < 3 else moved, 80, noise=0.1, random_state=rng).indices
        for rater in range(6)
    ]
    answers = Comparisons(np.concatenate(parts), np.arange(12), annotators=np.repeat(np.arange(6), 80))
    return answers, {rater: "ab"[rater // 3] for rater in range(6)}


def test_other_maps_are_told_from_the_same_one():
    found = {
        apart: [
            nk.embedding.compare_groups(*study(seed, apart), n_permutations=19, random_state=0)["p"]
            for seed in range(3)
        ]
        for apart in (0.0, 1.0)
    }
    # of three and three raters a tenth of the assignments is the same split
    assert np.median(found[1.0]) < np.median(found[0.0]), found
    assert np.median(found[1.0]) <= 0.25, found


def test_raters_without_a_group_are_left_out_and_too_few_refused():
    answers, groups = study(0, 1.0)
    more = Comparisons(
        np.concatenate([answers.indices, answers.indices[:80, [0, 2, 1]]]),
        answers.objects,
        annotators=np.append(answers.annotators, np.repeat(9, 80)),
    )
    found = [
        nk.embedding.compare_groups(x, groups, n_permutations=19, random_state=0)["error"] for x in (answers, more)
    ]
    assert found[0] == found[1]
    for wrong in (groups | dict.fromkeys(range(6), "a"), pd.Series(list("aabb"))):  # a Series is a mapping
        with pytest.raises(ValueError, match="groups"):
            nk.embedding.compare_groups(answers, wrong)
    with pytest.raises(ValueError, match="annotators"):
        nk.embedding.compare_groups(Comparisons(answers.indices, answers.objects), groups)
