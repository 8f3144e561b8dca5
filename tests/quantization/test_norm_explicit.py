"""Product codes with a byte of length: taken where it finds more, equal to product codes elsewhere, never lost."""

from pathlib import Path

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin._distributed import alone
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import NormExplicitQuantizer
from nearkin.quantization.norm_explicit import lengths


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    """Rows of heavy tails, and so of different lengths, about a mean that is not 0."""
    rng = np.random.default_rng(3)
    return (rng.standard_t(3, size=(1500, 64)) / np.arange(1, 65) ** 0.4 + 0.2).astype(np.float32)


@pytest.fixture(scope="module")
def model(X: np.ndarray) -> NormExplicitQuantizer:
    return NormExplicitQuantizer(12, max_iter=4, random_state=0).fit(X)


def decoded_slowly(model: NormExplicitQuantizer, X: np.ndarray) -> np.ndarray:
    """Rows by their definition: the nearest centroids, set to the nearest level of |x - mean| (the slow twin)."""
    Z, width = X @ model.rotation_, model.codebooks_.shape[2]
    rows = np.zeros_like(Z)
    for m, centroids in enumerate(model.codebooks_[:-1]):
        own = slice(m * width, (m + 1) * width)
        rows[:, own] = centroids[np.square(Z[:, None, own] - centroids).sum(2).argmin(1)]
    centred = rows @ model.rotation_.T - model.mean_
    true = np.linalg.norm(X - model.mean_.astype(float), axis=1)
    levels = model.lengths_[np.abs(model.lengths_ - true[:, None]).argmin(1)]
    return model.mean_ + centred * (levels / np.linalg.norm(centred, axis=1))[:, None]


def test_rows_decode_at_their_own_length(X: np.ndarray, model: NormExplicitQuantizer) -> None:
    codes = model.encode(X)
    assert codes.shape == (1500, 12)
    assert codes.dtype == np.uint8
    decoded = model.decode(codes)
    np.testing.assert_allclose(decoded, decoded_slowly(model, X), atol=1e-4)
    inside = slice(10, -10)  # the levels end at the .1 % quantiles
    order = np.argsort(lengths(X, model.mean_))[inside]
    np.testing.assert_allclose(lengths(decoded, model.mean_)[order], lengths(X, model.mean_)[order], rtol=0.02)


def test_a_byte_of_length_keeps_more_neighbours_than_a_byte_more_of_centroids(
    X: np.ndarray, model: NormExplicitQuantizer
) -> None:
    assert len(model.lengths_) == 256
    product = nk.ProductQuantizer(12, max_iter=4, random_state=0).fit(X)
    for metric in ("l2", "ip"):
        exact = nk.Index.build(X[300:], metric=metric).search(X[:300], 10)[1]
        kept = [
            recall_k_at_k(nk.Index.build(X[300:], code, metric=metric).search(X[:300], 10)[1], exact, 10)
            for code in (product, model)
        ]
        assert kept[1] > kept[0] + 0.02, (metric, kept)


