import json
import shutil
import tracemalloc
from functools import partial
from itertools import product

import faiss
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from nearkin import ITQ, Index, OgE, ProductQuantizer, RandomHyperplanes, Rotation
from nearkin._storage import write_arrays
from nearkin.quantization import ResidualQuantizer
from tests.covering import each
from tests.refusals import each_refused
from tests.storage.signed import signed

X = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32) + 1
Q = np.random.default_rng(1).normal(size=(20, 16)).astype(np.float32) + 1

QUANTIZERS = {
    "exact": None,
    "pq": ProductQuantizer(8, 32, rotation=None, random_state=0),
    "opq": ProductQuantizer(8, 32, random_state=0, max_iter=3),
    "4 bits": ProductQuantizer(8, 16, random_state=0, max_iter=3),
    "ivf": ProductQuantizer(8, 16, n_lists=8, random_state=0, max_iter=3),
    "sums": ResidualQuantizer(3, 16, random_state=0, max_iter=1),
    "sums in lists": ResidualQuantizer(3, 16, n_lists=4, random_state=0, max_iter=1),
}
IDS = {"none": None, "integers": np.arange(600) * 7 - 53, "strings": np.array([f"row-é{i}" for i in range(600)])}


@pytest.fixture(params=QUANTIZERS)
def quantizer(request):
    return QUANTIZERS[request.param]


def test_plain_faiss_opens_the_file_with_the_same_ids(quantizer, tmp_path):
    """Integers from 0 on are in the inverted lists themselves, as FAISS writes them, others in a map of ids."""
    lists = getattr(quantizer, "n_lists", 0) > 0
    for ids, mapped in ((None, False), (IDS["integers"], True), (np.abs(IDS["integers"]), not lists)):
        index = Index.build(X, quantizer, ids)
        index.save(tmp_path / "idx", overwrite=True)
        plain = faiss.read_index(str(tmp_path / "idx" / "index.faiss"))
        assert isinstance(plain, faiss.IndexIDMap) == mapped
        np.testing.assert_array_equal(plain.search(Q, 5)[1], index.search(Q, 5)[1])


def test_threads_change_no_codes_and_no_ids(quantizer):
    """Scores of product codes are sums whose order FAISS chooses by the threads: they may differ by rounding."""
    found, before = [], faiss.omp_get_max_threads()
    try:
        for threads in (1, 2, 3):
            faiss.omp_set_num_threads(threads)
            index = Index.build(X, None if quantizer is None else clone(quantizer))
            found.append((*index.search(Q, 10), faiss.serialize_index(index.faiss_index)))
    finally:
        faiss.omp_set_num_threads(before)
    for scores, ids, content in found[1:]:
        np.testing.assert_allclose(scores, found[0][0], rtol=1e-5)
        np.testing.assert_array_equal(ids, found[0][1])
        np.testing.assert_array_equal(content, found[0][2])


def test_inverted_lists_that_hold_too_few_say_so():
    pq = ProductQuantizer(8, 16, n_lists=100, random_state=0, max_iter=1)
    for ids, missing in ((None, -1), (IDS["strings"], "")):
        scores, found = Index.build(X, pq, ids, n_probe=1).search(Q, 50)
        assert (found == missing).any()
        np.testing.assert_array_equal(np.isinf(scores), found == missing)


@each("hasher", [ITQ(16, random_state=0), OgE(12, random_state=0), RandomHyperplanes(16, random_state=0)])
def test_bits_by_products_with_signs_and_by_plain_faiss(hasher, tmp_path):
    rows, asked = (each.astype(np.float64) + 1e8 for each in (X, Q))  # float32 would lose them
    index = Index.build(rows, hasher, IDS["strings"], "hamming")
    index.save(tmp_path / "bits")
    plain = faiss.read_index_binary(str(tmp_path / "bits" / "index.faiss"))
    codes = index.quantizer.encode(asked)
    np.testing.assert_array_equal(plain.search(codes, 8)[0], index.search(asked, 8)[0])
    assert index.bytes_per_vector == 2
    signs = np.where(index.quantizer.project(rows) >= 0, 1, -1)
    expected = index.quantizer.project(asked) @ signs.T
    scores = index.search(asked, 5, asymmetric=True)[0]
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :5], rtol=1e-3, atol=1e-4)
    assert (index.search(asked, 2, among=["row-é7"], asymmetric=True)[1] == ["row-é7", ""]).all()


