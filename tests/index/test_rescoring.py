"""Vectors that an index keeps: in memory and in a file, in three types, ranked as NumPy ranks them."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.index.kept_vectors import KeptVectors, rescore
from nearkin.index.searching import normalised
from tests.covering import covering, each


@each(("kind", "parts", "metric"), covering(["float32", "float16", "int8"], [0, 1, 3], ["l2", "ip", "cosine"]))
def test_candidates_are_ranked_as_numpy_ranks_them(rng, metric, parts, kind, tmp_path):
    """In memory in one part or three, and mapped (0)."""
    X, Q = (rng.normal(size=(n, 7)).astype(np.float32) for n in (90, 300))
    Q = normalised(Q) if metric == "cosine" else Q
    candidates = rng.permuted(np.tile(np.arange(90), (300, 1)), axis=1)[:, :12]
    candidates[:, -1] = -1
    kept = KeptVectors.wanted(kind, 7)
    for part in np.split(X, parts or 1):
        kept = kept.with_rows(part)
    X = kept.rows(np.arange(90))
    if not parts:
        kept.save(tmp_path / "vectors.npy")
        kept = KeptVectors.load(tmp_path / "vectors.npy", *X.shape)
    rows = (normalised(X) if metric == "cosine" else X)[candidates].astype(float)
    exact = ((rows - Q[:, None]) ** 2).sum(-1) if metric == "l2" else -np.einsum("qcd,qd->qc", rows, Q)
    exact[:, -1] = np.inf
    scores, found = rescore(Q, candidates, kept, 5, metric)
    order = np.argsort(exact, axis=1)[:, :5]
    assert np.array_equal(found, np.take_along_axis(candidates, order, 1))
    wanted = np.take_along_axis(exact, order, 1)
    np.testing.assert_allclose(scores, wanted if metric == "l2" else -wanted, rtol=1e-5, atol=1e-5)


@each("metric", ["l2", "ip"])
def test_equal_scores_keep_the_order_of_the_codes_and_missing_ones_come_last(metric):
    X = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)  # four rows each at one place
    candidates = np.array([[7, 9, 4, 6, 2, 3, 5, -1], [2, 0, -1, -1, -1, -1, -1, -1]])
    scores, found = rescore(X[[4, 0]], candidates, KeptVectors([X]), 6, metric)
    np.testing.assert_array_equal(found, [[7, 4, 6, 5, 9, 2], [2, 0, -1, -1, -1, -1]])
    expected = np.square(X[[4, 0], None] - X[found]).sum(-1) if metric == "l2" else (X[[4, 0], None] * X[found]).sum(-1)
    np.testing.assert_array_equal(scores, np.where(found < 0, np.inf if metric == "l2" else -np.inf, expected))


@each(("kind", "bytes_", "within"), [("float32", 32, 0.0), ("float16", 16, 2.0**-11), ("int8", 12, 0.501 / 127)])
def test_kept_vectors_take_the_bytes_of_their_type_and_survive_changes(tmp_path, rng, kind, bytes_, within):
    """float16 rounds to 11 bits, int8 to 127 steps of a row's largest entry; both are saved as they lie in memory."""
    X = rng.normal(size=(600, 8)).astype(np.float32) * np.geomspace(1e-3, 1e3, 600)[:, None].astype(np.float32)
    quantizer, gone = nk.ProductQuantizer(2, 16, rotation=None, max_iter=1, random_state=0), np.arange(0, 600, 7)
    index = nk.Index.build(X[:500], quantizer, keep_vectors=kind).add(X[500:]).remove(gone)
    index.save(tmp_path / "idx")
    loaded, left = nk.Index.load(tmp_path / "idx"), np.delete(X, gone, axis=0)
    for kept in (index.kept, loaded.kept, loaded.add(X[:1]).kept):
        assert (kept.dtype.name, kept.row_bytes) == (kind, bytes_)
        error = np.abs(kept.rows(np.arange(len(left))) - left)
        assert (error <= within * np.abs(left).max(axis=1, keepdims=True) + 2.0**-25).all()
    more = {"float32": 0, "float16": 2, "int8": 4}[kind]  # rows that hold the offsets
    assert (tmp_path / "idx" / "vectors.npy").stat().st_size == 128 + (len(left) + more) * bytes_
    scores, found = loaded.search(left[:20], 1, oversample=600)
    assert (found[:, 0] == np.delete(np.arange(600), gone)[:20]).mean() > 0.9
    assert scores.max() <= 8 * (within * np.abs(left[:20]).max()) ** 2 + 1e-9


