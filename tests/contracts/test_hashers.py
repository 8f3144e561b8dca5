"""One contract for every hasher."""

import faiss
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import nearkin as nk
from nearkin.hashing import load, unpack_signs
from tests.covering import each

FAMILY = {  # name -> maker; every hasher of the library stands here
    "ITQ": nk.ITQ,
    "ITQ-whitened": lambda n_bits=32, **kw: nk.ITQ(n_bits, whitening=0.5, **kw),
    "OnE": nk.OnE,
    "OnE-stiefel": lambda n_bits=32, **kw: nk.OnE(n_bits, solver="stiefel", **kw),
    "OgE": nk.OgE,
    "Signs": nk.Signs,
    "PCAHash": nk.PCAHash,
    "RandomHyperplanes": nk.RandomHyperplanes,
    "RandomHyperplanes-orthogonal": lambda n_bits=32, **kw: nk.RandomHyperplanes(n_bits, orthogonal=True, **kw),
}
ORTHOGONAL = ("ITQ", "OnE", "OnE-stiefel", "OgE", "PCAHash", "RandomHyperplanes-orthogonal")
FOR_ALL = each("name", FAMILY)
LEARNED = each("name", [name for name in FAMILY if name != "Signs"])  # which takes columns as they are


@pytest.fixture(scope="module")
def digits():
    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="module")
def fitted(digits):
    """Every hasher at 12 bits: padding is at work."""
    return {name: make(12, random_state=0).fit(digits) for name, make in FAMILY.items()}


@pytest.mark.parametrize("name", [name for name in FAMILY if "-" not in name])  # one of each class
def test_scikit_learn_rules(name):
    few = {"max_iter": 3} if "max_iter" in FAMILY[name]().get_params() else {}
    check_estimator(FAMILY[name](2, **few), on_skip=None)
    with pytest.raises(NotFittedError):
        FAMILY[name](8).to_faiss()


@FOR_ALL
def test_codes_are_packed_signs_of_the_stated_linear_map(fitted, digits, name):
    h = fitted[name]
    values, codes = h.project(digits), h.encode(digits)
    assert values.shape == (len(digits), 12)
    assert (codes.shape, codes.dtype) == ((len(digits), 2), np.uint8)
    np.testing.assert_allclose(values, h.scale_ * (digits - h.mean_) @ h.projection_ + h.intercept_, atol=1e-4)
    np.testing.assert_array_equal(np.packbits(values >= 0, axis=1, bitorder="little"), codes)
    np.testing.assert_array_equal(unpack_signs(codes, 12), np.where(values >= 0, 1, -1))
    np.testing.assert_array_equal(h.transform(digits), values >= 0)
    assert h.transform(digits).dtype == np.uint8
    assert len(h.get_feature_names_out()) == 12
    for i in (0, 1, 127, 128, 255, 299):
        np.testing.assert_array_equal(h.encode(digits[i : i + 1])[0], codes[i])
    assert 0 < h.retained_variance(digits) <= 1 + 1e-9
    assert h.quantization_error(digits) > 0


@pytest.fixture(scope="module")
def exact(digits):
    """The 20 nearest of the other digits to each of the first 200."""
    return np.argsort(((digits[:200, None] - digits[None, 200:]) ** 2).sum(axis=2), axis=1)[:, :20]


@LEARNED
def test_codes_say_something_about_neighbours(fitted, digits, exact, name):
    """Every hasher's 20 nearest codes hold more true neighbours than chance would."""
    queries, base = digits[:200], digits[200:]
    ids = fitted[name].search(queries, fitted[name].encode(base), 20)[1]
    found = np.mean([len(np.intersect1d(a, b)) / 20 for a, b in zip(ids, exact, strict=True)])
    assert found > 10 * 20 / len(base), f"recall {found}"


@FOR_ALL
def test_same_seed_same_bits(digits, name):
    seeds = (0, 0, np.random.default_rng(0))
    first, again, drawn = (FAMILY[name](12, random_state=seed).fit(digits[:300]).encode(digits) for seed in seeds)
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(drawn, first)


@FOR_ALL
def test_callback_reports_each_iteration_and_none_raises_the_loss(digits, name):
    steps = []
    hasher = FAMILY[name](8, random_state=0).fit(digits[:300], callback=lambda *step: steps.append(step))
    assert [step for step, _ in steps] == list(range(1, hasher.n_iter_ + 1))
    np.testing.assert_allclose([record["objective"] for _, record in steps], hasher.history_)
    assert len(hasher.history_) == hasher.n_iter_
    assert (np.diff(hasher.history_) <= 0).all()


