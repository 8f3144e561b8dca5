"""The two goals of the scale: on data built so that they disagree, labels and neighbours choose differently."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing import search_scale
from nearkin.metrics import hamming_histograms


@pytest.fixture(scope="module")
def conflict():
    """Classes live in axes of small variance; most of the distance comes from axes that say nothing of them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 2500)
    X = np.c_[rng.standard_normal((2500, 8)) * 3, rng.standard_normal((10, 16))[labels] * 1.2]
    return (X + 0.3 * rng.standard_normal(X.shape)).astype(np.float32), labels


def test_goals_disagree_and_each_gets_its_own(conflict):
    X, labels = conflict
    train, queries = slice(0, 2000), slice(2000, 2500)
    by_labels = search_scale(nk.OgE(8), X[train], labels[train], random_state=0)
    by_neighbours = search_scale(nk.OgE(8), X[train], random_state=0)
    assert by_labels.best_scale > 1.4 * by_neighbours.best_scale
    assert by_neighbours.label_map is None
    scores = {}
    for name, found in (("labels", by_labels), ("neighbours", by_neighbours)):
        hasher = found.hasher.set_params(random_state=0).fit(X[train])
        codes = hasher.encode(X[queries]), hasher.encode(X[train])
        scores[name] = hamming_histograms(*codes, labels[queries], labels[train]).average_precision().mean()
    assert scores["labels"] > scores["neighbours"] + 0.05, scores


def test_result_is_complete_and_repeatable(conflict):
    X, labels = conflict
    steps = []
    X, labels, arguments = X[:600], labels[:600], {"random_state": 3}
    hasher = nk.OnE(6, max_iter=20)
    found = search_scale(hasher, X, labels, **arguments, callback=lambda step, record: steps.append((step, record)))
    again = search_scale(hasher, X, labels, **arguments)
    np.testing.assert_array_equal(found.label_map, again.label_map)
    assert found.scales.shape == found.label_map.shape == found.neighbour_map.shape == (9,)
    assert found.best_scale == found.scales[found.label_map.argmax()] == found.hasher.scale
    assert (hasher.scale, found.hasher.n_bits, found.hasher.max_iter) == ("eq25", 6, 20)
    assert [step for step, _ in steps] == list(range(1, 10))
    assert all(record["total"] == 9 for _, record in steps)


@pytest.mark.parametrize(
    ("hasher", "arguments", "error", "message"),
    [
        (nk.ITQ(8), {}, TypeError, "must be one whose scale matters"),
        (nk.OgE(8, ridge=0.1), {}, ValueError, "ridge is 0.1"),
        (nk.OgE(8), {"y": [1, 2]}, ValueError, r"y has shape \(2,\)"),
        (nk.OgE(30), {}, ValueError, "at most 24, the rank"),
    ],
)
def test_bad_arguments_are_named(conflict, hasher, arguments, error, message):
    with pytest.raises(error, match=message):
        search_scale(hasher, conflict[0], **arguments)


def test_rows_must_do_for_both_halves(conflict):
    with pytest.raises(ValueError, match="at least 14 rows"):
        search_scale(nk.OgE(6), conflict[0][:13])