def test_bad_folders(tmp_path):
    """What is missing, and an index of another format or kind; other damage: tests/storage."""
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Index.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"has no config.json"):
        Index.load(tmp_path)
    Index.build(X[:5]).save(tmp_path / "idx")
    config = tmp_path / "idx" / "config.json"
    record = json.loads(config.read_text())
    for change, match in (
        ({"format_version": 99}, "99.*pip install -U nearkin"),
        ({"kind": "hasher"}, "'hasher'.*'index'"),
    ):
        config.write_text(json.dumps(record | change))
        with pytest.raises(ValueError, match=match):
            Index.load(tmp_path / "idx")


def named() -> Index:
    return Index.build(X, ids=IDS["strings"])


def bits(seed: int) -> Index:
    return Index.build(X, RandomHyperplanes(16, random_state=seed), metric="hamming")


def bytes_(seed: int) -> Index:
    return Index.build(X, ProductQuantizer(2, 16, max_iter=2, random_state=seed))


BAD = [
    (lambda i: i.search(Q[:, :5]), ValueError, "Q has 5 columns.* 16"),
    (lambda i: i.search(Q[0]), ValueError, "2-D"),
    (lambda i: i.search(Q, 0), ValueError, "k is 0"),
    (lambda i: i.search(Q, oversample=2), ValueError, "keep_vectors=True"),
    (lambda i: i.search(Q, oversample=np.inf), ValueError, "oversample is inf"),
    (lambda i: i.search(Q, oversample="4"), TypeError, "oversample is '4'"),
    (lambda i: i.search(Q, asymmetric=True), ValueError, "metric='hamming'"),
    (lambda i: i.search(np.full((1, 16), np.nan)), ValueError, "Q contains NaN"),
    (lambda i: i.search(Q * 1e20), ValueError, r"Q\[\d+, .* float32"),
    (lambda i: i.add(X.astype(np.float64) * 1e200), ValueError, r"X\[\d+, .* float32"),
    (lambda i: i.add(X[:2], ids=[1, 2]), ValueError, "ids is given"),
    (lambda i: Index.build(X.astype(np.float64) * 1e30), ValueError, r"X\[\d+, .* float32"),
    (lambda i: Index.build(X.astype(str).astype(object)), TypeError, r"text.* np.asarray\(X"),
    (lambda i: Index.build(np.array([*X, None], object)[:-1]), TypeError, r"np.stack\(X\)"),  # of pandas
    (lambda i: Index.build(X[:, :, None]), ValueError, r"X.reshape\(600, -1\)"),
    (lambda i: Index.build(X.astype(complex)), ValueError, "complex"),
    (lambda i: Index.build(X, metric="euclid"), ValueError, "metric is 'euclid'.* 'l2'"),
    (lambda i: Index.build(X, metric="hamming"), ValueError, "gives bits"),
    (lambda i: Index.build(X, ITQ(8)), ValueError, "ITQ gives bits.* metric='hamming'"),
    (lambda i: Index.build(X, QUANTIZERS["pq"], metric="hamming"), ValueError, "gives bytes.* metric='l2' or 'ip'"),
    (lambda i: Index.build(X, StandardScaler()), TypeError, "quantizer is a StandardScaler"),
    (lambda i: Index.build(X[:, :8], QUANTIZERS["pq"].fit(X)), ValueError, "16 columns.* 8"),
    (lambda i: i.merge(i), ValueError, "other is this index itself"),
    *((lambda i, other=other: i.merge(other()), ValueError, "cannot be merged") for other in (
        lambda: Index.build(X, metric="ip"),
        lambda: Index.build(X[:, :8]),
        lambda: Index.build(X, QUANTIZERS["pq"]),
        lambda: Index.build(X, ids=np.arange(600)),
        lambda: Index.build(X, keep_vectors=True),
    )),
    *((lambda i, made=made: made(0).merge(made(1)), ValueError, "different quantizers") for made in (bits, bytes_)),
    (lambda i: i.remove([3, 600, 700]), ValueError, "2 ids .* 600"),
    (lambda i: i.remove([3, 3]), ValueError, "more than once.* 3"),
    (lambda i: i.update([3], X[:2]), ValueError, r"ids have shape \(1,\).*\(2,\)"),
    (lambda i: named().add(X[:2], ids=["new", "row-é0"]), ValueError, "1 id is in the index already"),
    (lambda i: named().add(X[:2], ids=[1, 2]), TypeError, "integers.* strings"),
]  # fmt: skip


def test_bad_input():
    each_refused(BAD, Index.build(X))


