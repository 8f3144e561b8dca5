"""Product codes of a size in bytes: one of them holds the norm where held-out queries find more by it."""

import numpy as np
import pytest

import nearkin as nk
from nearkin._distributed import alone
from nearkin.jobs.methods import CodeSize, find_method
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import AxisQuantizer, ScalarQuantizer
from nearkin.quantization.sized import ProductCode, WithNorms, fitted_code
from tests.covering import each

pytestmark = pytest.mark.usefixtures("few_rounds")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    """Rows of heavy tails, and so of different norms, about a mean that is not 0."""
    rng = np.random.default_rng(3)
    return (rng.standard_t(3, size=(1500, 64)) / np.arange(1, 65) ** 0.4 + 0.2).astype(np.float32)


@each(("n_centroids", "n_lists"), [(256, 0), (16, 6)])
def test_a_norm_with_the_code_finds_more_at_equal_bytes(X: np.ndarray, n_centroids: int, n_lists: int) -> None:
    made = ProductCode(12, n_centroids, n_lists=n_lists, max_iter=3, random_state=0)
    code, norms = fitted_code(made, X)
    each = 2 if n_centroids == 16 else 1
    assert code.n_subspaces == 11 * each
    other = nk.ProductQuantizer(12 * each, n_centroids, n_lists=n_lists, max_iter=3, random_state=0).fit(X)
    exact = nk.Index.build(X[300:]).search(X[:300], 10)[1]
    probes = n_lists or None
    plain, own = (
        nk.Index.build(X[300:], other, n_probe=probes),
        nk.Index.build(X[300:], code, n_probe=probes, norms=norms),
    )
    assert own.bytes_per_vector == plain.bytes_per_vector == 12 + bool(n_lists)
    found = [recall_k_at_k(index.search(X[:300], 10)[1], exact, 10) for index in (plain, own)]
    assert found[1] > found[0] + 0.02, found


@each("metric", ["l2", "ip", "cosine"])
def test_axis_codes_as_called_hold_the_norm_where_that_finds_more(X: np.ndarray, metric: str) -> None:
    """`AxisQuantizer(24)` of GIST lost .098 of ten neighbours without it."""
    rows, asked = X[300:1200], X[:200]
    exact = nk.Index.build(rows, metric=metric).search(asked, 10)[1]
    as_called, without = (nk.Index.build(rows, AxisQuantizer(8), metric=metric, norms=n) for n in (None, False))
    code, norms = fitted_code(find_method("axes").make(CodeSize(8), 0, metric=metric), rows)
    assert as_called.bytes_per_vector == without.bytes_per_vector == 8
    assert (code.n_bytes, norms is not None) == ((8, False) if metric == "cosine" else (7, True))
    assert as_called.quantizer.n_bytes == code.n_bytes
    found = [recall_k_at_k(index.search(asked, 10)[1], exact, 10) for index in (as_called, without)]
    assert found[0] >= found[1] + (0.02 if metric != "cosine" else 0), found
    assert without.quantizer.n_bytes == nk.Index.build(rows[:300], AxisQuantizer(8).fit(X)).quantizer.n_bytes == 8


def test_an_index_of_so_many_bytes_decides_by_itself(X: np.ndarray, tmp_path) -> None:
    X = X[:900]  # of which it takes product codes
    assert nk.Index.build(X, 12).norms is not None
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for rows, metric in ((X, "cosine"), (unit, "ip"), (40 * unit, "l2")):
        index = nk.Index.build(rows, 4, metric=metric)
        assert index.bytes_per_vector == index.quantizer.n_subspaces == 4
        assert index.norms.levels == pytest.approx(40 if metric == "l2" else 1, rel=1e-4)
    index.save(tmp_path / "idx")
    assert len(nk.Index.load(tmp_path / "idx").search(unit[:2], 3)[1]) == 2


def test_given_queries_decide(X: np.ndarray) -> None:
    """Far queries rank rows by their direction alone, which a norm does not change."""
    far = X.mean(axis=0) + 1e4 * np.random.default_rng(0).normal(size=(300, 64)).astype(np.float32)
    made = ProductCode(4, max_iter=4, random_state=0)
    made.fit(X, queries=X[:300])
    assert made.norms_ is not None
    made.fit(X[:, :6], queries=far[:, :6])
    with pytest.raises(ValueError, match="queries has 3 columns"):
        made.fit(X, queries=far[:, :3])


def test_the_same_seed_gives_the_same_codes_whatever_group_fits(X: np.ndarray) -> None:
    made, again = (ProductCode(12, max_iter=2, random_state=0) for _ in range(2))
    code = made.fit(X[:600])
    with alone():
        np.testing.assert_array_equal(again.fit(X[:600]).codebooks_, code.codebooks_)
    np.testing.assert_array_equal(made.norms_.levels, again.norms_.levels)


def test_any_code_may_have_norms(X: np.ndarray) -> None:
    code, norms = fitted_code(WithNorms(ScalarQuantizer(4)), X)
    assert nk.Index.build(X, code, norms=norms).bytes_per_vector == 33
    assert fitted_code(ScalarQuantizer(4), X)[1] is None


HARD = {
    "three rows": lambda X: X[:3],
    "fewer rows than centroids": lambda X: X[:70],
    "equal rows": lambda X: X[[0] * 300],
    "zeros": lambda X: 0 * X[:300],
    "a row at the mean": lambda X: np.concatenate([X[:400] - X[:400].mean(0), 0 * X[:1]]),
    "heavy tails": lambda X: X[:600] ** 3,
    "an offset": lambda X: X[:400] + 1e4,
    "tiny": lambda X: X[:400] * np.float32(1e-15),
    "huge": lambda X: X[:400] * np.float32(1e12),
}


@each("case", HARD)
@pytest.mark.filterwarnings("ignore")
def test_hard_rows_are_found(case: str, X: np.ndarray) -> None:
    rows = np.ascontiguousarray(HARD[case](X[:, :16]))
    code, chosen = fitted_code(ProductCode(2, max_iter=1, random_state=0), rows)
    for norms in (False, True):
        index = nk.Index.build(rows, code, norms=chosen or norms)
        scores, ids = index.search(rows[:5], len(rows))
        assert np.isfinite(scores).all()
        np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(len(rows)), (len(ids), 1)))


def test_what_cannot_be_coded_is_refused(X: np.ndarray) -> None:
    for made, match in (
        (ProductCode(65), "n_bytes is 65, more than the 64 columns"),
        (ProductCode(0), "n_bytes is 0"),
        (ProductCode(33, 16), "n_bytes is 33, more than half the 64 columns of X; give at most 32"),
        (ProductCode(3, 32), "n_centroids is 32"),
        (ProductCode(3, metric="hamming"), "metric is 'hamming'"),
    ):
        with pytest.raises(ValueError, match=match):
            made.fit(X)
    with pytest.raises(ValueError, match="X contains NaN"):
        ProductCode(3).fit(np.where(np.arange(1500)[:, None] == 4, np.nan, X))
