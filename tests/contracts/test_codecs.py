"""One contract for every codec, to bytes or bits: codes, what they stand for, FAISS, folders, hard rows, bad calls."""

from copy import deepcopy
from functools import cache
from itertools import cycle, product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nearkin as nk
from nearkin._faiss import innermost
from nearkin.hashing import load, unpack_signs
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer
from tests.covering import each

N, D = 700, 32
rng = np.random.default_rng(1)
# correlated rows of heavy tails about a mean of some deviations: rotations matter here, and so does centring
ROWS = rng.standard_t(5, size=(N + 200, D)) @ (rng.normal(size=(D, D)) * (np.arange(1, D + 1) ** -0.7)[:, None])
X, NEW = np.split((ROWS + 3 * rng.normal(size=D)).astype(np.float32), [N])
SHORT = {"max_iter": 2, "random_state": 0}
PQ = {"init": "pca", **SHORT}

BYTES: dict[str, Any] = {
    "pq": nk.ProductQuantizer(8, 64, None, **PQ),
    "opq": nk.ProductQuantizer(8, 64, **PQ),
    "givens": nk.ProductQuantizer(8, 32, "givens-greedy", **PQ),
    "cayley": nk.ProductQuantizer(4, 64, "cayley", **PQ),
    "wide subspaces": nk.ProductQuantizer(2, 64, **PQ),
    "padded": nk.ProductQuantizer(7, 32, **PQ),
    "padded lists": nk.ProductQuantizer(7, 16, "givens-greedy", n_lists=3, **PQ),
    "9 bits": nk.ProductQuantizer(4, 300, None, **PQ),
    "100 centroids": nk.ProductQuantizer(8, 100, **PQ),
    "4 bits": nk.ProductQuantizer(8, 16, **PQ),
    "lists": nk.ProductQuantizer(8, 64, n_lists=10, **PQ),
    "two bytes of list": nk.ProductQuantizer(8, 16, None, n_lists=300, **PQ),
    "residual": ResidualQuantizer(4, 16, **SHORT),
    "residual lists": ResidualQuantizer(4, 16, n_lists=8, **SHORT),
    "residual by products": ResidualQuantizer(4, 16, metric="ip", known=True, **SHORT),
    "product residual": ProductResidualQuantizer(2, 2, 16, **SHORT),
    "product residual, as given": ProductResidualQuantizer(2, 2, 16, None, **SHORT),
    "product residual, padded": ProductResidualQuantizer(3, 2, 16, **SHORT),
    "product residual lists": ProductResidualQuantizer(2, 2, 16, n_lists=8, **SHORT),
    "product residual, padded lists": ProductResidualQuantizer(3, 2, 16, n_lists=8, **SHORT),
    "axes": AxisQuantizer(6),
    "a byte of axes": AxisQuantizer(1),
    **{f"{bits} bits a column": ScalarQuantizer(bits) for bits in (4, 6, 8, 16)},
}
BITS: dict[str, Any] = {
    "ITQ": nk.ITQ(12, random_state=0),
    "ITQ, whitened": nk.ITQ(12, whitening=0.5, random_state=0),
    "OnE": nk.OnE(12, random_state=0),
    "OnE, stiefel": nk.OnE(12, solver="stiefel", random_state=0),
    "OgE": nk.OgE(12, random_state=0),
    "Signs": nk.Signs(12),
    "PCAHash": nk.PCAHash(12),
    "RandomHyperplanes": nk.RandomHyperplanes(12, random_state=0),
    "RandomHyperplanes, orthogonal": nk.RandomHyperplanes(12, orthogonal=True, random_state=0),
}
CODECS = BYTES | BITS
for_bytes, for_bits, for_all = (each("name", table) for table in (BYTES, BITS, CODECS))
# one of each class, for what it does whatever its settings are
KINDS = ["opq", "lists", "residual", "product residual, padded", "axes", "8 bits a column"]
LEARNED = [name for name in BITS if name not in ("Signs", "ITQ, whitened", "OnE, stiefel")]
for_kinds = each("name", [*KINDS, *LEARNED])