def test_progress_is_reported():
    seen = []
    index = Index.build(X, callback=lambda done, record: seen.append((done, record["total"])))
    index.search(Q, callback=lambda done, record: seen.append((done, record["total"])))
    assert seen == [(600, 600), (20, 20)]


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_n_probe_is_read_and_set(metric):
    index = Index.build(X, ProductQuantizer(2, 16, n_lists=20, max_iter=2, random_state=0), metric=metric, n_probe=1)
    one = index.search(X[:50], 10)[1]
    assert index.n_probe == 1
    index.n_probe = 20
    assert (index.search(X[:50], 10)[1] != one).any()
    for lists, probed in ((4, 4), (20, 16), (288, 18)):  # sixteen lists, or a sixteenth of many
        quantizer = ProductQuantizer(1, 4, n_lists=lists, init="identity", max_iter=1, random_state=0).fit(X)
        assert Index.empty(16, quantizer).n_probe == probed, lists
    flat = Index.build(X)
    assert flat.n_probe is None
    for of, match in ((index, "n_probe is 21"), (flat, "n_probe is for an inverted file")):
        with pytest.raises(ValueError, match=match):
            of.n_probe = 21


def test_a_quantizer_fitted_on_rows_of_another_length_is_refused(tmp_path):
    """In silence it kept .476 of the neighbours by cosine, where one fitted by the index kept .696."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    raw, normalised = (ProductQuantizer(4, 16, max_iter=2, random_state=0).fit(rows) for rows in (X, unit))
    assert (raw.normalized_, normalised.normalized_) == (False, True)
    for name, quantizer in (("raw", raw), ("unit", normalised)):
        quantizer.save(tmp_path / name)
    raw, normalised = (ProductQuantizer.load(tmp_path / name) for name in ("raw", "unit"))
    with pytest.raises(ValueError, match=r"quantizer was fitted on others; fit it on X / np.linalg.norm\(X, axis=1"):
        Index.build(X, raw, metric="cosine")
    with pytest.raises(ValueError, match="fitted on normalised vectors, and those of X have other norms"):
        Index.build(X, normalised)
    by_hand, by_index = (Index.build(X, q, metric="cosine") for q in (normalised, clone(normalised)))
    np.testing.assert_array_equal(by_hand.search(Q)[1], by_index.search(Q)[1])
    Index.build(unit, normalised)
    Index.build(X, ProductQuantizer.from_faiss(raw.to_faiss()), metric="cosine")  # of which nothing is known


def test_folders_whose_parts_do_not_belong_together_are_refused(tmp_path):
    pq = ProductQuantizer(4, 16, max_iter=2, random_state=0).fit(X)
    Index.build(X, pq, IDS["integers"]).save(tmp_path / "l2")
    Index.build(X, pq, IDS["integers"] + 1, "ip").save(tmp_path / "ip")
    Index.build(X).save(tmp_path / "exact")
    Index.build(X, RandomHyperplanes(16), IDS["strings"], "hamming").save(tmp_path / "bits")
    for number, (target, source, part) in enumerate((
        *product(["l2"], ["ip", "bits"], ["index.faiss", "config.json", "arrays.safetensors"]),
        *(("l2", "exact", "index.faiss"), ("l2", "bits", "quantizer"), ("exact", "l2", "quantizer")),
        *(("bits", "l2", "quantizer"), ("bits", "exact", "index.faiss")),
    )):  # fmt: skip
        mixed = shutil.copytree(tmp_path / target, tmp_path / f"{number}")
        copy = shutil.copytree if part == "quantizer" else shutil.copy
        shutil.rmtree(mixed / part, ignore_errors=True)
        copy(tmp_path / source / part, mixed / part)
        with pytest.raises(ValueError, match=r"damaged|other ids|of another program|cannot be read"):
            Index.load(signed(mixed))
    for ids in (np.zeros(600, np.int64), np.arange(599), np.arange(600.0)):
        write_arrays(tmp_path / "exact" / "arrays.safetensors", {"row_ids": ids})
        with pytest.raises(ValueError, match="lacks the ids of the vectors"):
            Index.load(signed(tmp_path / "exact"))
    config = json.loads((tmp_path / "l2" / "config.json").read_text())
    for change in ({"metric": "ip"}, {"n_features": 8}, {"n_rows": 9}, {"metric": 3}, {"n_rows": "x"}, {"errors": 1}):
        (tmp_path / "l2" / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(ValueError, match="damaged"):
            Index.load(signed(tmp_path / "l2"))


def test_few_centroids_of_two_columns_are_refused_where_faiss_cannot_search_them():
    """Before, such an index was built and saved, and every search ended in FAISS's own error."""
    X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    quantizer = ProductQuantizer(4, 4, rotation=None, max_iter=1, random_state=0)
    with pytest.raises(ValueError, match="n_centroids is 4 and subspaces have 2 columns"):
        Index.build(X, quantizer)
    for works in ({"n_subspaces": 2}, {"n_lists": 2}, {"n_centroids": 5}):
        index = Index.build(X, quantizer.set_params(n_subspaces=4, n_centroids=4, n_lists=0).set_params(**works))
        assert index.search(X[:3], 2)[1].shape == (3, 2)


