"""Codebooks trained for the order of known rows: slopes by central differences, and more of their neighbours kept."""

import faiss
import numpy as np
import pytest

from nearkin._faiss import nearest_rows
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.additive_order import _decoded, _slope, disagreement, ordered


@pytest.mark.parametrize("inner", [False, True])
def test_the_slope_by_central_differences(inner, rng):
    x, y = rng.normal(size=(2, 3, 6, 4))
    slope = disagreement(x, y, inner)[1]
    for place in np.ndindex(y.shape):
        step = np.zeros_like(y)
        step[place] = 1e-6
        ends = [disagreement(x, y + sign * step, inner)[0] for sign in (1, -1)]
        assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_the_slope_by_codebooks_is_that_of_the_rows_that_chose_them(rng):
    """<slope by codebooks, change of codebooks> = <slope by rows, change of rows>, as rows are linear in codebooks."""
    codes, by_rows = rng.integers(0, 5, size=(40, 6)).astype(np.int32), rng.normal(size=(40, 8))
    change = rng.normal(size=(2, 3, 5, 4))
    slope = _slope(change.shape, codes, by_rows)
    assert (slope * change).sum() == pytest.approx((by_rows * _decoded(codes, change)).sum(), rel=1e-5)


def test_rows_that_are_their_codes_stay(rng):
    books = rng.normal(size=(1, 2, 4, 3)).astype(np.float32)
    codes = rng.integers(0, 4, size=(50, 2)).astype(np.int32)
    trained = ordered(books, codes, _decoded(codes, books), None, False, np.random.default_rng(0))
    np.testing.assert_allclose(trained, books, atol=1e-6)


def kept(model, X, Q, **options):
    index = model.to_faiss(**options)
    model.add_to(index, X)
    inner = faiss.extract_index_ivf(index) if model.n_lists else None
    if inner is not None:
        inner.nprobe = inner.nlist
    return recall_k_at_k(index.search(Q, 10)[1], nearest_rows(X, Q, 10), 10)


@pytest.mark.parametrize(
    "settings", [{}, {"n_lists": 4}, {"norm_bits": 32}, {"scale": 1e12}, {"scale": 1e-12}, {"mean": 2e3}]
)
@pytest.mark.parametrize("kind", [ResidualQuantizer, ProductResidualQuantizer])
def test_known_rows_keep_more_neighbours_by_the_same_codes(kind, settings, rng, tmp_path):
    settings = dict(settings)
    X = rng.standard_t(4, size=(1200, 16)) * settings.pop("scale", 1) + settings.pop("mean", 0)
    X = X.astype(np.float32)
    X, Q = X[:1000], X[1000:]
    shape = (4, 32) if kind is ResidualQuantizer else (2, 3, 32)
    plain, known = (
        kind(*shape, max_iter=4, random_state=0, ranking=ranking, **settings).fit(X) for ranking in (True, "known")
    )
    numbers = [model._chosen(X)[0] for model in (plain, known)]
    np.testing.assert_array_equal(*numbers)
    assert kept(known, X, Q) > kept(plain, X, Q) + 0.003
    known.save(tmp_path / "codes")
    again = kind.load(tmp_path / "codes")
    np.testing.assert_array_equal(again.encode(Q), known.encode(Q))
    assert kept(again, X, Q) == kept(known, X, Q)


def test_known_rows_of_one_length_keep_more_neighbours_by_inner_product(rng):
    X = rng.normal(size=(1200, 16)) * np.arange(1, 17) ** -0.4
    X, Q = np.split(unit_rows(X.astype(np.float32)), [1000])
    plain, known = (
        ResidualQuantizer(4, 32, max_iter=4, random_state=0, ranking=ranking).fit(X) for ranking in (True, "known-ip")
    )
    assert kept(known, X, Q, metric="ip") > kept(plain, X, Q, metric="ip") + 0.02


def test_another_ranking_is_refused(rng):
    with pytest.raises(ValueError, match="ranking is 'rows'; it must be one of True, False, 'ip', 'known', 'known-ip'"):
        ResidualQuantizer(2, 16, ranking="rows").fit(rng.normal(size=(50, 4)))