def test_given_queries_decide_whether_a_byte_holds_the_length(
    X: np.ndarray, model: NormExplicitQuantizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = X.mean(axis=0) + 100 * np.random.default_rng(0).normal(size=(300, 64)).astype(np.float32)
    judged = X[750:]  # the first half would be the queries
    exact = nk.Index.build(judged).search(far, 10)[1]
    found = nk.Index.build(judged, model).search(far, 10)[1]
    assert model.recall(X, far) == pytest.approx(recall_k_at_k(found, exact, 10), abs=0.005)
    rows_alone = NormExplicitQuantizer.recall
    monkeypatch.setattr(
        NormExplicitQuantizer,
        "recall",
        lambda self, rows, queries: rows_alone(self, rows) if queries is None else -float(len(self.lengths_)),
    )
    short = NormExplicitQuantizer(12, max_iter=4, random_state=0)
    assert len(short.fit(X).lengths_) == 256
    assert not len(short.fit(X, queries=far).lengths_)
    with pytest.raises(ValueError, match="queries has 3 columns"):
        short.fit(X, queries=far[:, :3])


def test_rows_of_one_length_need_no_byte(X: np.ndarray) -> None:
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    for length in (1, 40):
        model = NormExplicitQuantizer(12, max_iter=2, random_state=0).fit(length * rows)
        assert len(model.lengths_) == 0
        assert model.length_ == pytest.approx(length, rel=1e-4)
        found = np.linalg.norm(model.decode(model.encode(length * rows[:50])), axis=1)
        np.testing.assert_allclose(found, length, rtol=1e-3)


def test_faiss_stores_the_same_codes_and_an_index_answers_at_the_lengths(
    X: np.ndarray, model: NormExplicitQuantizer, tmp_path: Path
) -> None:
    index = model.to_faiss("ip")
    model.add_to(index, X)
    inner = faiss.downcast_index(index.index)
    codes = faiss.vector_to_array(inner.codes).reshape(1500, 12)
    np.testing.assert_array_equal(codes, model.encode(X))
    for metric in ("l2", "ip"):
        index = nk.Index.build(X, model, metric=metric)
        index.add(X[:5]).remove([3]).update([7], X[:1])
        index.save(tmp_path / metric)
        again = nk.Index.load(tmp_path / metric)
        for ours, theirs in zip(index.search(X[:9], 4), again.search(X[:9], 4), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        scores, ids = again.search(X[100:120], 5)
        rows = decoded_slowly(model, X)[np.where(ids < 1500, ids, ids - 1500)]
        rows = np.where((ids == 7)[..., None], decoded_slowly(model, X[:1]), rows).astype(np.float64)
        Q = X[100:120, None]
        expected = np.square(Q - rows).sum(2) if metric == "l2" else (Q * rows).sum(2)
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)


def test_a_row_has_the_same_code_alone_and_after_saving(
    X: np.ndarray, model: NormExplicitQuantizer, tmp_path: Path
) -> None:
    model.save(tmp_path / "it")
    codes = model.encode(X[:60])
    np.testing.assert_array_equal(np.concatenate([model.encode(row[None]) for row in X[:60]]), codes)
    np.testing.assert_array_equal(NormExplicitQuantizer.load(tmp_path / "it").encode(X[:60]), codes)


def test_the_same_seed_gives_the_same_codes_whatever_group_fits(X: np.ndarray, model: NormExplicitQuantizer) -> None:
    with alone():
        again = NormExplicitQuantizer(12, max_iter=4, random_state=0).fit(X)
    np.testing.assert_array_equal(again.codebooks_, model.codebooks_)
    np.testing.assert_array_equal(again.lengths_, model.lengths_)


@pytest.mark.parametrize(("n_centroids", "n_lists"), [(256, 6), (16, 0), (16, 6)])
@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_lists_and_half_bytes_hold_the_length_too(
    X: np.ndarray, n_centroids: int, n_lists: int, metric: str, tmp_path: Path
) -> None:
    """Scores are those of the decoded rows, after rows came and went and the index was saved, alone and in a batch."""
    model = NormExplicitQuantizer(12, n_centroids, n_lists=n_lists, max_iter=2, random_state=0).fit(X)
    codes = model.encode(X)
    assert len(model.lengths_) == 256
    assert codes.shape == (1500, 12 + bool(n_lists))
    np.testing.assert_array_equal(np.concatenate([model.encode(row[None]) for row in X[:20]]), codes[:20])
    np.testing.assert_array_equal(codes[:, -1], model.length_codes(X))
    inside = slice(10, -10)  # the levels end at the .1 % quantiles
    order = np.argsort(lengths(X, model.mean_))[inside]
    found = lengths(model.decode(codes), model.mean_)
    np.testing.assert_allclose(found[order], lengths(X, model.mean_)[order], rtol=0.02)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(NormExplicitQuantizer.load(tmp_path / "model").decode(codes), model.decode(codes))
    for fast in (None, True) if n_centroids == 16 else (None,):
        index = nk.Index.build(X, model, metric=metric, fast_scan=fast, n_probe=n_lists or None)
        index.remove(np.arange(0, 200, 3)).update([7], X[:1])
        index.save(tmp_path / "idx")
        for searched in (index, nk.Index.load(tmp_path / "idx")):
            scores, ids = searched.search(X[300:420], 5)
            rows = np.where((ids == 7)[..., None], model.decode(codes[:1]), model.decode(codes)[ids]).astype(np.float64)
            Q = X[300:420, None]
            expected = np.square(Q - rows).sum(2) if metric == "l2" else (Q * rows).sum(2)
            np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(searched.search(X[300:301], 5)[0][0], scores[0], rtol=1e-3, atol=1e-3)


def test_a_length_in_lists_of_half_bytes_keeps_more_neighbours(X: np.ndarray) -> None:
    exact = nk.Index.build(X[300:]).search(X[:300], 10)[1]
    kept = {}
    for n_lists in (0, 6):
        codes = (
            nk.ProductQuantizer(24, 16, n_lists=n_lists, max_iter=3, random_state=0),
            NormExplicitQuantizer(12, 16, n_lists=n_lists, max_iter=3, random_state=0),
        )
        indexes = [nk.Index.build(X[300:], code, n_probe=n_lists or None) for code in codes]
        kept[n_lists] = [recall_k_at_k(index.search(X[:300], 10)[1], exact, 10) for index in indexes]
        assert kept[n_lists][1] > kept[n_lists][0] + 0.02, kept


HARD = {
    "three rows": lambda X: X[:3],
    "fewer rows than centroids": lambda X: X[:70],
    "equal rows": lambda X: X[[0] * 300],
    "zeros": lambda X: 0 * X[:300],
    "a row at the mean": lambda X: np.concatenate([X[:400] - X[:400].mean(0), 0 * X[:1]]),
    "constant columns": lambda X: np.where(np.arange(64) % 2, X[:400], np.float32(4)),
    "heavy tails": lambda X: X[:600] ** 3,
    "an offset": lambda X: X[:400] + 1e4,
    "tiny": lambda X: X[:400] * np.float32(1e-15),
    "huge": lambda X: X[:400] * np.float32(1e12),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_cases_have_codes_and_finite_rows(case: str, X: np.ndarray, tmp_path: Path) -> None:
    rows = np.ascontiguousarray(HARD[case](X))
    for n_bytes in (1, 2):
        model = NormExplicitQuantizer(n_bytes, max_iter=1, random_state=0).fit(rows)
        codes = model.encode(rows)
        assert codes.shape == (len(rows), n_bytes)
        assert np.isfinite(model.decode(codes)).all()
    model.save(tmp_path / "it")
    np.testing.assert_array_equal(NormExplicitQuantizer.load(tmp_path / "it").encode(rows), codes)


def test_what_cannot_be_coded_is_refused(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="n_bytes is 65, more than the 64 columns"):
        NormExplicitQuantizer(65).fit(X)
    with pytest.raises(ValueError, match="n_bytes is 0"):
        NormExplicitQuantizer(0).fit(X)
    with pytest.raises(ValueError, match="n_bytes is 33, more than half the 64 columns of X; give at most 32"):
        NormExplicitQuantizer(33, 16).fit(X)
    with pytest.raises(ValueError, match="n_centroids is 32"):
        NormExplicitQuantizer(3, 32).fit(X)
    with pytest.raises(ValueError, match="X contains NaN"):
        NormExplicitQuantizer(3).fit(np.where(np.arange(1500)[:, None] == 4, np.nan, X))
