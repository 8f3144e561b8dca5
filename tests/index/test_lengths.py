"""Decoded rows are compared at their own length if the index knows it, and only then."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin import Index, ProductQuantizer
from nearkin._faiss import innermost, nearest_rows
from nearkin.contracts import Quantizer
from nearkin.linalg.orthonormal import row_length
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 24)) / np.arange(1, 25) ** 0.3 + 0.1
X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
ROWS, QUERIES = X[100:], X[:100]
CODES = {
    "product": ProductQuantizer(4, 64, max_iter=2, random_state=0),
    "product, padded": ProductQuantizer(5, 32, max_iter=2, random_state=0),
    "product, 4 bits": ProductQuantizer(6, 16, max_iter=2, random_state=0),
    "product, lists": ProductQuantizer(4, 64, n_lists=5, max_iter=2, random_state=0),
    "product, 4 bits, lists": ProductQuantizer(6, 16, n_lists=5, max_iter=2, random_state=0),
    "residual": ResidualQuantizer(3, 16, max_iter=1, random_state=2),
    "residual, by products": ResidualQuantizer(3, 16, metric="ip", max_iter=1, random_state=0),
    "residual, norms": ResidualQuantizer(3, 16, norm_bits=8, max_iter=1, random_state=0),
    "residual, lists": ResidualQuantizer(3, 16, n_lists=5, max_iter=1, random_state=0),
    "product residual": ProductResidualQuantizer(2, 2, 16, max_iter=1, random_state=0),
    "product residual, lists": ProductResidualQuantizer(2, 2, 16, norm_bits=8, n_lists=5, max_iter=1, random_state=0),
    "scalar": ScalarQuantizer(4),
    "axes": AxisQuantizer(3),
}


@cache
def fitted(name: str) -> Quantizer:
    return CODES[name].fit(ROWS)


def expected_scores(index: Index, rows: np.ndarray, length: float, Q: np.ndarray) -> np.ndarray:
    """Scores (q, n) of all rows: each decoded and brought to its length (the slow twin)."""
    decoded = index.quantizer.decode(index.quantizer.encode(rows)).astype(np.float64)
    decoded *= length / np.linalg.norm(decoded, axis=1, keepdims=True)
    if index.metric == "l2":
        return np.square(Q[:, None] - decoded).sum(axis=2)
    return Q @ decoded.T


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@pytest.mark.parametrize("name", CODES)
def test_scores_are_those_of_decoded_rows_at_their_length(name: str, metric: str) -> None:
    index = Index.build(ROWS, fitted(name), metric=metric, n_probe=5)
    assert index.norms.levels[0] == 1
    scores, ids = index.search(QUERIES, len(ROWS))
    expected = expected_scores(index, ROWS, 1.0, QUERIES)
    scanned = "FastScan" in type(innermost(index.faiss_index)).__name__  # FAISS rounds its scores to 8 bits of a table
    rounded = 0.05 if scanned and not (metric == "l2" and name.startswith(("residual", "product residual"))) else 1e-5
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, axis=1), atol=rounded)
    order = scores if metric == "l2" else -scores
    assert (np.diff(order, axis=1) >= 0).all()
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.arange(len(ROWS))[None].repeat(len(ids), axis=0))
    few = index.search(QUERIES, 10)[1]
    best = np.argsort(expected if metric == "l2" else -expected, axis=1)[:, :10]
    assert recall_k_at_k(few, best, 10) > 0.9  # candidates are found by FAISS's own scores
    alone = np.concatenate([index.search(q[None], 10)[1] for q in QUERIES[:20]])
    assert (alone == few[:20]).mean() > 0.98  # equal codes may stand in any order


@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("name", CODES)
def test_among_allowed_rows_the_scores_are_the_same(name: str, metric: str) -> None:
    index = Index.build(ROWS, fitted(name), metric=metric)
    allowed = np.arange(0, len(ROWS), 7)
    scores, ids = index.search(QUERIES, 10, among=allowed)
    expected = expected_scores(index, ROWS[allowed], 1.0, QUERIES)
    best = np.sort(expected, axis=1)[:, :10] if metric == "l2" else -np.sort(-expected, axis=1)[:, :10]
    own = np.take_along_axis(expected, ids // 7, axis=1)
    np.testing.assert_allclose(scores, own, atol=1e-5)
    assert np.isin(ids, allowed).all()
    assert np.isclose(scores, best, atol=1e-5).mean() > 0.98  # candidates are found by the codes' own scores


@pytest.mark.parametrize("name", ["product", "product, lists", "residual", "product residual", "axes"])
def test_more_neighbours_are_found_than_by_rounded_rows(name: str) -> None:
    true, gains = nearest_rows(ROWS, QUERIES, 10), []
    for metric in ("l2", "cosine"):
        index = Index.build(ROWS, fitted(name), metric=metric, n_probe=5)
        kept = recall_k_at_k(index.search(QUERIES, 10)[1], true, 10)
        index.norms = None
        gains.append(kept - recall_k_at_k(index.search(QUERIES, 10)[1], true, 10))
    assert min(gains) > 0, gains
    assert np.mean(gains) > 0.01, gains


def test_rows_of_one_other_length_are_compared_at_it() -> None:
    quantizer = ProductQuantizer(4, 64, max_iter=2, random_state=0).fit(512 * ROWS)
    index = Index.build(512 * ROWS, quantizer)
    assert index.norms.levels[0] == pytest.approx(512)
    scores, ids = index.search(512 * QUERIES, 5)
    expected = expected_scores(index, 512 * ROWS, 512, 512 * QUERIES)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, axis=1), rtol=1e-3)


@pytest.mark.parametrize(
    ("rows", "known"),
    [(ROWS * np.linspace(1, 1.2, len(ROWS))[:, None], False), (ROWS + 1e4, False), (0 * ROWS, False), (ROWS, True)],
    ids=["several", "far from the origin", "zeros", "one"],
)
def test_a_length_is_known_only_if_all_rows_have_it(rows: np.ndarray, known: bool) -> None:
    assert (row_length(rows) is not None) == known
    index = Index.build(rows.astype(np.float32), ProductQuantizer(4, 8, max_iter=1, random_state=0))
    assert (index.norms is not None) == known


def test_the_length_follows_changes_of_the_rows(tmp_path: Path) -> None:
    index = Index.empty(24, fitted("product"))
    for first in range(0, 100, 20):
        index.add(ROWS[first : first + 20])
    index.update([3], ROWS[200:201]).remove([5])
    other = Index.empty(24, fitted("product")).add(ROWS[100:120])
    index._next_id = index.ids = None
    index.merge(other)
    assert index.norms.levels[0] == 1
    index.save(tmp_path / "idx")
    again = Index.load(tmp_path / "idx")
    np.testing.assert_array_equal(again.search(QUERIES, 7)[0], index.search(QUERIES, 7)[0])
    rows = np.concatenate([np.delete(ROWS[:100], [3, 5], axis=0), ROWS[[200]], ROWS[100:120]])
    expected = np.sort(expected_scores(again, rows, 1.0, QUERIES), axis=1)[:, :7]
    np.testing.assert_allclose(again.search(QUERIES, 7)[0], expected, atol=1e-5)
    with pytest.raises(ValueError, match="ids are not in the index"):
        again.update([10**6], 2 * ROWS[:1])
    assert again.norms.levels[0] == 1
    again.add(2 * ROWS[:1])  # from here on FAISS's own scores hold
    assert again.norms is None
    np.testing.assert_allclose(again.search(QUERIES, 7)[0], again.faiss_index.search(QUERIES, 7)[0], atol=1e-6)
    again.save(tmp_path / "idx")
    assert Index.load(tmp_path / "idx").norms is None


def test_codes_learned_for_the_order_of_the_rows_keep_it() -> None:
    """Of 8,000 sentences they lost .008 of 10 neighbours at another length."""
    for trained, metric in (("ip", "cosine"), ("l2", "l2")):
        quantizer = ResidualQuantizer(2, 16, metric=trained, known=True, max_iter=1, random_state=0)
        assert Index.build(ROWS[:300], quantizer, metric=metric).norms is None


def test_an_export_and_the_judges_see_rows_at_their_length() -> None:
    from nearkin.export.source import Source

    index = Index.build(ROWS, fitted("product, lists"), metric="cosine", n_probe=5)
    rows = Source(index).as_searched(np.arange(50))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    best = nk.quantization.best(ROWS[:300], 3, seconds=0, random_state=0)
    length_known = Index.build(ROWS, best.quantizer)
    assert length_known.norms is None or length_known.norms.n_bytes == 0


@pytest.mark.parametrize("bits", [8, 16])
def test_codes_finer_than_the_rows_lengths_differ_keep_these(bits: int) -> None:
    """Half precision of SIFT, whose lengths differ by .1 %, once lost neighbours at one length."""
    rows = (512 * ROWS * (1 + 0.002 * np.sin(np.arange(len(ROWS)))[:, None])).astype(np.float16).astype(np.float32)
    index = Index.build(rows, ScalarQuantizer(bits))
    assert row_length(rows) is not None
    assert index.norms is None
    exact = Index.build(rows).search(512 * QUERIES, 10)[1]
    kept = recall_k_at_k(index.search(512 * QUERIES, 10)[1], exact, 10)
    assert kept >= (1.0 if bits == 16 else 0.9), kept


@pytest.mark.parametrize("name", ["product", "product, lists", "axes"])
def test_what_is_known_of_rows_ends_with_them(name: str) -> None:
    index = Index.build(ROWS, fitted(name), ids=np.arange(len(ROWS)), n_probe=5)
    index.search(QUERIES, 10)
    index.update(np.arange(100), ROWS[100:200]).remove(np.arange(300, 320)).add(ROWS[300:320], np.arange(300, 320))
    fresh = Index.build(np.concatenate([ROWS[200:], ROWS[100:200], ROWS[100:200]]), fitted(name), n_probe=5)
    np.testing.assert_allclose(index.search(QUERIES, 10)[0], fresh.search(QUERIES, 10)[0], atol=1e-5)
