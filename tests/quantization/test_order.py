"""Rotations learned for the order of near rows: gradients by central differences, and more neighbours than a start."""

from dataclasses import replace

import faiss
import numpy as np
import pytest

from nearkin._exact import nearest
from nearkin.linalg.orthonormal import haar_rotation, nearest_orthogonal
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer, order
from tests.covering import each


@each("codec", order.SCORES)
def test_slope_by_central_differences(rng, codec):
    """Along turns of R: what does not change under one is left out of the slope."""
    rows, R = rng.normal(size=(3, 7, 5)), haar_rotation(5, 0)
    slope = order.disagreement(rows, R, order.SCORES[codec], np.tanh)[1]
    found = R.T @ slope
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        turn = np.zeros((5, 5))
        turn[i, j], turn[j, i] = 1e-6, -1e-6
        ends = [order.disagreement(rows, R + sign * R @ turn, order.SCORES[codec], np.tanh)[0] for sign in (1, -1)]
        assert found[i, j] - found[j, i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_equal_scores_have_no_correlation_and_no_slope(rng):
    """Rows with the same codes: the slope went up to 1e19, and its square overflowed."""
    value, slope = order.disagreement(
        np.repeat(rng.normal(size=(2, 1, 5)), 6, axis=1), np.eye(5), order.SCORES["sign-float"]
    )
    assert value == 0
    assert not slope.any()


@each("codec", ["sign", "sign-float", "rabitq"])
def test_scores_of_unseen_rows_agree_better(rng, codec, monkeypatch):
    monkeypatch.setattr("nearkin.quantization.order.DEFAULTS", replace(order.DEFAULTS, steps=100))
    X = (rng.normal(size=(900, 16)) * np.geomspace(3, 0.3, 16)).astype(np.float32)
    R = np.eye(16, dtype=np.float32)  # the principal axes, along which signs say least
    learned = order.turned_for_order(X[:600], R, codec, np.random.default_rng(0))
    np.testing.assert_allclose(learned.T @ learned, np.eye(16), atol=1e-5)
    unseen = X[600:][nearest(X[600:], X[600:650], 40)[1]]
    before, after = (order.disagreement(unseen, turn, order.SCORES[codec])[0] for turn in (R, learned))
    assert after < before - 0.01


@each("inner", [False, True])
def test_the_slope_by_central_differences(inner, rng):
    x, y = rng.normal(size=(2, 3, 6, 4))
    slope = order.codebook_disagreement(x, y, inner)[1]
    for place in np.ndindex(y.shape):
        step = np.zeros_like(y)
        step[place] = 1e-6
        ends = [order.codebook_disagreement(x, y + sign * step, inner)[0] for sign in (1, -1)]
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_the_slope_by_codebooks_is_that_of_the_rows_that_chose_them(rng):
    """<slope by codebooks, change of codebooks> = <slope by rows, change of rows>, as rows are linear in codebooks."""
    codes, by_rows = rng.integers(0, 5, size=(40, 6)).astype(np.int32), rng.normal(size=(40, 8))
    change = rng.normal(size=(2, 3, 5, 4))
    slope = order._slope(change.shape, codes, by_rows)
    assert (slope * change).sum() == pytest.approx((by_rows * order._decoded(codes, change)).sum(), rel=1e-5)


def kept(model, X, Q):
    index = model.to_faiss()
    model.add_to(index, X)
    if model.n_lists:
        faiss.extract_index_ivf(index).nprobe = model.n_lists
    return recall_k_at_k(index.search(Q, 10)[1], nearest(X, Q, 10)[1], 10)


@each(
    ("kind", "settings"),
    [
        (ResidualQuantizer, {"n_lists": 4, "scale": 1e12}),
        (ResidualQuantizer, {}),
        (ProductResidualQuantizer, {"scale": 1e-12}),
        (ProductResidualQuantizer, {"mean": 2e3}),
    ],
)
def test_known_rows_keep_more_neighbours_by_the_same_codes(kind, settings, rng, monkeypatch):
    monkeypatch.setattr("nearkin.quantization.order.DEFAULTS", replace(order.DEFAULTS, code_steps=100))
    settings = dict(settings)
    X = rng.standard_t(4, size=(500, 16)) * settings.pop("scale", 1) + settings.pop("mean", 0)
    X, Q = np.split(X.astype(np.float32), [400])
    shape = (4, 32) if kind is ResidualQuantizer else (2, 3, 32)
    plain, known = (kind(*shape, max_iter=4, random_state=0, known=known, **settings).fit(X) for known in (False, True))
    numbers = [model._chosen(X)[0] for model in (plain, known)]
    np.testing.assert_array_equal(*numbers)
    assert kept(known, X, Q) > kept(plain, X, Q) + 0.003


@each("size", [1e-12, 1.0, 1e12])
def test_a_linear_loss(size):
    target = haar_rotation(6, 0).astype(np.float32)
    start = nearest_orthogonal(target + 0.3 * haar_rotation(6, 1)).astype(np.float32)
    R = order.descend(start, lambda R: -np.float32(size) * target, 400, 0.2)
    np.testing.assert_allclose(R, target, atol=0.02)
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-6)
