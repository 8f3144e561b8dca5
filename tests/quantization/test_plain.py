"""`Index.build(X, n_bytes)`: the code of the highest recall that is made in three times the time of product codes."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization import plain
from nearkin.quantization.best import BestCode, Screening, Short
from nearkin.quantization.plain import PlainCode
from nearkin.quantization.sized import ProductCode, WithNorms
from tests.covering import each

N, D = 1500, 24


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    """Rows of different norms."""
    return (rng.normal(size=(N, D)) * rng.gamma(2, size=(N, 1))).astype(np.float32)


def finished(screening: Screening, recall: float) -> Short:
    product = nk.ProductQuantizer()
    product.trials_ = [{"candidate": "pca", "won": True}]
    return Short(np.full(len(screening.held.queries), recall), 8, product)


def fitted(monkeypatch: pytest.MonkeyPatch, made: PlainCode, X: np.ndarray, recalls: dict[str, float]):
    """What is fitted, on how many rows, if the short fits have these recalls; and the names of these fits."""
    heard, seen = list[str](), []

    def run(screening: Screening, one, **settings: object) -> Short:
        heard.append(one.name)
        return finished(screening, recalls.get(one.name, 0.0))

    monkeypatch.setattr(plain, "_SHORT", 300)  # else it takes 3,072 rows
    monkeypatch.setattr(Screening, "run", run)
    monkeypatch.setattr(
        plain, "fitted_code", lambda quantizer, X, **_: seen.append((quantizer, len(X))) or (None, None)
    )
    made.fit(X)
    return *seen[0], heard


@each(
    ("recalls", "n_bytes", "norms"),
    [
        ({"product": 0.5, "product-norms": 0.4, "residual": 0.5}, None, False),  # the cheaper of equals
        ({"product": 0.5, "product-norms": 0.6, "residual-norms": 0.6}, None, True),
        ({"product": 0.5, "product-norms": 0.4, "residual": 0.6}, (1, 8), False),
        ({"product": 0.5, "product-norms": 0.6, "residual-norms": 0.7}, (1, 7), True),
        ({"product": 0.5, "product-norms": 0.52, "residual": 0.6}, (1, 8), False),  # sums gain less by the norm
    ],
)
def test_the_short_fits_decide(monkeypatch, X, recalls, n_bytes, norms) -> None:
    code, rows, heard = fitted(monkeypatch, PlainCode(8, random_state=0), X, recalls)
    assert heard[:2] == ["product", "product-norms"]
    assert [name.endswith("-norms") for name in heard[2:]] == [recalls["product-norms"] > 0.53]
    assert isinstance(code, WithNorms) is norms
    code = code.quantizer if norms else code
    if n_bytes is None:
        assert (type(code), code.n_subspaces, rows) == (nk.ProductQuantizer, 8 - norms, N)
    else:
        assert (code.n_splits, code.n_codebooks) == n_bytes
        assert rows <= N


def test_rows_of_one_norm_need_no_byte(monkeypatch, X) -> None:
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for metric in ("cosine", "l2"):
        assert fitted(monkeypatch, PlainCode(8, metric=metric, random_state=0), unit, {})[2] == ["product", "residual"]


def test_what_cannot_be_compared_in_time_is_a_product_code(monkeypatch, X) -> None:
    for made, rows in (
        (PlainCode(8, metric="ip"), X), (PlainCode(1), X), (PlainCode(8), X[:400])
    ):  # fmt: skip
        code, _, heard = fitted(monkeypatch, made, rows, {})
        assert (type(code), heard) == (ProductCode, []), made


def test_sums_learn_from_what_time_allows() -> None:
    """The work is predicted from numbers of rows and columns alone, and grows beyond product codes' with all rows."""
    one = plain._sum_of(16, 10_000, 128)
    rows = {n: plain._rows_left(one, n, 128) for n in (1_000, 10_000, 60_000, 10**6)}
    assert plain._short(1_000) < rows[1_000] < 1_000
    assert rows[10**6] < 0
    assert plain._SHORT < rows[10_000] < 10_000 < rows[60_000] < 60_000
    assert plain._rows_left(one, 10_000, 784) > rows[10_000]  # a rotation of many columns takes product codes longer


def test_sums_over_all_columns_must_not_learn_from_fewer_rows() -> None:
    assert plain._sum_of(1, 5_000, 64) is None
    assert [plain._sum_of(size, 5_000, 128).chain for size in (8, 10, 16, 33)] == [8, 10, 4, 3]
    assert plain._sum_of(8, 60_000, 128).name == "product-residual"


def test_an_index_keeps_within_its_bytes(monkeypatch, X) -> None:
    monkeypatch.setattr(plain, "_SHORT", 300)
    monkeypatch.setattr(
        Screening, "run", lambda held, one, **_: finished(held, one.chain + one.name.endswith("-norms"))
    )
    monkeypatch.setitem(plain._SUMS, "max_iter", 0)
    index = nk.Index.build(X[:, :8], 3)
    assert (type(index.quantizer), index.quantizer.n_codebooks) == (nk.quantization.ResidualQuantizer, 2)
    assert (index.norms.n_bytes, index.bytes_per_vector) == (1, 3)
    assert index.search(X[:20, :8], 5)[1].shape == (20, 5)


def test_few_rows_and_columns_get_shorter_codes(rng: np.random.Generator) -> None:
    for n, n_bytes in ((1, 3), (2, 3), (17, 7), (300, 7)):
        X = rng.normal(size=(n, 4)).astype(np.float32)
        index = nk.Index.build(X, n_bytes)
        assert index.bytes_per_vector <= min(n_bytes, 4), n
        assert index.search(X[:1], 1)[1] == [[0]], n
    for wrong in (2.0, "2", [2], nk.ProductQuantizer):
        with pytest.raises(TypeError, match=r"n_bytes is 2\.0|quantizer is .*; give bytes a vector"):
            nk.Index.build(X, wrong)


def test_few_columns_are_half_floats_where_these_are_exact_enough(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 3))
    for scale, far, n_bytes in ((1, 0, 6), (1, 1e4, 3), (1e5, 0, 3), (1e-6, 0, 3), (0, 0, 6), (0, 7, 6)):
        index = nk.Index.build((scale * X + far).astype(np.float32), 16)
        assert index.bytes_per_vector == n_bytes, (scale, far)
    assert nk.Index.build(X.astype(np.float32), 5).bytes_per_vector == 3


@each("made", [PlainCode(3, random_state=0), ProductCode(3, max_iter=2), BestCode(3, 0.0, 0)])
def test_a_far_row_is_named_once(monkeypatch, X, made) -> None:
    monkeypatch.setattr(plain, "_SHORT", 300)
    monkeypatch.setitem(plain._SUMS, "max_iter", 0)
    X = np.where(np.arange(N)[:, None] == 700, np.float32(1e6) * X, X)
    with pytest.warns(UserWarning, match="vector 700 lies") as heard:
        made.fit(X[:1100, :8])
    assert len(heard) == 1
