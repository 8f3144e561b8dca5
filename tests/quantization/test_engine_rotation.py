"""One rotation for any codec: distances stay, neighbours kept never fall; engines' codes and their formulas."""

import faiss
import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin.quantization.engine_rotation import NAMED, _CodedRows, _is_isotropic, find_codec
from tests.covering import each
from tests.refusals import each_refused


def recall(model: nk.Rotation) -> dict[str, float]:
    return {trial["candidate"]: trial["value"] for trial in model.trials_}


@each("codec", ["sign", "rabitq"])
def test_the_gain_beside_centred_rows_is_by_the_same_codec(codec: str) -> None:
    """With a mean of 0, centring changes nothing; the rows as they are were once judged as by another codec."""
    rng = np.random.default_rng(0)
    X = np.tile((rng.normal(size=(200, 8)) * np.geomspace(3, 0.3, 8)).astype(np.float32), (2, 2))
    X[200:] *= -1
    gains = [nk.Rotation(codec, max_iter=2, center=center, random_state=0).fit(X).gain_ for center in (False, True)]
    assert gains[0] == pytest.approx(gains[1], abs=1e-6)


pytestmark = pytest.mark.usefixtures("few_rounds")  # what all steps give, `test_order.py` tests


class Halves:
    """A codec of somebody else's: columns rounded to halves."""

    def encode(self, X):
        return np.round(X * 2).astype(np.int16)

    def decode(self, codes):
        return codes / 2


CODECS = {name: name for name in ("sign", "int4", "int4-row", "int8-all", "rabitq", "pq8")} | {
    "an untrained index": faiss.index_factory(32, "SQ4"),
    "an object": Halves(),
}


@each("name", CODECS)
def test_no_codec_keeps_fewer_neighbours_than_without(name, vectors, tmp_path):
    X = vectors[0][:600]
    seen = []
    model = nk.Rotation(CODECS[name], max_iter=3, random_state=0).fit(
        X, callback=lambda step, record: seen.append(step)
    )
    assert seen == list(range(1, 1 + len(model.trials_)))
    found = recall(model)
    assert found[model.chosen_] == max(found.values())
    assert {"none", "random", "pca", "trained from none"} <= set(found)
    assert ("trained for order" in found) == (name in {"sign", "rabitq"})
    assert model.gain_ >= -0.02
    Z = model.transform(X[:100])
    assert Z.dtype == X.dtype
    before, after = (np.linalg.norm(rows[:50] - rows[50:], axis=1) for rows in (X[:100], Z))
    np.testing.assert_allclose(after, before, rtol=1e-5)
    np.testing.assert_allclose(model.inverse_transform(Z), X[:100], atol=1e-4)
    model.save(tmp_path / "rotation")
    np.testing.assert_array_equal(nk.Rotation.load(tmp_path / "rotation").transform(X), model.transform(X))


def test_isotropic_rows_keep_their_axes_and_say_so(rng):
    with pytest.warns(UserWarning, match="isotropic"):
        model = nk.Rotation("sign", random_state=0).fit(rng.normal(size=(3000, 16)))
    np.testing.assert_array_equal(model.rotation_, np.eye(16))
    assert model.chosen_ == "none"


def test_bad_codecs(vectors):
    cases = [
        ("pq5", ValueError, "'pq5'.*divide d=32"),
        ("int2", ValueError, "'sign'"),
        (faiss.IndexPQ(16, 4, 4), ValueError, "16 columns; X has 32"),
        (3, TypeError, "encode and decode"),
    ]
    each_refused(((nk.Rotation(codec).fit, error, match) for codec, error, match in cases), vectors[0])