@each(
    "fit",
    [
        *(partial(Index.build, quantizer=made) for made in (None, 2)),
        ResidualQuantizer(2, 8).fit,
        Rotation("int8").fit,
    ],
)
def test_data_that_float32_cannot_tell_apart_are_refused(fit):
    """Before, every row had distance 0, and the first rows were everybody's nearest; sums of codes held nothing."""
    X = np.random.default_rng(0).normal(size=(60, 8))
    for wrong, error in ((X * 1e-25, r"about 0 in float32.* for example by 3e\+24"), (X + 1e9, "float32 would round")):
        with pytest.raises(ValueError, match=error):
            fit(wrong)
    Index.build(X * 1e-15).add(X * 1e-25)
    Index.build(X * 0, None)
    Index.build(0.1 + 0 * X + 1e-17 * X)  # equal but for float64's own rounding
    with pytest.raises(ValueError, match="by their norms"):  # whose own spread hides that of the directions
        Index.build((X + 1e6) * np.arange(1, 61)[:, None], metric="cosine")


def test_queries_and_rows_of_any_length_have_the_same_cosines():
    """Squares of 1e-23 are 0 in float32: the scores were."""
    rng = np.random.default_rng(0)
    rows, Q = (rng.normal(size=(n, 8)).astype(np.float32) for n in (60, 5))
    scores, ids = Index.build(rows, metric="cosine").search(Q, 3)
    for scale in (np.float32(1e-23), np.float32(1e-38)):
        for index in (Index.build(rows, metric="cosine"), Index.build(rows * scale, metric="cosine")):
            found = index.search(Q * scale, 3)
            np.testing.assert_allclose(found[0], scores, atol=1e-5)
            np.testing.assert_array_equal(found[1], ids)


@each(
    ("dtype", "metric"),
    [("float16", "l2"), ("int8", "ip"), *((dtype, "cosine") for dtype in ("float16", "int8", "uint8"))],
)
def test_small_numbers_are_indexed_without_a_float32_copy(dtype, metric, monkeypatch):
    """As text encoders' APIs give them; the peak was that of a copy, four bytes a number."""
    monkeypatch.setattr("nearkin.index.index._CHUNK", 250)
    X = (np.random.default_rng(0).normal(size=(6_000, 32)) * 30).clip(-127, 127)
    X = (X if dtype != "uint8" else np.abs(X)).astype(dtype)
    as_floats, made = X.astype(np.float32), ProductQuantizer(4, 32, max_iter=2, random_state=0)
    quantizer = Index.build(as_floats[:500], made, metric=metric).quantizer
    tracemalloc.start()
    index = Index.build(X, quantizer, metric=metric)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * as_floats.nbytes, f"{peak} bytes at the peak, {as_floats.nbytes} of a copy"
    expected = Index.build(as_floats, quantizer, metric=metric)
    assert (index.norms is None) == (expected.norms is None)
    others = ([Index.build(rows[:600], q, metric=metric) for rows in (X, as_floats)] for q in (made, None))
    for one, other in ((index, expected), *others):
        for found, wanted in zip(one.search(X[:50], 5), other.search(as_floats[:50], 5), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_the_least_int8_is_kept_as_int8_without_its_sign_lost():
    """Of -128 there is no absolute value in int8."""
    X = np.array([[-128, 3, 1, 0], [127, 0, 2, 5], [1, 2, 3, 4]], np.int8)
    index = Index.build(X, keep_vectors="int8")
    expected = Index.build(X.astype(np.float32), keep_vectors="int8")
    np.testing.assert_array_equal(index.kept.rows(np.arange(3)), expected.kept.rows(np.arange(3)))
    assert index.kept.rows(np.arange(1))[0, 0] == pytest.approx(-128)


def test_rows_of_one_column_are_searched() -> None:
    rows = np.array([[0.0], [3.0], [4.0]], np.float32)
    np.testing.assert_array_equal(Index.build(rows).search(np.array([[3.4]], np.float32), 3)[1], [[1, 2, 0]])
