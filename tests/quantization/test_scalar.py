"""Scalar codes are FAISS's own, clip outliers where that helps, and survive saving."""

from pathlib import Path

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin import jobs
from nearkin.quantization.scalar import ScalarQuantizer, _error
from tests.covering import each

BITS = (4, 6, 8, 16)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_t(3, size=(2000, 9)).astype(np.float32)
    X[:, 4] = 2.5
    return X


def test_codes_are_those_that_faiss_stores_and_decodes(X: np.ndarray, tmp_path: Path) -> None:
    errors = []
    for bits in BITS:
        ScalarQuantizer(bits).fit(X).save(tmp_path / f"{bits}")
        quantizer = ScalarQuantizer.load(tmp_path / f"{bits}")
        index = quantizer.to_faiss()
        index.add(X)
        assert (index.sa_encode(X) == quantizer.encode(X)).all(), bits
        np.testing.assert_array_equal(index.reconstruct_n(0, len(X)), quantizer.decode(quantizer.encode(X)), f"{bits}")
        assert quantizer.encode(X).shape == (2000, -(-9 * bits // 8))
        errors.append(quantizer.distortion(X))
        if bits < 16:  # the ranges are chosen by the error that FAISS makes
            assert _error(X, quantizer.scale_, 2**bits - 1) * 9 == pytest.approx(errors[-1], rel=0.01)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4


def test_far_vectors_are_left_out_of_the_ranges(X: np.ndarray) -> None:
    """One of 2,500 vectors of SIFT 10^6 times as long: 8 bits kept .004 of the neighbours, without it .993."""
    rows = X.copy()
    rows[[1999, 30]] *= np.float32(1e6)
    for bits in (4, 8):
        with pytest.warns(UserWarning, match="vector 30 and 1 more lie"):
            fitted = ScalarQuantizer(bits).fit(rows)
        alone = ScalarQuantizer(bits).fit(np.delete(rows, [1999, 30], axis=0))
        np.testing.assert_array_equal(fitted.scale_, alone.scale_)


def test_clipping_a_heavy_tail_lowers_the_error_of_faiss(X: np.ndarray) -> None:
    plain = faiss.IndexScalarQuantizer(9, faiss.ScalarQuantizer.QT_4bit)
    plain.train(X)
    plain.add(X)
    theirs = ((plain.reconstruct_n(0, len(X)) - X) ** 2).sum(axis=1).mean()
    ours = ScalarQuantizer(4).fit(X)
    assert ours.distortion(X) < 0.7 * theirs, (ours.distortion(X), theirs)
    assert ours.clipped_ > 0


@each("metric", ["l2", "ip", "cosine"])
def test_an_index_of_scalar_codes_keeps_nearly_all_neighbours(X: np.ndarray, metric: str, tmp_path: Path) -> None:
    index = nk.Index.build(X, ScalarQuantizer(8), metric=metric)
    exact = nk.Index.build(X, metric=metric).search(X[:100], 10)[1]
    assert nk.metrics.recall_k_at_k(index.search(X[:100], 10)[1], exact, 10) > 0.9
    index.save(tmp_path / "idx")
    again = nk.Index.load(tmp_path / "idx")
    assert (again.search(X[:5], 3)[1] == index.search(X[:5], 3)[1]).all()


def test_wrong_codes_and_bits_are_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="n_bits"):
        ScalarQuantizer(5).fit(X)
    with pytest.raises(ValueError, match="must be uint8"):
        ScalarQuantizer(8).fit(X).decode(np.zeros((2, 3), np.uint8))
    with pytest.raises(ValueError, match="leave them out"):
        jobs.methods.find_method("int8").make(jobs.methods.CodeSize(16), 0)


def test_trials_of_clipping_are_numbered_from_one_and_the_least_error_is_kept(X: np.ndarray) -> None:
    seen: list[tuple[int, int, float]] = []
    model = ScalarQuantizer(4).fit(X, callback=lambda step, r: seen.append((step, r["total"], r["objective"])))
    assert [step for step, _, _ in seen] == list(range(1, 7))
    assert {total for _, total, _ in seen} == {6}
    shares = (0.0, 1e-4, 1e-3, 5e-3, 1e-2, 2e-2)
    assert model.clipped_ == shares[int(np.argmin([error for _, _, error in seen]))]


@each(("scale", "words"), [(1e5, "half precision ends at 65504"), (1e-9, "few digits below")])
def test_half_precision_refuses_values_that_it_cannot_hold(X: np.ndarray, scale: float, words: str) -> None:
    """Values beyond 65,504 became infinite, those below 6e-8 zero."""
    rows = X / np.abs(X).max() * np.float32(scale)
    with pytest.raises(ValueError, match=words):
        ScalarQuantizer(16).fit(rows)
    fitted = ScalarQuantizer(16).fit(X)
    assert np.isfinite(fitted.decode(fitted.encode(X / np.abs(X).max() * 65_504))).all()
    if scale > 1:
        with pytest.raises(ValueError, match="type n_bits=8"):
            fitted.encode(rows)
    ScalarQuantizer(8).fit(rows)
    ScalarQuantizer(16).fit(0 * X)


def test_ranges_are_those_that_sentence_transformers_takes(rng: np.random.Generator) -> None:
    """Its rule for int8: steps of (end - start) / 255 from the start, minus 128, cut off (quantize_embeddings)."""
    X = rng.normal(size=(2000, 6)).astype(np.float32)
    quantizer = ScalarQuantizer(8).fit(X)
    start, end = quantizer.ranges_
    steps = (end - start) / 255
    codes = np.clip((X - start) / steps - 128, -128, 127).astype(np.int8)
    theirs = (codes.astype(np.float32) + 128) * steps + start
    inside = (start <= X) & (end >= X)
    assert inside.mean() > 0.98
    assert np.abs(theirs - X)[inside].max() <= 1.01 * steps.max()
    np.testing.assert_allclose(theirs, quantizer.decode(quantizer.encode(X)), atol=1.01 * steps.max())
