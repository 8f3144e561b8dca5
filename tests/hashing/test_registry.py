"""Saved hashers: refusals."""

import json

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing import load
from nearkin.quantization.codecs import HASHERS
from tests.storage.signed import signed


@pytest.fixture
def folder(rng, tmp_path):
    nk.ITQ(4, random_state=0).fit(rng.standard_normal((30, 6))).save(tmp_path / "itq")
    return tmp_path / "itq"


def rewrite(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    signed(folder)


def test_unknown_and_wrong_classes_are_named(folder):
    with pytest.raises(ValueError, match="holds a ITQ, not a OgE"):
        nk.OgE.load(folder)
    rewrite(folder, **{"class": "Wonder"})
    with pytest.raises(ValueError, match="holds a hasher 'Wonder'"):
        load(folder)


def test_every_public_hasher_can_be_loaded():
    public = {
        name for name in nk.__all__ if isinstance(getattr(nk, name), type) and hasattr(getattr(nk, name), "project")
    }
    assert public == set(HASHERS.values())


def test_generator_as_seed_has_no_stored_form(rng, tmp_path):
    X = rng.standard_normal((30, 6))
    hasher = nk.OnE(4, random_state=np.random.default_rng(0)).fit(X)
    hasher.save(tmp_path / "one")
    loaded = load(tmp_path / "one")
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.encode(X), hasher.encode(X))