@cache
def fitted(name: str) -> Any:
    """With learning in few rounds; nobody changes it."""
    return clone(CODECS[name]).fit(X)


def test_no_codec_is_left_out() -> None:
    public = [getattr(room, name) for room in (nk, nk.hashing, nk.quantization) for name in dir(room)]
    codecs = {one.__name__ for one in public if isinstance(one, type) and hasattr(one, "encode")}
    assert codecs == {type(codec).__name__ for codec in CODECS.values()}


# ---- codes and what they stand for


@for_all
def test_a_row_alone_has_the_code_of_any_batch_on_any_threads(name: str) -> None:
    codec, codes = fitted(name), fitted(name).encode(X)
    assert codes.dtype == (np.uint16 if name == "9 bits" else np.uint8)
    for batch in (slice(0, 1), slice(1, 8), slice(8, 300), slice(N - 1, N)):
        np.testing.assert_array_equal(codec.encode(X[batch]), codes[batch])
    np.testing.assert_array_equal(np.vstack([codec.encode(row[None]) for row in X[:60]]), codes[:60])
    np.testing.assert_array_equal(codec.encode(X[::-1])[::-1], codes)
    for rows in (X.copy(order="F"), X.astype(np.float64), X.tolist()):
        np.testing.assert_array_equal(codec.encode(rows), codes)
    threads = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(4)
        np.testing.assert_array_equal(codec.encode(X), codes)
    finally:
        faiss.omp_set_num_threads(threads)


@for_bytes
def test_codes_decode_to_what_distortion_says(name: str) -> None:
    codec, codes = fitted(name), fitted(name).encode(NEW)
    decoded = codec.decode(codes)
    assert decoded.shape == NEW.shape
    assert len(codes[0]) == len(codec.get_feature_names_out())
    np.testing.assert_array_equal(codec.transform(NEW), codes)
    np.testing.assert_array_equal(codec.inverse_transform(codes), decoded)
    error = np.square(NEW - decoded, dtype=np.float64).sum(axis=1).mean()
    cut = 1.1 if "padded" in name else 1 + 3e-4  # what lies in the padding is cut off
    assert error <= codec.distortion(NEW) * (1 + 1e-4) <= error * cut
    assert error < 0.7 * np.square(NEW - X.mean(axis=0)).sum(axis=1).mean()


@for_bits
def test_bits_are_packed_signs_of_the_stated_linear_map(name: str) -> None:
    codec = fitted(name)
    values, codes = codec.project(X), codec.encode(X)
    assert (values.shape, codes.shape) == ((N, 12), (N, 2))
    map_of = codec.scale_ * (X - codec.mean_) @ codec.projection_ + codec.intercept_
    np.testing.assert_allclose(values, map_of, atol=1e-4)
    np.testing.assert_array_equal(np.packbits(values >= 0, axis=1, bitorder="little"), codes)
    np.testing.assert_array_equal(unpack_signs(codes, 12), np.where(values >= 0, 1, -1))
    np.testing.assert_array_equal(codec.transform(X), values >= 0)
    assert codec.quantization_error(X) == pytest.approx(np.square(np.where(values >= 0, 1, -1) - values).mean(), 1e-4)


@each("dtype", [np.float32, np.float64])
@each("name", [name for name in BITS if name not in ("ITQ, whitened", "Signs", "RandomHyperplanes")])
def test_columns_of_the_map_are_orthogonal(name: str, dtype: type) -> None:
    P = clone(CODECS[name]).fit(X.astype(dtype)).projection_
    assert (P.shape, P.dtype) == ((D, 12), dtype)
    lengths = np.linalg.norm(P, axis=0)
    np.testing.assert_allclose(P.T @ P / lengths / lengths[:, None], np.eye(12), atol=1e-6)
    assert name == "OgE" or np.allclose(lengths, 1, atol=1e-6)


@each("name", LEARNED)
def test_near_rows_have_near_bits(name: str) -> None:
    exact = np.square(NEW[:, None] - X).sum(axis=2).argsort(axis=1)[:, :20]
    ids = fitted(name).search(NEW, fitted(name).encode(X), 20)[1]
    assert nk.metrics.recall_k_at_k(ids, exact, 20) > 4 * 20 / N