def test_rows_that_float16_holds_exactly_are_kept_so_by_default(rng):
    for dtype in (np.float16, np.int8, np.uint8, bool, np.float32):
        X = rng.integers(0, 100, (40, 4)).astype(dtype)
        kept = nk.Index.build(X, keep_vectors=True).kept
        assert kept is not None
        assert kept.dtype == (np.float32 if dtype == np.float32 else np.float16)
        np.testing.assert_array_equal(kept.rows(np.arange(40)), X.astype(np.float32))


def test_what_cannot_be_kept_is_refused_before_the_work():
    X = np.array([[1.0, 70_000.0], [2.0, 0.0], [3.0, 0.0]], np.float32)
    index = nk.Index.build(X / 2, keep_vectors="float16")
    for call in (lambda: nk.Index.build(X, keep_vectors="float16"), lambda: index.add(X)):
        with pytest.raises(ValueError, match=r"'float16'.*65,504.*70,000"):
            call()
    with pytest.raises(ValueError, match="keep_vectors is 'float8'"):
        nk.Index.build(X, keep_vectors="float8")
    assert len(index) == 3


def test_rows_far_from_the_first_are_warned_of_where_int8_cannot_tell_them_apart(rng):
    """An add of rows at another place kept .03 of what exact vectors rank, in silence."""
    X = rng.normal(size=(600, 8)).astype(np.float32)
    index = nk.Index.build(X, keep_vectors="int8").add(X[:100] + np.float32(0.5))
    with pytest.warns(UserWarning, match=r"X lies 1e\+03 from the first vectors"):
        index.add(X[:100] + np.float32(1000))


def test_a_view_shares_the_rows_under_other_ids_and_vectors(rng: np.random.Generator) -> None:
    X, names = rng.normal(size=(60, 8)).astype(np.float32), np.arange(60) + 100
    index = nk.Index.build(X, nk.ProductQuantizer(2, 8, random_state=0), ids=np.arange(60) + 7)
    view = index.view(names, X.astype(np.float64))
    np.testing.assert_array_equal(view.search(X, 5)[1] - 100, index.search(X, 5)[1] - 7)
    np.testing.assert_array_equal(view.search(X, 1, oversample=60)[1][:, 0], names)
    assert (index.kept, index.row_ids[0], index.view().row_ids[0]) == (None, 7, 0)
    for wrong in ((None, X[:-1]), (names[:-1],)):
        with pytest.raises(ValueError, match=r"have shape \(59,"):
            index.view(*wrong)


@each("kind", ["float16", "int8"])
def test_an_offset_of_a_column_costs_kept_vectors_nothing(tmp_path, rng, kind):
    """At 3,000, float16 has steps of 2 and one step of an int8 vector is 24."""
    X, Q = (rng.normal(size=(n, 32)).astype(np.float32) for n in (1_500, 150))
    found = []
    for offset in (0, 3_000, 500_000):
        A, B = (rows + np.where(np.arange(32) == 5, np.float32(offset), 0) for rows in (X, Q))
        codes = nk.ProductQuantizer(4, 16, random_state=0, max_iter=5)
        index = nk.Index.build(A[:800], codes, keep_vectors=kind).add(A[800:])
        index.save(tmp_path / f"{offset}")
        results = (one.search(B, 10, oversample=150)[1] for one in (index, nk.Index.load(tmp_path / f"{offset}")))
        found += [nk.metrics.knn_recall(ids, A, B) for ids in results]
    assert min(found) > max(found) - 0.03 > 0.9, found


def test_whole_numbers_and_rows_of_zeros_are_exact_in_int8():
    X = np.array([[-127, 3, 0], [0, 0, 0], [127, 126, 1]], np.float32)
    kept = nk.Index.build(X, keep_vectors="int8").kept
    assert kept is not None
    np.testing.assert_array_equal(kept.rows(np.arange(3)), X)


def test_an_index_that_keeps_vectors_is_loaded_before_its_first_row(tmp_path):
    """Its file of vectors had shape (0, 0), and loading called the folder damaged."""
    nk.Index.empty(4, keep_vectors=True).save(tmp_path / "idx")
    loaded = nk.Index.load(tmp_path / "idx").add(np.eye(4, dtype=np.float32))
    assert loaded.search(np.eye(4)[:1], 1, oversample=4)[1].tolist() == [[0]]
