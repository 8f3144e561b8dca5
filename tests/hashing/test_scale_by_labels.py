"""OnE and OgE choose their scale by labels, on data built so that labels and neighbours want different ones."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.hashing import scq
from nearkin.metrics import hamming_histograms, hamming_radius_precision


@pytest.fixture(scope="module")
def conflict():
    """Classes lie along axes of small variance; most of the distance comes from axes without any."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 2500)
    X = np.c_[rng.standard_normal((2500, 8)) * 3, rng.standard_normal((10, 16))[labels] * 1.2]
    return (X + 0.3 * rng.standard_normal(X.shape)).astype(np.float32), labels


@pytest.fixture
def few_scales(monkeypatch):
    """Three scales are tried: for tests that do not look at which one wins."""
    monkeypatch.setattr(scq, "DEFAULTS", replace(scq.DEFAULTS, multiples=(0.5, 1.0, 2.0)))


def test_labels_gain_what_they_are_judged_by(conflict):
    X, labels = conflict
    train, queries = slice(0, 2000), slice(2000, 2500)
    scores = {}
    for name, y in (("labels", labels[train]), ("none", None)):
        hasher = nk.OgE(8, random_state=0).fit(X[train], y)
        codes = hasher.encode(X[queries]), hasher.encode(X[train])
        scores[name] = hamming_histograms(*codes, labels[queries], labels[train]).average_precision().mean()
    assert scores["labels"] > scores["none"] + 0.05, scores


@pytest.mark.parametrize("make", [nk.OnE, nk.OgE])
def test_without_labels_the_scale_is_the_papers(conflict, make, few_scales):
    X, labels = conflict[0][:300], conflict[1][:300]
    plain = make(6, scale="eq25", random_state=3).fit(X)
    for y in (None, np.zeros((300, 2)), np.zeros(300, int)):  # none, rows without a label, one class
        np.testing.assert_array_equal(make(6, random_state=3).fit(X, y).projection_, plain.projection_)
    assert make(6, scale="eq25", random_state=3).fit(X, labels).scale_ == plain.scale_


def test_labels_mean_the_same_in_every_form(conflict, few_scales):
    X, labels = conflict[0][:100], conflict[1][:100]
    make = partial(nk.OgE, max_iter=2)
    found = make(6, random_state=3).fit(X, labels)
    onehot, names = np.eye(10, dtype=int)[labels], np.array([f"class {label}" for label in labels])
    columns = (labels[:, None], labels.astype(float), labels.tolist(), names, names.astype(object), pd.Series(names))
    rows = (*(onehot.astype(kind) for kind in (int, bool, float)), onehot.tolist(), pd.DataFrame(onehot))
    for y in (*columns, pl.Series(names), *rows, sp.csr_matrix(onehot), pl.DataFrame(onehot)):
        np.testing.assert_array_equal(make(6, random_state=3).fit(X, y).projection_, found.projection_)


@pytest.mark.parametrize("make", [nk.OnE, nk.OgE])
def test_labels_that_are_none_are_refused_by_name(conflict, make):
    X = conflict[0][:600]
    values = np.arange(600) + 0.5, np.full(600, np.nan), pd.Series(["a", None] * 300), [1, "a"] * 300 + [None]
    shapes = np.arange(1200).reshape(600, 2), np.full((600, 2), 0.5)
    for y in (*values, *shapes, [1, 2], *map(np.zeros, [599, (599, 3), (600, 2, 2)])):
        with pytest.raises(ValueError, match=r"^y has shape|^y holds"):
            make(6).fit(X, y)
    with pytest.raises(ValueError, match=r"^y .*give sets: \[set\(row\) for row in y\]"):
        make(6).fit(X, np.full(600, 0.5))
    with pytest.raises(TypeError, match="labels are text and numbers; give labels of one type"):
        make(6).fit(X, [{1}, {"a", "b"}] * 300)


def test_several_labels_a_row_are_alike_if_they_share_one():
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 256, (90, 2), np.uint8), rng.random((90, 5)) < 0.3
    found = hamming_histograms(codes[:20], codes[20:], labels[:20], sp.csr_matrix(labels[20:].astype(int)))
    shared = (labels[:20].astype(int) @ labels[20:].T.astype(int)) > 0
    assert found.relevant.sum(axis=1).tolist() == shared.sum(axis=1).tolist()
    sets = [set(np.flatnonzero(row).tolist()) for row in labels]
    names = [[f"label {one}" for one in row] for row in sets]
    for given in (sets, [list(row) for row in sets], names, np.array(sets, dtype=object)):
        np.testing.assert_array_equal(
            hamming_histograms(codes[:20], codes[20:], given[:20], given[20:]).relevant, found.relevant
        )
    with pytest.raises(
        ValueError, match=r"query_labels has shape \(20, 5\) and the other labels are sets; give both alike"
    ):
        hamming_histograms(codes[:20], codes[20:], labels[:20], sets[20:])
    X = rng.standard_normal((90, 8))
    one, other = (nk.OgE(4, random_state=0).fit(X, y) for y in (labels, sets))
    np.testing.assert_array_equal(one.projection_, other.projection_)
    assert one.trials_
    one = rng.integers(0, 5, 90)
    forms = [(one[:20], one[20:]), (np.eye(5)[one[:20]], np.eye(5)[one[20:]]), (one[:20, None], one[20:, None])]
    scores = [hamming_radius_precision(codes[:20], codes[20:], *form, radius=4) for form in forms]
    assert scores[0] == scores[1] == scores[2]
    with pytest.raises(ValueError, match="give both alike"):
        hamming_histograms(codes[:20], codes[20:], one[:20], labels[20:])
    with pytest.raises(TypeError, match="query_labels are text and database_labels numbers"):  # nothing was relevant
        hamming_histograms(codes[:20], codes[20:], one[:20].astype(str), one[20:])
    text = [one.astype(kind) for kind in (str, "S1")]  # h5py gives bytes
    found = [hamming_histograms(codes[:20], codes[20:], text[side][:20], text[1 - side][20:]) for side in (0, 1)]
    assert found[0].relevant.sum() == found[1].relevant.sum() == (one[:20, None] == one[20:]).sum()


def test_the_choice_is_repeatable_and_a_multiple_of_the_papers(conflict, few_scales):
    X, labels = conflict[0][:300], conflict[1][:300].astype(str)
    plain = nk.OnE(6, random_state=3).fit(X)
    one, other = (nk.OnE(6, random_state=3).fit(X, labels) for _ in range(2))
    np.testing.assert_array_equal(one.projection_, other.projection_)
    assert [trial["candidate"] for trial in one.trials_] == list(scq.DEFAULTS.multiples)
    (won,) = [trial["candidate"] for trial in one.trials_ if trial["won"]]
    assert one.scale_ == pytest.approx(won * plain.scale_, rel=1e-12)
    assert plain.trials_ == []


def test_a_ridge_leaves_nothing_to_choose(conflict):
    X, labels = conflict
    one, other = (nk.OgE(6, ridge=0.1, random_state=0).fit(X[:300], y) for y in (None, labels[:300]))
    np.testing.assert_array_equal(one.projection_, other.projection_)


def test_few_rows_and_rows_of_low_rank_take_the_papers_scale():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(9, 12))
    flat = np.r_[np.zeros((40, 12)), few]  # hardly any drawn row varies
    for X in (few, flat):
        hasher = nk.OgE(8, random_state=0)
        assert hasher.fit(X, np.arange(len(X)) % 2).scale_ == nk.OgE(8, scale="eq25").fit(X).scale_
