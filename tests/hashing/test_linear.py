"""What linear hashers share: moments of Table 3, streams of blocks, FAISS indexes that take vectors, error texts."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing import load
from nearkin.hashing.bits import unpack_signs
from nearkin.quantization.best import HASHERS
from tests.covering import each
from tests.storage.signed import signed


@pytest.fixture
def X(rng):
    return (rng.standard_normal((600, 20)) * np.geomspace(3, 0.1, 20) + 2).astype(np.float32)


def test_table_3_measures_follow_their_formulas(X):
    itq, one, oge = (make(8, random_state=0).fit(X) for make in (nk.ITQ, nk.OnE, nk.OgE))
    assert itq.retained_variance(X) == pytest.approx(1)
    assert one.retained_variance(X) < 0.99
    assert one.quantization_error(X) < itq.quantization_error(X)
    signs = unpack_signs(one.encode(X), 8)
    assert one.quantization_error(X) == pytest.approx(((signs - one.project(X)) ** 2).mean(), rel=1e-5)
    assert one.history_[-1] / 8 == pytest.approx(one.quantization_error(X), rel=2e-3)
    centred = (X - X.mean(axis=0)).astype(np.float64)
    units = oge.projection_ / np.linalg.norm(oge.projection_, axis=0)
    top = np.linalg.eigvalsh(centred.T @ centred)[::-1][:8].sum()
    assert oge.retained_variance(X) == pytest.approx(((centred @ units) ** 2).sum() / top, rel=1e-4)


@each("make", [nk.OnE, nk.OgE])
def test_far_vectors_are_left_out_with_their_labels(X, make):
    rows, labels, places = X.copy(), np.arange(len(X)) % 3, [3, 77, 80, 599]
    rows[places] *= np.float32(1e4)
    with pytest.warns(UserWarning, match="vector 3 and 3 more lie"):
        fitted = make(8, random_state=0).fit(rows, labels)
    alone = make(8, random_state=0).fit(np.delete(rows, places, axis=0), np.delete(labels, places))
    for name in ("mean_", "projection_", "intercept_"):
        np.testing.assert_array_equal(getattr(fitted, name), getattr(alone, name))


@each("make", [nk.OnE, nk.OgE, nk.PCAHash])
@each("n_features", [5, 20])
def test_more_bits_than_rank_names_the_rank(rng, make, n_features):
    X = rng.standard_normal((100, 5)) @ rng.standard_normal((5, n_features))
    with pytest.raises(ValueError, match="n_bits is 8; it must be at most 5, the rank of the centred X"):
        make(8).fit(X)


@each("orthogonal", [False, True])
def test_share_of_different_bits_estimates_the_angle(rng, orthogonal):
    X = rng.standard_normal((40, 16))
    X = np.concatenate([X, -X])  # mean zero: hyperplanes through the origin
    hasher = nk.RandomHyperplanes(4096, orthogonal=orthogonal, random_state=0).fit(X)
    codes = hasher.encode(X)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    angles = np.arccos(np.clip(units @ units.T, -1, 1)) / np.pi
    error = np.abs(np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2) / 4096 - angles).mean()
    assert error < 0.01
    if orthogonal:  # in groups of d, of which the last may be smaller
        P = nk.RandomHyperplanes(44, orthogonal=True, random_state=0).fit(X).projection_
        for group in (P[:, :16], P[:, 16:32], P[:, 32:]):
            np.testing.assert_allclose(group.T @ group, np.eye(group.shape[1]), atol=1e-12)


def test_a_generator_as_seed_has_no_stored_form_and_wrong_classes_are_named(X, tmp_path):
    hasher = nk.OnE(4, random_state=np.random.default_rng(0)).fit(X)
    hasher.save(tmp_path / "one")
    loaded, file = load(tmp_path / "one"), tmp_path / "one" / "config.json"
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
    with pytest.raises(ValueError, match="holds a OnE, not a OgE"):
        nk.OgE.load(tmp_path / "one")
    file.write_text(file.read_text().replace('"OnE"', '"Wonder"'))
    signed(tmp_path / "one")
    with pytest.raises(ValueError, match="holds a hasher 'Wonder'"):
        load(tmp_path / "one")


def test_every_public_hasher_can_be_loaded():
    assert {name for name in nk.__all__ if hasattr(getattr(nk, name), "project")} == set(HASHERS.values())
