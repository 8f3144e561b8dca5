"""An index is read whole when it is loaded; the quantizer is made of what was read when it is first asked for."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.index.saved_quantizer import SavedQuantizer, read_quantizer


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    X = rng.normal(size=(200, 8)).astype(np.float32)
    nk.Index.build(X, nk.ProductQuantizer(2, 16, random_state=0)).save(tmp_path / "idx")
    return tmp_path / "idx"


def test_the_quantizer_outlives_its_folder(folder: Path, rng: np.random.Generator) -> None:
    """A server that loaded an index goes on with it, also after another was saved in its place."""
    whole = nk.Index.load(folder).quantizer
    index = nk.Index.load(folder)
    shutil.rmtree(folder)
    more = rng.normal(size=(5, 8)).astype(np.float32)
    np.testing.assert_array_equal(index.quantizer.encode(more), whole.encode(more))
    assert len(index.add(more)) == 205


def test_it_is_made_once(folder: Path) -> None:
    index = nk.Index.load(folder)
    assert isinstance(index._quantizer, SavedQuantizer)
    index.search(np.zeros((1, 8), np.float32), k=1)
    assert isinstance(index._quantizer, SavedQuantizer)
    assert index.quantizer is index.quantizer


def test_values_that_make_no_quantizer_are_named(folder: Path) -> None:
    found = read_quantizer(folder / "quantizer")
    for change in ({"params": {"n_subspaces": 2, "unknown": 1}}, {"class": "Other"}, {"fitted": {"n_features_in_": 9}}):
        broken = SavedQuantizer(
            type(found.content)(found.content.path, found.content.config | change, found.content.arrays), 8, None
        )
        with pytest.raises(ValueError, match="quantizer"):
            broken.open()


def test_a_config_without_what_is_needed_is_damaged(folder: Path) -> None:
    file = folder / "quantizer" / "config.json"
    record = json.loads(file.read_text())
    del record["fitted"]
    record["format_version"] = 1  # no manifest is asked for
    (folder / "quantizer" / "manifest.json").unlink()
    file.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="it is damaged"):
        read_quantizer(folder / "quantizer")
