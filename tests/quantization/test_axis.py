"""Axis codes: bits where the variance is, grids from the rows, and no data too odd."""

from pathlib import Path

import faiss
import numpy as np
import pytest

from nearkin.quantization import AxisQuantizer, ScalarQuantizer
from tests.covering import each


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    """Rows on turned axes whose deviations fall from 1 to 1/30, about a mean that is not 0."""
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    return ((rng.normal(size=(1200, 30)) / np.arange(1, 31)) @ turn + 0.3).astype(np.float32)


def nearest_levels(model: AxisQuantizer, Z: np.ndarray) -> np.ndarray:
    """Codes (n, M) of rotated rows, each grid searched in full (the slow twin)."""
    M, width = model.levels_.shape
    codes = np.zeros((len(Z), M), np.uint8)
    for byte in range(M):
        stride = 1
        for place, count in enumerate(model.levels_[byte]):
            grid = model.codebooks_[byte, np.arange(count) * stride, place]
            level = np.abs(Z[:, byte * width + place, None] - grid).argmin(axis=1)
            codes[:, byte] += (level * stride).astype(np.uint8)
            stride *= count
    return codes


def test_codes_are_the_nearest_values_of_each_grid(X: np.ndarray) -> None:
    model = AxisQuantizer(6).fit(unit(X))
    codes = model.encode(unit(X))
    assert codes.shape == (1200, 6)
    assert codes.dtype == np.uint8
    differs = (codes != nearest_levels(model, unit(X) @ model.rotation_)).mean()
    assert differs < 1e-3, differs  # the last bits of a product