def test_signs_keep_more_neighbours_about_the_mean(vectors):
    X = vectors[0][:1000] + 3  # every sign is the same, but for the mean
    plain, centred = (nk.Rotation("sign", max_iter=5, center=center, random_state=0).fit(X) for center in (False, True))
    assert recall(centred)["none"] > recall(plain)["none"] + 0.1
    assert max(recall(centred).values()) > max(recall(plain).values())
    assert centred.gain_ > 0.05  # over the rows as they are
    Z = centred.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(Z[1:] - Z[0], axis=1), np.linalg.norm(X[1:] - X[0], axis=1), rtol=1e-5)
    np.testing.assert_allclose(centred.inverse_transform(Z), X, atol=1e-4)


def test_given_queries_judge(rng):
    """Rows differ along all columns, queries along two of them: these choose."""
    X = rng.normal(size=(1500, 8)).astype(np.float32) * [1, 1, 1, 1, 3, 3, 3, 3]
    Q = rng.normal(size=(200, 8)).astype(np.float32) * [9, 9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    own, asked = (nk.Rotation("sign", max_iter=3, random_state=0).fit(X, queries=queries) for queries in (None, Q))
    assert recall(own) != recall(asked)
    assert recall(asked)[asked.chosen_] == max(recall(asked).values())
    with pytest.raises(ValueError, match="queries has 3"):
        nk.Rotation().fit(X, queries=Q[:, :3])
    with pytest.raises(ValueError, match="center"):
        nk.Rotation(center="mean").fit(X)  # pyright: ignore[reportArgumentType]


class Signs:
    """Signs about 0, that remember how many rows they were given."""

    def __init__(self):
        self.given = []

    def encode(self, X):
        self.given.append(len(X))
        return X > 0

    def decode(self, codes):
        return np.where(codes, 1.0, -1.0)


def test_a_winner_learns_on_from_every_row():
    """Once chosen, a learned rotation was kept as it was: of half of the rows given, where all had been at hand."""
    X = load_digits().data - load_digits().data.mean(axis=0)
    codec = Signs()
    model = nk.Rotation(codec, max_iter=5, random_state=0).fit(X)
    assert model.chosen_.startswith("trained from")
    assert codec.given[-5:] == [len(X)] * 5
    assert max(codec.given[:-5]) < 0.6 * len(X)


def test_ranges_are_those_of_the_rows_that_are_coded(rng):
    """An engine's ranges are of its own rows. Judged by the ranges of rows learned from, others were clipped."""
    X = rng.normal(size=(900, 4)).astype(np.float32)
    X[500:] *= 3
    held = _CodedRows(X, find_codec("int4", 4), "int4")
    held.learned_from = held.learned_from / 100
    assert held.recall(np.eye(4, dtype=np.float32), 0).mean() > 0.5


def test_too_few_rows_for_product_codes_are_one_clear_error(rng):
    with pytest.raises(ValueError, match=r"vectors are left, too few for this codec; give 512 or more$"):
        nk.Rotation("pq2").fit(rng.normal(size=(40, 8)) * np.arange(1, 9))


def test_one_column_that_varies_twice_as_much_is_no_isotropy(rng):
    X = rng.normal(size=(4000, 4))
    assert _is_isotropic(X)
    assert not _is_isotropic(X * np.sqrt([1, 1, 1, 2]))


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return (rng.normal(size=(400, 24)) * np.geomspace(2, 0.5, 24) + 1).astype(np.float32)


def test_rabitq_is_faisss(rows: np.ndarray) -> None:
    """Its estimate from signs: signs times |x|^2 / |x|_1."""
    ours = find_codec("rabitq", 24)(rows)(rows)
    index = faiss.IndexRaBitQ(24)
    index.train(rows)
    np.testing.assert_allclose(index.sa_decode(index.sa_encode(rows)), ours, rtol=1e-3, atol=1e-3)


def test_equal_rows_and_zeros_are_coded() -> None:
    X = np.concatenate([np.ones((20, 6)), np.zeros((20, 6))]).astype(np.float32)
    for name in NAMED:
        Y = find_codec(name, 6)(X)(X)
        assert Y.shape == X.shape, name
        assert np.isfinite(Y).all(), name
