"""The record of interactions: ids, duplicates, order, and what it refuses."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nearkin.records import Interactions
from tests.refusals import each_refused


def test_ids_of_any_type_are_kept_and_pairs_sorted() -> None:
    pairs = Interactions.from_pairs(["b", "a", "b"], [30, 10, 20], [1.0, 2.0, 3.0], [7, 8, 9])
    assert pairs.left_ids.tolist() == ["a", "b"]
    assert pairs.right_ids.tolist() == [10, 20, 30]
    assert pairs.shape == (2, 3)
    assert pairs.rows.tolist() == [0, 1, 1]
    assert pairs.indices.tolist() == [0, 1, 2]
    assert pairs.weights.tolist() == [2.0, 3.0, 1.0]
    assert pairs.timestamps is not None
    assert pairs.timestamps.tolist() == [8, 9, 7]


def test_text_ids_are_sorted_as_python_sorts_them() -> None:
    for ids in (["ab", "a", "b", "abc", "ab", "a b", "A"], ["ab", "é", "z", "日本", "ze"], ["ß"]):
        pairs = Interactions.from_pairs(ids, range(len(ids)))
        assert pairs.left_ids.tolist() == sorted(set(ids))
        assert pairs.left_ids[pairs.rows].tolist() == [ids[column] for column in pairs.indices]
        assert pairs.left_ids.dtype == np.array(ids).dtype


def test_weights_of_a_repeated_pair_are_added_under_its_first_time() -> None:
    pairs = Interactions.from_pairs([0, 0, 0, 1], [1, 1, 1, 0], [3, 5, 1, 2], [5, 2, 9, 0])
    assert pairs.weights.tolist() == [9.0, 2.0]
    assert pairs.timestamps.tolist() == [2, 0]


def test_column_order_is_the_transposed_matrix(rng: np.random.Generator) -> None:
    matrix = sp.random(9, 6, density=0.3, random_state=3, format="csr")
    pairs = Interactions.from_matrix(matrix)
    columns = pairs.columns
    turned = sp.csr_matrix((pairs.weights[columns.order], columns.rows, columns.indptr), shape=(6, 9))
    np.testing.assert_allclose(turned.toarray(), matrix.T.toarray(), rtol=1e-6)


def test_select_keeps_ids_and_features() -> None:
    pairs = Interactions.from_pairs([0, 1, 2], [0, 1, 0], left_features=np.eye(3))
    part = pairs.select(np.array([True, False, True]))
    assert part.shape == (3, 2)
    assert np.diff(part.indptr).tolist() == [1, 0, 1]
    assert part.left_features is pairs.left_features


def test_catalogues_keep_their_order_and_cold_entities() -> None:
    pairs = Interactions.from_pairs(["x"], ["q"], right_ids=["z", "q", "a"], right_features=sp.eye(3))
    assert pairs.right_ids.tolist() == ["z", "q", "a"]
    assert pairs.indices.tolist() == [1]
    assert sp.issparse(pairs.right_features)


BAD_PAIRS = [
    (([0, None], [0, 1]), ValueError, r"left has 1 missing id \(None, NaN, empty or -1\), the first at entry 1"),
    ((["a", ""], [0, 1]), ValueError, "left has 1 missing id"),
    (([0, 1], np.array([-1.0, 1.0])), ValueError, "right has 1 missing id"),
    ((np.array(["a", 3], dtype=object), [0, 1]), TypeError, "left has ids that are not all numbers"),
    (([1, "1"], [0, 1]), TypeError, "left has ids that are not all numbers, or all text"),  # NumPy makes text of both
    ((["a", np.nan], [0, 1]), ValueError, "left has 1 missing id"),
    (([0, 1], [0, 1], None, pd.to_datetime(["2026-01-01", None], utc=True)), ValueError, "1 missing time"),
    (([], []), ValueError, "there is no observed pair"),
    (([0, 1], [0]), ValueError, r"right has shape \(1,\); it must be \(2,\)"),
    (([0, 1], [0, 1], [1.0, -2.0]), ValueError, "weights has 1 entry below 0"),
    (([0, 1], [0, 1], [1.0, 2.1e40]), ValueError, "weights contains NaN or infinity"),  # no warning of NumPy's first
    (([0, 1], [0, 1], None, ["x", "y"]), TypeError, "timestamps has dtype <U1; it must be numbers"),
    (([[0], [1]], [0, 1]), ValueError, "left has shape"),
    ((np.array(["a", "a\0b"], object), [0, 1]), ValueError, r"the id .*\\x00.* holds a NUL character"),
]


def test_bad_pairs_are_named() -> None:
    each_refused((partial(Interactions.from_pairs, *given), error, match) for given, error, match in BAD_PAIRS)


def test_times_with_and_without_a_zone() -> None:
    for zone in (None, "UTC", "Asia/Tokyo"):
        times = pd.Series(pd.date_range("2026-01-01", periods=2, tz=zone))
        for given in (times, times.dt.to_pydatetime().tolist() if zone else times.dt.date.tolist()):
            first, second = Interactions.from_pairs([0, 1], [0, 1], timestamps=given).timestamps
            assert (first, second - first) == (1767225600 - 9 * 3600 * (zone == "Asia/Tokyo"), 86400)


def test_bad_features_and_catalogues_are_named() -> None:
    cases = [
        ({"left_features": np.ones((3, 2))}, r"left_features has shape \(3, 2\); it must be \(2, d\)"),
        ({"right_features": np.full((2, 2), np.nan)}, "right_features contains NaN"),
        ({"left_ids": [0, 2]}, "left has 1 id that left_ids lacks, the first is 1"),
        ({"left_ids": [0, 1, 1]}, "left_ids repeats ids"),
    ]
    each_refused(
        (partial(Interactions.from_pairs, [0, 1], [0, 1], **given), ValueError, match) for given, match in cases
    )
    with pytest.raises(ValueError, match=r"keep has shape \(1,\); it must be \(2,\)"):
        Interactions.from_pairs([0, 1], [0, 1]).select(np.array([True]))
