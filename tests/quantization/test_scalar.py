"""Scalar codes are FAISS's own, clip outliers where that helps, and survive saving."""

import faiss
import numpy as np
import pytest

from nearkin.quantization.scalar import ScalarQuantizer, _error
from tests.covering import each

BITS = (4, 6, 8, 16)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_t(3, size=(2000, 9)).astype(np.float32)
    X[:, 4] = 2.5
    return X


def test_more_bits_err_less_and_ranges_are_chosen_by_the_error_that_faiss_makes(X: np.ndarray) -> None:
    made = {bits: ScalarQuantizer(bits).fit(X) for bits in BITS}
    errors = [quantizer.distortion(X) for quantizer in made.values()]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4
    for bits, error in zip(BITS[:-1], errors, strict=False):
        assert _error(X, made[bits].scale_, 2**bits - 1) * 9 == pytest.approx(error, rel=0.01)


def test_clipping_a_heavy_tail_lowers_the_error_of_faiss(X: np.ndarray) -> None:
    plain = faiss.IndexScalarQuantizer(9, faiss.ScalarQuantizer.QT_4bit)
    plain.train(X)
    plain.add(X)
    theirs = ((plain.reconstruct_n(0, len(X)) - X) ** 2).sum(axis=1).mean()
    ours = ScalarQuantizer(4).fit(X)
    assert ours.distortion(X) < 0.7 * theirs, (ours.distortion(X), theirs)
    assert ours.clipped_ > 0


@each(("scale", "offset", "words"), [(1e5, 0, "to 65504"), (1e-9, 0, "X is 1e-09"), (1, 1e3, "float16 .* 1/256")])
def test_half_precision_refuses_what_it_cannot_hold(X: np.ndarray, scale: float, offset: int, words: str) -> None:
    """Values beyond 65,504 became infinite, those below 6e-8 zero; about a far middle all became one."""
    rows = X / np.abs(X).max() * np.float32(scale) + np.float32(offset)
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