@for_all
def test_the_same_seed_gives_the_same_codes_and_history(name: str) -> None:
    heard: list[tuple[int, Any]] = []
    again = clone(CODECS[name]).fit(X, callback=lambda *step: heard.append(step))
    np.testing.assert_array_equal(again.encode(NEW), fitted(name).encode(NEW))
    if "random_state" in again.get_params():
        drawn = clone(again).set_params(random_state=np.random.default_rng(0)).fit(X)
        np.testing.assert_array_equal(drawn.encode(NEW), again.encode(NEW))
    assert [step for step, _ in heard] == list(range(1, 1 + len(heard)))
    if name in BITS:
        np.testing.assert_allclose([record["objective"] for _, record in heard], again.history_)
        assert (np.diff(again.history_) <= 0).all()
    elif hasattr(again, "history_"):
        assert len(heard) == len(again.history_)
        first, last = again.history_[0]["distortion"], again.history_[-1]["distortion"]
        assert last <= first
        assert last == pytest.approx(again.distortion(X), rel=0.2)  # of a sample, and without the columns of errors
    else:
        assert {record["total"] for _, record in heard} <= {len(heard)}


@each("name", KINDS)
def test_the_order_of_the_rows_means_nothing(name: str) -> None:
    """Beyond what another seed would change: sorted rows, which a sample from the first ones would not serve."""
    codec = clone(CODECS[name]).fit(X[np.argsort(X[:, 0])])
    assert codec.distortion(NEW) == pytest.approx(fitted(name).distortion(NEW), rel=0.15)


# ---- FAISS and folders


def searched(codec: Any, metric: str) -> faiss.Index:
    """FAISS's index of the rows X, as it is after it was written and read."""
    index = codec.to_faiss(metric)
    assert (index.is_trained, index.ntotal) == (True, 0)
    codec.add_to(index, X)
    index = faiss.deserialize_index(faiss.serialize_index(index))
    if isinstance(lists := innermost(index), faiss.IndexIVF):
        lists.nprobe = lists.nlist
    return index


@each("metric", ["l2", "ip"])
@for_bytes
def test_faiss_scores_the_decoded_rows(name: str, metric: str) -> None:
    codec = fitted(name)
    rows, Q = codec.decode(codec.encode(X)), NEW[:40]
    if hasattr(codec, "smoothing"):  # to columns of which a part's last adds the error's size and is 0 in queries
        rows, Q = codec._decoded(codec.encode(X)), Q @ codec.rotation_
    exact = np.square(Q[:, None] - rows).sum(axis=2) if metric == "l2" else -Q @ rows.T
    scores, ids = searched(codec, metric).search(NEW[:40], 10)
    found, size = np.take_along_axis(exact, ids, axis=1), 1e-4 * np.abs(exact).max()
    best = np.isclose(found, np.sort(exact, axis=1)[:, :10], rtol=1e-3, atol=size).mean()
    if "padded" not in name:  # whose columns more tell rows apart that decode alike
        assert best == 1
        np.testing.assert_allclose(scores, found if metric == "l2" else -found, rtol=1e-3, atol=size)
    else:
        assert best > 0.9


@for_bytes
def test_faiss_encodes_as_the_codec_but_for_equally_near_centroids(name: str) -> None:
    codec, index = fitted(name), fitted(name).to_faiss()
    if hasattr(codec, "smoothing"):  # whose codes are chosen by a metric that FAISS does not have
        assert index.sa_code_size() == codec.faiss_codes(NEW).shape[1]
        return
    decoded, own = (index.sa_decode(codes) for codes in (index.sa_encode(NEW), codec.faiss_codes(NEW)))
    np.testing.assert_allclose(own, codec.decode(codec.encode(NEW)), atol=1e-4)
    assert (np.abs(decoded - own).max(axis=1) > 1e-4).mean() <= 0.01
    errors = [np.square(NEW - rows, dtype=np.float64).sum(axis=1) for rows in (decoded, own)]
    np.testing.assert_allclose(*errors, rtol=1e-4)