def test_bits_go_where_the_variance_is(X: np.ndarray) -> None:
    model = AxisQuantizer(6).fit(X)
    M, width = model.levels_.shape
    deviations = (X @ model.rotation_).std(axis=0).reshape(M, width)
    counts = model.levels_[np.argsort(-deviations, axis=None) // width, np.argsort(-deviations, axis=None) % width]
    assert counts[0] == counts.max() >= 4 * counts[5]
    assert (counts[20:] == 1).mean() > 0.5
    assert (model.levels_.prod(axis=1) <= 256).all()
    turned = model.rotation_ @ model.rotation_.T
    np.testing.assert_allclose(turned, np.eye(30), atol=1e-5)  # all axes stay, so distances do


def test_a_grid_is_not_worse_than_the_quantiles_that_it_starts_from(rng: np.random.Generator) -> None:
    from nearkin.quantization.axis import learned_grid

    values = np.sort(rng.standard_t(3, size=4000).astype(np.float32))
    for count in (2, 5, 16):
        start = np.quantile(values, (np.arange(count) + 0.5) / count)
        errors = [np.square(values[:, None] - grid).min(axis=1).mean() for grid in (start, learned_grid(values, count))]
        assert errors[1] < errors[0], (count, errors)


def test_more_bytes_are_nearer_and_nearer_than_equal_bits(X: np.ndarray) -> None:
    errors = [AxisQuantizer(n).fit(X).distortion(X) for n in (2, 4, 8, 15, 30)]
    assert errors == sorted(errors, reverse=True)
    assert errors[3] < 0.5 * ScalarQuantizer(4).fit(X).distortion(X)  # of 15 bytes too


@each("metric", ["l2", "ip"])
def test_faiss_stores_and_ranks_the_same_codes(X: np.ndarray, metric: str) -> None:
    model = AxisQuantizer(5).fit(X)
    index = model.to_faiss(metric)
    model.add_to(index, X)
    assert index.ntotal == 1200
    assert index.sa_code_size() == 5
    rounded = model.codebooks_[np.arange(5), model.encode(X)].reshape(1200, -1) @ model.rotation_.T
    np.testing.assert_allclose(index.reconstruct_n(0, 1200), rounded, atol=1e-5)
    kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    scores = faiss.knn(X[:20], rounded, 5, metric=kind)[0]
    np.testing.assert_allclose(index.search(X[:20], 5)[0], scores, rtol=1e-3, atol=1e-4)


def test_a_row_has_the_same_code_alone_and_in_any_batch(X: np.ndarray) -> None:
    for rows in (unit(X), X, X.astype(np.float64)):
        model = AxisQuantizer(7).fit(rows)
        together = model.encode(rows[:40])
        np.testing.assert_array_equal(np.concatenate([model.encode(row[None]) for row in rows[:40]]), together)
        np.testing.assert_array_equal(model.encode(rows[:40].copy(order="F")), together)


def test_sorted_rows_are_learned_from_as_mixed_ones(X: np.ndarray) -> None:
    in_order = X[np.argsort(X[:, 0])]
    assert AxisQuantizer(6).fit(in_order).distortion(X) < 1.2 * AxisQuantizer(6).fit(X).distortion(X)


HARD = {
    "one row": lambda X: X[:1],
    "two equal rows": lambda X: X[[0, 0]],
    "fewer rows than grid points": lambda X: X[:7],
    "zeros": lambda X: 0 * X,
    "some zero rows": lambda X: unit(X) * (np.arange(len(X)) % 3 > 0)[:, None],
    "constant columns": lambda X: np.where(np.arange(30) % 2, X, np.float32(4)),
    "one column that varies": lambda X: np.where(np.arange(30) == 3, X, np.float32(4)),
    "a far row": lambda X: np.where(np.arange(len(X))[:, None] == 5, 1e6 * X, X),
    "heavy tails": lambda X: X**9,
    "an offset": lambda X: X + 1e4,
    "tiny": lambda X: X * np.float32(1e-25),
    "huge": lambda X: X * np.float32(1e15),
    "float64": lambda X: X.astype(np.float64),
    "half precision": lambda X: X.astype(np.float16),
    "few columns": lambda X: X[:, :3],
}


def test_bytes_may_have_no_axis(X: np.ndarray) -> None:
    """Two distinct rows vary along one axis; a fit for 4 to 6 bytes of 7 columns ended in an error."""
    rows = X[[0, 1, 1, 0, 1], :7]
    for n_bytes in range(1, 8):
        model = AxisQuantizer(n_bytes).fit(rows)
        np.testing.assert_allclose(model.decode(model.encode(rows)), rows, atol=1e-5, err_msg=f"{n_bytes} bytes")


@pytest.mark.filterwarnings("ignore:X has far vectors")
@each("case", HARD)
def test_hard_cases_have_codes_and_finite_rows(case: str, X: np.ndarray, tmp_path: Path) -> None:
    rows = np.ascontiguousarray(HARD[case](X))
    for n_bytes in (1, 3):  # a byte is below a bit for most axes
        model = AxisQuantizer(n_bytes).fit(rows)
        codes = model.encode(rows)
        decoded = model.decode(codes)
        assert codes.shape == (len(rows), n_bytes)
        assert decoded.shape == rows.shape
        assert np.isfinite(decoded).all()
        spread = np.square(rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)).sum(axis=1).mean()
        digits = np.square(rows.astype(np.float64)).sum(axis=1).mean() * 1e-10
        assert np.square(rows - decoded.astype(np.float64)).sum(axis=1).mean() <= 1.5 * spread + digits
    model.save(tmp_path / "it")
    again = AxisQuantizer.load(tmp_path / "it")
    np.testing.assert_array_equal(again.encode(rows), codes)
    np.testing.assert_array_equal(again.decode(codes), decoded)


def test_what_cannot_be_coded_is_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="n_bytes is 31, more than the 30 columns"):
        AxisQuantizer(31).fit(X)
    with pytest.raises(ValueError, match="n_bytes is 0"):
        AxisQuantizer(0).fit(X)
    with pytest.raises(ValueError, match="X contains NaN in 1 of 1,200 rows"):
        AxisQuantizer(3).fit(np.where(np.arange(1200)[:, None] == 4, np.nan, X))
    model = AxisQuantizer(3).fit(X)
    with pytest.raises(ValueError, match=r"must be uint8 \(n, 3\)"):
        model.decode(np.zeros((2, 4), np.uint8))
    model.levels_ = 300 * model.levels_
    with pytest.raises(ValueError, match="more than 256 codes"):
        model._check_loaded()