@each("name", ORTHOGONAL)
@each("dtype", [np.float32, np.float64])
def test_columns_are_orthogonal(digits, name, dtype):
    P = FAMILY[name](12, random_state=1).fit(digits[:500].astype(dtype)).projection_
    assert (P.shape, P.dtype) == ((64, 12), dtype)
    products = P.T @ P / np.linalg.norm(P, axis=0) / np.linalg.norm(P, axis=0)[:, None]
    assert np.abs(products - np.eye(12)).max() < 1e-6
    if name != "OgE":
        np.testing.assert_allclose(np.linalg.norm(P, axis=0), 1, atol=1e-6)


@FOR_ALL
def test_faiss_ranks_as_numpy(fitted, digits, name):
    hasher = fitted[name]
    codes, queries = hasher.encode(digits[100:]), hasher.encode(digits[:100])
    expected = np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2)
    index = hasher.to_faiss()
    assert isinstance(index, faiss.IndexBinary)
    assert (index.is_trained, index.ntotal) == (True, 0)
    index.add(codes)
    for distances, ids in (index.search(queries, 50), hasher.search(digits[:100], codes, 50)):
        np.testing.assert_array_equal(distances, np.sort(expected, axis=1)[:, :50])
        np.testing.assert_array_equal(np.take_along_axis(expected, ids, axis=1), distances)


@FOR_ALL
def test_inverted_lists(fitted, digits, name):
    codes = fitted[name].encode(digits)
    index = fitted[name].to_faiss(n_lists=8, codes=codes)
    assert (index.is_trained, index.ntotal, index.nlist) == (True, 0, 8)
    index.nprobe = 8
    index.add(codes)
    np.testing.assert_array_equal(index.search(codes[:20], 1)[0], np.zeros((20, 1)))


@FOR_ALL
def test_save_and_load(fitted, digits, name, tmp_path):
    hasher = fitted[name]
    hasher.save(tmp_path / "hasher")
    for other in (load(tmp_path / "hasher"), type(hasher).load(tmp_path / "hasher")):
        assert type(other) is type(hasher)
        assert other.get_params() == hasher.get_params()
        assert vars(other).keys() == vars(hasher).keys()
        np.testing.assert_array_equal(other.encode(digits), hasher.encode(digits))
        np.testing.assert_array_equal(other.history_, hasher.history_)


@LEARNED
def test_bad_data_are_refused(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 10))
    make = FAMILY[name]
    with pytest.raises(ValueError, match="X is constant"):
        make(2).fit(np.ones((50, 10)))
    broken = X.copy()
    broken[3, 4] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        make(2).fit(broken)
    hasher = make(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="inf"):
        hasher.encode(np.full((1, 10), np.inf))
    with pytest.raises(ValueError, match="features"):
        hasher.encode(X[:, :9])
    with pytest.raises(ValueError, match="n_bits is 0"):
        make(0).fit(X)


@LEARNED
def test_awkward_data_work(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    flat = X.copy()
    flat[:, [2, 5]] = 3.0  # columns without variance
    wide = rng.standard_normal((20, 100))  # fewer rows than columns
    for data in (flat, np.tile(X, (3, 1)), wide, X.astype(np.float32) + 1e4, (X * 40).astype(np.int64)):
        codes = FAMILY[name](8, random_state=0).fit(data).encode(data)
        assert len(np.unique(codes)) > 3


@each("name", ["ITQ", "OnE", "OgE", "PCAHash"])
def test_too_few_rows_and_columns_of_text_are_named(name):
    with pytest.raises(TypeError, match="X has 1 column without numbers: 'name'; drop them"):
        FAMILY[name](8).fit(pytest.importorskip("pandas").DataFrame({"x": range(20), "name": ["a"] * 20}))
    with pytest.raises(ValueError, match="n_samples=8 vectors; n_bits=8 needs at least 9, give more or"):
        FAMILY[name](8).fit(np.random.default_rng(0).standard_normal((8, 20)))


def test_bits_are_columns_in_a_pipeline():
    """Before, `transform` gave packed bytes, of which a linear model makes little."""
    X, y = load_digits(return_X_y=True)
    hasher = nk.ITQ(n_bits=32, random_state=0)
    right = [
        make_pipeline(step, RidgeClassifier()).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
        for step in (hasher, FunctionTransformer(hasher.fit(X[:1200]).encode))
    ]
    assert right[0] > right[1] + 0.05