@each("name", [name for name in BYTES if type(BYTES[name]) in (nk.ProductQuantizer, ProductResidualQuantizer)])
def test_a_codec_is_read_back_from_faiss(name: str) -> None:
    codec, codes = fitted(name), fitted(name).encode(NEW)
    back = type(codec).from_faiss(codec.to_faiss())
    assert back.codebooks_.shape == codec.codebooks_.shape
    np.testing.assert_allclose(back.decode(codes), codec.decode(codes), rtol=1e-5, atol=1e-4)
    if isinstance(codec, nk.ProductQuantizer):  # sums are coded by a metric that FAISS does not have
        np.testing.assert_array_equal(back.encode(NEW), codes)


@for_bits
def test_faiss_ranks_bits_as_numpy(name: str) -> None:
    codec = fitted(name)
    codes, queries = codec.encode(X), codec.encode(NEW[:50])
    expected = np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2)
    index, lists = codec.to_faiss(), codec.to_faiss(n_lists=8, codes=codes)
    lists.nprobe = lists.nlist
    found = [codec.search(NEW[:50], codes, 50)]
    for made in (index, lists):
        assert isinstance(made, faiss.IndexBinary)
        assert (made.is_trained, made.ntotal) == (True, 0)
        made.add(codes)
        found.append(made.search(queries, 50))
    for distances, ids in found:
        np.testing.assert_array_equal(distances, np.sort(expected, axis=1)[:, :50])
        np.testing.assert_array_equal(np.take_along_axis(expected, ids, axis=1), distances)


@for_all
def test_a_saved_codec_is_the_same(name: str, tmp_path: Path) -> None:
    codec = fitted(name)
    codec.save(tmp_path / "codec")
    for again in (type(codec).load(tmp_path / "codec"), *([load(tmp_path / "codec")] if name in BITS else [])):
        assert type(again) is type(codec)
        assert again.get_params() == codec.get_params()
        assert vars(again).keys() == vars(codec).keys() - {"_running"}
        np.testing.assert_array_equal(again.encode(NEW), codec.encode(NEW))
        np.testing.assert_equal(getattr(again, "history_", None), getattr(codec, "history_", None))


# ---- hard rows and bad calls

HARD = {
    "all rows equal": lambda X: np.full_like(X[:80], 3),
    "zeros": lambda X: 0 * X[:80],
    "duplicate rows": lambda X: X[np.arange(80) % 5],
    "constant columns": lambda X: np.where(np.arange(D) % 2, X[:80], np.float32(4)),
    "one column that varies": lambda X: np.where(np.arange(D) == 3, X[:80], np.float32(4)),
    "few rows": lambda X: X[:64],
    "heavy tails": lambda X: X[:300] ** 5,
    "an offset": lambda X: X[:80] + 1e4,
    "tiny": lambda X: X[:80] * np.float32(1e-12),
    "huge": lambda X: X[:80] * np.float32(1e12),
    "whole numbers": lambda X: np.round(10 * X[:300]).astype(np.int64),
    "half precision": lambda X: X[:80].astype(np.float16),
}


IN_TURN = cycle(["pq", "lists", "givens", "cayley", "8 bits a column", "product residual", "padded lists"])
FAR = [("an offset", name) for name in ("wide subspaces", "lists", "residual lists", "product residual")]  # FAISS's
# own encoders gave other codes to one row in a hundred: the rounding of a product is that of its batch


