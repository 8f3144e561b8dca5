"""OnE and OgE with labels, on data built so that labels and neighbours want different columns."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.hashing.scq import class_codes, class_regression
from nearkin.metrics.hamming import hamming_histograms, hamming_radius_precision
from tests.covering import each

pl = pytest.importorskip("polars", reason="needs polars")


@pytest.fixture(scope="module")
def conflict():
    """Classes lie along axes of small variance; most of the distance comes from axes without any."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 2500)
    X = np.c_[rng.standard_normal((2500, 8)) * 3, rng.standard_normal((10, 16))[labels] * 1.2]
    return (X + 0.3 * rng.standard_normal(X.shape)).astype(np.float32), labels


@each("make", [nk.OnE, nk.OgE])
def test_labels_gain_what_they_are_judged_by(conflict, make):
    """Also in more bits than classes, of two classes, and for classes of a few rows."""
    X, labels = conflict
    train, queries = slice(0, 2000), slice(2000, 2500)
    for y in (labels, labels % 2, np.minimum(labels, 1)):
        scores = {}
        for name, known in (("labels", y[train]), ("none", None)):
            hasher = make(12, random_state=0).fit(X[train], known)
            codes = hasher.encode(X[queries]), hasher.encode(X[train])
            scores[name] = hamming_histograms(*codes, y[queries], y[train]).average_precision().mean()
        assert scores["labels"] > scores["none"] + 0.05, scores


def test_codes_of_classes_tell_them_apart_in_more_bits_than_columns():
    """Of 12 classes no two have the same 8 bits, as with signs of one random direction each; constant vectors fail."""
    rng = np.random.default_rng(0)
    labels, centres = np.arange(240) % 12, rng.standard_normal((12, 6))
    X = 5 * centres[labels] + rng.standard_normal((240, 6))
    for seed in range(5):
        codes = class_codes(centres.T, np.full(12, 1 / 12), 8, np.random.default_rng(seed))
        assert len(np.unique(codes, axis=0)) == 12
    hasher = nk.OgE(32, random_state=0).fit(X, labels)
    assert hamming_histograms(*[hasher.encode(X)] * 2, labels, labels).average_precision().mean() > 0.9
    with pytest.raises(ValueError, match="n_bits is 32; it must be at most 6"):
        nk.OgE(32).fit(X)
    with pytest.raises(ValueError, match="X is constant"):
        nk.OgE(32).fit(np.ones((240, 6)), labels)


def test_a_rare_class_gets_other_bits():
    """One vector in 20: by the threshold of the regression its mean had the bits of all others."""
    rng = np.random.default_rng(0)
    rare = np.arange(1000) % 20 == 0
    X = rng.standard_normal((1000, 20)) + 0.7 * rare[:, None]
    bits = nk.OgE(8, random_state=0).fit(X, rare.astype(int)).project([X[rare].mean(0), X[~rare].mean(0)]) > 0
    assert (bits[0] != bits[1]).all()


def test_the_ridge_is_that_of_the_least_error_of_rows_left_out():
    """Generalized cross-validation by its definition, with the hat matrix of each ridge."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30)) @ np.diag(np.geomspace(3, 0.1, 30))
    X -= X.mean(axis=0)
    c, axes = np.linalg.eigh(X.T @ X / 80)
    Z, Y = X @ axes, np.eye(3)[rng.integers(0, 3, 80)]
    W, spread, _ = class_regression(Z, sp.csr_array(Y), c)
    scores = {}
    for ridge in np.logspace(-6, 1, 29) * c.mean():
        hat = Z @ np.linalg.solve(Z.T @ Z + 80 * ridge * np.eye(30), Z.T) + 1 / 80
        scores[ridge] = ((Y - hat @ Y) ** 2).sum() / (1 - np.trace(hat) / 80) ** 2
    best = min(scores, key=scores.__getitem__)
    np.testing.assert_allclose(W / spread, np.linalg.solve(Z.T @ Z + 80 * best * np.eye(30), Z.T @ Y), atol=1e-12)


@each("make", [nk.OnE, nk.OgE])
def test_labels_that_tell_nothing_apart_change_nothing(conflict, make):
    X = conflict[0][:300]
    plain = make(6, random_state=3).fit(X)
    for y in (None, np.zeros((300, 2), bool), np.zeros(300, int)):  # none, rows without a label, one class
        np.testing.assert_array_equal(make(6, random_state=3).fit(X, y).projection_, plain.projection_)


def test_labels_mean_the_same_in_every_form(conflict):
    X, labels = conflict[0][:100], conflict[1][:100]
    found = nk.OgE(6, random_state=3).fit(X, labels)
    onehot, names = np.eye(10, dtype=bool)[labels], np.array([f"class {label}" for label in labels])
    columns = (labels[:, None], labels.astype(float), labels.tolist(), names, names.astype(object), pd.Series(names))
    for y in (*columns, pl.Series(names), onehot, onehot.tolist(), sp.csr_matrix(onehot)):
        again = nk.OgE(6, random_state=3).fit(X, y)
        np.testing.assert_allclose(again.projection_, found.projection_, atol=1e-6)


@each("make", [nk.OnE, nk.OgE])
def test_labels_that_are_none_are_refused_by_name(conflict, make):
    X = conflict[0][:600]
    values = np.arange(600) + 0.5, np.full(600, np.nan), pd.Series(["a", None] * 300), [1, "a"] * 300 + [None]
    shapes = np.arange(1200).reshape(600, 2), np.eye(2, dtype=int)[np.arange(600) % 2], [{1}, {1, 2}] * 300
    for y in (*values, *shapes, [1, 2], *map(np.zeros, [599, (599, 3), (600, 2, 2)])):
        with pytest.raises(ValueError, match=r"^y has shape|^y holds"):
            make(6).fit(X, y)


def test_several_labels_a_row_are_alike_if_they_share_one():
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 256, (90, 2), np.uint8), rng.random((90, 5)) < 0.3
    found = hamming_histograms(codes[:20], codes[20:], labels[:20], sp.csr_matrix(labels[20:]))
    shared = (labels[:20].astype(int) @ labels[20:].T.astype(int)) > 0
    assert found.relevant.sum(axis=1).tolist() == shared.sum(axis=1).tolist()
    one = rng.integers(0, 5, 90)
    marks = np.eye(5, dtype=bool)[one]
    forms = [(one[:20], one[20:]), (marks[:20], marks[20:]), (one[:20, None], one[20:, None])]
    scores = [hamming_radius_precision(codes[:20], codes[20:], *form, radius=4) for form in forms]
    assert scores[0] == scores[1] == scores[2]
    with pytest.raises(ValueError, match="give both alike"):
        hamming_histograms(codes[:20], codes[20:], one[:20], labels[20:])
    with pytest.raises(TypeError, match="query_labels are text and database_labels numbers"):  # nothing was relevant
        hamming_histograms(codes[:20], codes[20:], one[:20].astype(str), one[20:])
    text = [one.astype(kind) for kind in (str, "S1")]  # h5py gives bytes
    found = [hamming_histograms(codes[:20], codes[20:], text[side][:20], text[1 - side][20:]) for side in (0, 1)]
    assert found[0].relevant.sum() == found[1].relevant.sum() == (one[:20, None] == one[20:]).sum()
