"""Candidates by four bits a byte find what FAISS finds by all bytes, its slow twin."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat
from pathlib import Path

import faiss
import numpy as np
import pytest

from nearkin import Index, ProductQuantizer
from nearkin.contracts import VectorCodes
from nearkin.index.searching import Scan, nearest
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer

ROWS = (np.random.default_rng(0).normal(size=(1_900, 24)) / np.sqrt(np.arange(1, 25))).astype(np.float32)
X, MORE, Q = ROWS[:1_200], ROWS[1_200:1_600], ROWS[1_600:]
MADE = {"axis": AxisQuantizer(12), "odd": AxisQuantizer(11)}
MADE["4 bits"], MADE["lists"] = (
    ProductQuantizer(12, 16, n_lists=n, rotation=None, max_iter=1, random_state=0) for n in (0, 20)
)
MADE["product"] = ProductQuantizer(12, 256, rotation=None, max_iter=1, random_state=0)
FEW = {"beam_size": 1, "max_iter": 1, "smoothing": 0, "random_state": 0}
MADE["residual"] = ResidualQuantizer(12, 16, **FEW)
MADE["parts"] = ProductResidualQuantizer(5, 3, 16, **FEW)  # 24 columns in 5 parts


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarse codes serve some hundred rows here; elsewhere as many as make them faster."""
    for name in ("_ROWS", "_ROWS_BY_US"):
        monkeypatch.setattr(f"nearkin.index.coarse_scan.{name}", 3)
    monkeypatch.setattr("nearkin.index.coarse_scan._LOST", 0.02)  # of few rows many are candidates


@cache
def fitted(name: str) -> VectorCodes:
    return MADE[name].fit(X)


def same(index: Index, k: int = 10) -> float:
    """The share of plain FAISS's neighbours that the index finds with coarse codes; scores are the same."""
    index.search(Q[:1], k)
    made = index._searched.scan(index.faiss_index, index.norms).coarse._made
    assert made.factor
    assert made.scan.ntotal == len(index)
    asked = Q[:60]  # FAISS decodes every row of sums for each
    (scores, ids), (expected, positions) = index.search(asked, k), index.faiss_index.search(asked, k)
    theirs = index.row_ids[positions]
    np.testing.assert_allclose(scores[ids == theirs], expected[ids == theirs], 1e-4, 1e-4)
    return float((ids[:, :, None] == theirs[:, None]).any(axis=2).mean())


@pytest.mark.parametrize(("name", "metric"), [*zip(MADE, repeat("l2")), *zip([*MADE][:5], repeat("ip"))])
def test_neighbours_are_those_of_whole_codes(name: str, metric: str) -> None:
    assert same(Index.build(X, fitted(name), metric=metric)) > 0.97


def test_rows_of_one_norm_in_lists_have_a_scan() -> None:
    """FAISS makes none of lists that a view shares."""
    lists = ProductQuantizer(12, 16, n_lists=20, rotation=None, max_iter=1, random_state=0)
    index = Index.build(X, lists, metric="cosine", n_probe=20)
    plain = Index.build(X, index.quantizer, metric="cosine", n_probe=20, fast_scan=False)
    assert (index.search(Q, 10)[1] == plain.search(Q, 10)[1]).mean() > 0.97
    assert index._searched.scan(index.faiss_index, index.norms).coarse._made.factor


def test_an_index_without_a_fast_scan_compares_all_codes() -> None:
    index = Index.build(X, fitted("product"), fast_scan=False)
    np.testing.assert_array_equal(index.search(Q, 10)[1], index.faiss_index.search(Q, 10)[1])
    assert index._searched.scan(index.faiss_index, index.norms).coarse._made is None
    with pytest.raises(ValueError, match="fast_scan is 'no'"):
        Index.build(X, fitted("product"), fast_scan="no")


def test_queries_unlike_the_rows_lose_no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial asked rows, whose neighbours are easy to find, and .92 of the ten nearest were enough."""
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    centres, asked = rng.normal(size=(1_000, 48)), rng.normal(size=(250, 48)).astype(np.float32)
    rows = (centres[rng.integers(1_000, size=10_000)] + 0.4 * rng.normal(size=(10_000, 48))).astype(np.float32)
    index = Index.build(rows, ProductQuantizer(16, 256, rotation=None, max_iter=1, random_state=0))
    ids, expected = index.search(asked, 10)[1], index.faiss_index.search(asked, 10)[1]
    assert (ids[:, :, None] == expected[:, None]).any(axis=2).mean() > 0.98


def product_codes(books: np.ndarray, codes: np.ndarray) -> faiss.IndexPQ:
    """An index of codes (n, M) of codebooks (M, 256, w)."""
    index = faiss.IndexPQ(books.shape[0] * books.shape[2], len(books), 8)
    faiss.copy_array_to_vector(books.ravel(), index.pq.centroids)
    index.is_trained = True
    index.add_sa_codes(codes)
    return index


@pytest.mark.parametrize(("far", "used"), [(3.0, True), (1e5, False)])
def test_a_centroid_far_out_leaves_the_scan_to_faiss(
    far: float, used: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of 8 bits hold either it or the others."""
    monkeypatch.undo()
    books = rng.normal(size=(12, 256, 2)).astype(np.float32)
    books[:, :16] = np.arange(16)[:, None] % 2 * far
    inner = product_codes(books, rng.integers(0, 256, (16_384, 12), dtype=np.uint8))
    asked = rng.normal(size=(500, 24)).astype(np.float32)
    scan = Scan(inner)
    nearest(scan, asked, 10, "l2")
    assert bool(scan.coarse._made.factor) == used


@pytest.mark.parametrize("name", ["axis", "4 bits", "lists", "product", "residual"])
def test_what_was_searched_or_changed_before_changes_no_result(name: str, tmp_path: Path) -> None:
    index = Index.build(X, fitted(name))
    alone = np.concatenate([copy.deepcopy(index).search(Q[i : i + 1], 10)[1] for i in range(2)])
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda i: index.search(Q[i : i + 1], 10)[1][0], range(6)))
    index.add(MORE).search(Q, 10)
    index.remove(np.arange(len(X), len(X) + len(MORE))).search(Q, 10)
    index.add(MORE).remove(np.arange(100)).search(Q[:1], 10)
    fresh = Index.build(np.concatenate([X[100:], MORE]), index.quantizer, ids=index.row_ids)
    np.testing.assert_array_equal(alone, at_once[:2])
    index.save(tmp_path / "index")
    for one in (index, Index.load(tmp_path / "index"), pickle.loads(pickle.dumps(index))):
        for a, b in zip(one.search(Q, 10), fresh.search(Q, 10), strict=True):
            np.testing.assert_array_equal(a, b)
    assert same(index.update(index.row_ids[:10], X[100:110])) > 0.97


def test_equal_rows_have_answers(rng: np.random.Generator) -> None:
    index = Index.build(np.repeat(X[:1], 1_200, axis=0), fitted("axis"))
    for _ in range(2):
        scores, ids = index.search(Q, 10)
        assert (ids >= 0).all()
        np.testing.assert_allclose(scores, scores[:, :1].repeat(10, axis=1), rtol=1e-5)