@pytest.mark.filterwarnings("ignore")
@each(("case", "name"), [*product(HARD, ("opq", "axes", "residual")), *zip(HARD, IN_TURN, strict=False), *FAR])
def test_hard_rows_have_codes_no_worse_than_their_mean(case: str, name: str, tmp_path: Path) -> None:
    rows = np.ascontiguousarray(HARD[case](X))
    codec = clone(CODECS[name]).fit(rows)
    codes = codec.encode(rows)
    decoded = codec.decode(codes).astype(np.float64)
    assert np.isfinite(decoded).all()
    turn = getattr(codec, "rotation_", np.eye(D))
    np.testing.assert_allclose(turn @ turn.T, np.eye(D), atol=1e-4)
    spread, size = (np.square(rows - of, dtype=np.float64).sum(axis=1).mean() for of in (rows.mean(axis=0), 0))
    assert np.square(rows - decoded).sum(axis=1).mean() <= 1.01 * spread + 1e-6 * size
    again = np.random.default_rng(0).integers(len(rows), size=150)  # centroids may tie, and equal rows at any place
    np.testing.assert_array_equal(codec.encode(rows[again]), codes[again])
    np.testing.assert_array_equal(np.vstack([codec.encode(row[None]) for row in rows[:20]]), codes[:20])
    codec.save(tmp_path / "codec")
    np.testing.assert_array_equal(type(codec).load(tmp_path / "codec").decode(codes), codec.decode(codes))


@each("name", LEARNED)
def test_awkward_rows_have_bits(name: str) -> None:
    wide = np.random.default_rng(0).standard_normal((20, 100))  # fewer rows than columns
    for case in ("constant columns", "an offset", "whole numbers", "half precision"):
        rows = HARD[case](X)
        assert len(np.unique(clone(CODECS[name]).fit(rows).encode(rows))) > 3
    assert len(np.unique(clone(CODECS[name]).fit(wide).encode(wide))) > 3


@for_kinds
def test_far_rows_are_named_and_leave_the_codes_of_the_others_alone(name: str) -> None:
    """One of 2,500 rows of SIFT 10^6 times as long: sums kept .004 of the neighbours, axes .539 for .870, ITQ .003."""
    for places, size in (([499], 1e6), ([3, 77, 400, 499], 1e4)):
        rows = X[:500].copy()
        rows[places] *= np.float32(size)
        others, alone = np.delete(rows, places, axis=0), clone(CODECS[name])
        with pytest.warns(
            UserWarning, match=rf"far vectors: vector ({'|'.join(map(str, places))}) (lies|and 3 more lie)"
        ):
            codec = clone(alone).fit(rows)
        if name in BITS:
            np.testing.assert_array_equal(codec.encode(others), alone.fit(others).encode(others))
            continue
        assert codec.distortion(others) < 1.3 * alone.fit(others).distortion(others)  # a centroid may be theirs
        if len(places) == 1 and hasattr(codec, "codebooks_") and name != "axes":  # an axis has no room for them
            np.testing.assert_allclose(codec.decode(codec.encode(rows[places])), rows[places], rtol=1e-3)


def spoilt(value: float, row: int = 7) -> np.ndarray:
    return np.where(np.arange(N)[:, None] == row, np.float32(value), X)


REFUSED: list[tuple[str, Any, type[Exception], str]] = [  # method, argument, error, what its text names
    *((method, spoilt(np.nan), ValueError, "row 7") for method in ("fit", "encode")),
    *((method, spoilt(np.inf), ValueError, "inf") for method in ("fit", "encode")),
    *((method, X[0], ValueError, "2-D") for method in ("fit", "encode")),
    *((method, X.astype(complex), ValueError, "[Cc]omplex") for method in ("fit", "encode")),
    *((method, X[:0], ValueError, "n_samples=0|0 sample") for method in ("fit", "encode")),
    ("encode", X[:, :16], ValueError, "16 features.*32"),
]


@each(("method", "given", "error", "match"), REFUSED)
@for_kinds
def test_bad_rows_are_refused(method: str, given: Any, error: type[Exception], match: str, name: str) -> None:
    codec = clone(CODECS[name]) if method == "fit" else fitted(name)
    with pytest.raises(error, match=match):
        getattr(codec, method)(given)


@each("name", KINDS[:5])  # a byte a column holds such a mark; a far row is named, or clipped
def test_a_missing_value_mark_is_named(name: str) -> None:
    for method in ("fit", "partial_fit", "encode", "distortion"):
        if hasattr(CODECS[name], method):
            codec = clone(fitted(name)) if method == "fit" else deepcopy(fitted(name))
            with pytest.raises(ValueError, match=r"X\[7, 3\] is 1e\+20.*missing"):
                getattr(codec, method)(np.where(np.arange(D) == 3, spoilt(1e20), X))


@each("name", KINDS)
def test_bad_codes_are_refused(name: str) -> None:
    codec, codes = fitted(name), fitted(name).encode(X[:2])
    for wrong in (codes[:, :-1], codes[0], codes.astype(float), codes - 0.5):
        with pytest.raises((ValueError, TypeError), match=f"codes.*{codes.shape[1]}|codes .*float"):
            codec.decode(wrong)


ARGUMENTS = {"encode": [X], "decode": [X], "distortion": [X], "project": [X], "search": [X, X, 1], "to_faiss": []}


@for_all
def test_what_is_not_fitted_says_so(name: str) -> None:
    for method, arguments in ARGUMENTS.items():
        if hasattr(CODECS[name], method):
            with pytest.raises(NotFittedError):
                getattr(clone(CODECS[name]), method)(*arguments)


P, R, S = nk.ProductQuantizer, ResidualQuantizer, ProductResidualQuantizer
PARAMETERS: list[tuple[Any, type[Exception], str]] = [
    (P(33), ValueError, "n_subspaces is 33.* 32 columns"),
    (P(8, 5000), ValueError, "n_samples=700.*n_centroids=5000"),
    (P(8, 1), ValueError, "n_centroids is 1"),
    (P(8, 2.5), TypeError, r"n_centroids is 2\.5"),
    (P(8, 16, "opq"), ValueError, "rotation is 'opq'.*'procrustes'"),
    (P(8, 16, init="best"), ValueError, "init is 'best'"),
    (P(8, 16, n_lists=701), ValueError, "n_lists=701"),
    (P(8, 16, step=-1.0), ValueError, r"step is -1\.0"),
    (P(8, 16, max_iter=0), ValueError, "max_iter is 0"),
    (P(8, 16, n_blocks=10**9), ValueError, "n_blocks is 1000000000"),  # it ran for days
    (R(4, 100), ValueError, "n_centroids is 100.*power of two"),
    (R(0, 16), ValueError, "n_codebooks is 0"),
    (R(4, 8192), ValueError, "8192"),
    (R(2, 16, metric="cosine"), ValueError, "metric is 'cosine'"),
    (R(2, 16, known="all"), ValueError, "known is 'all'"),
    (S(33, 2, 16), ValueError, "n_splits is 33.* 32 columns"),
    (AxisQuantizer(33), ValueError, "n_bytes is 33.* 32 columns"),
    (AxisQuantizer(0), ValueError, "n_bytes is 0"),
    (ScalarQuantizer(5), ValueError, "n_bits is 5"),
    *((kind(0), ValueError, "n_bits is 0") for kind in (nk.ITQ, nk.OnE, nk.OgE, nk.PCAHash, nk.RandomHyperplanes)),
    *((kind(33), ValueError, "n_bits is 33.* 32") for kind in (nk.OnE, nk.OgE, nk.PCAHash, nk.Signs)),
    *((nk.RandomHyperplanes(5 * 10**8, orthogonal=o), ValueError, "n_bits is 500000000") for o in (False, True)),
    (nk.ITQ(2.5), TypeError, r"n_bits is 2\.5"),
    (nk.OnE(8, solver="sgd"), ValueError, "solver is 'sgd'.*'stiefel'"),
    (nk.OnE(8, n_inner=0), ValueError, "n_inner is 0"),
    (nk.OgE(4, mu=0.0), ValueError, r"mu is 0\.0"),
    (nk.OgE(4, ridge=0.0), ValueError, r"ridge is 0\.0"),
    *((kind(4, **wrong), ValueError, f"{name} is {value!r}") for kind in (nk.OnE, nk.OgE) for wrong in (
        {"scale": "eq26"}, {"scale": -1.0}, {"n_components": 0}, {"tol": -1.0}, {"max_iter": 0},
    ) for name, value in wrong.items()),
]  # fmt: skip


@each(("codec", "error", "match"), PARAMETERS)
def test_bad_parameters_are_refused(codec: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        codec.fit(X)
