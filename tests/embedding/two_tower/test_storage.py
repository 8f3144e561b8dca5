"""Saved models: parameters of version 0.1, which were flat, are read as objects."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, Auto, InBatchSoftmax, Indexed, Tower
from tests.storage.versions import as_version_1

PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions
FLAT = {
    **{"pair_loss": "squared", "omega": "auto", "weighting": "log", "labels": "ones", "max_steps": None},
    **{"max_seconds": None, "learning_rate": None, "batch_size": 4096, "start": "auto", "patience": 10},
    **{"hidden": [128], "distortion_weight": 1.0, "loss": "all-pairs", "solver": "auto", "n_components": 4},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "m"
    nk.TwoTower(4, loss=AllPairs(omega=0.1, weighting="none"), random_state=0).fit(PAIRS).save(path)
    return path


def loaded(folder: Path, tmp_path: Path, flat: dict, **modules: object) -> nk.TwoTower:
    """The model as version 0.1 would have saved it."""
    old = tmp_path / "old"
    old.mkdir()
    for file in folder.iterdir():
        (old / file.name).write_bytes(file.read_bytes())
    config = as_version_1(old) / "config.json"
    record = json.loads(config.read_text()) | {"parameters": FLAT | flat}
    config.write_text(json.dumps(record))
    return nk.TwoTower.load(old, **modules)


def test_flat_parameters_give_the_same_answers(folder: Path, tmp_path: Path) -> None:
    now = nk.TwoTower.load(folder)
    old = loaded(folder, tmp_path, {"omega": 0.1, "weighting": "none"})
    assert old.loss.get_params() == now.loss.get_params()
    np.testing.assert_array_equal(old.embed_left([[1, 2], [3]]), now.embed_left([[1, 2], [3]]))
    np.testing.assert_array_equal(
        old.transform_left(PAIRS.left_features[:2]), now.transform_left(PAIRS.left_features[:2])
    )


@pytest.mark.parametrize(
    ("flat", "kind", "wanted"),
    [
        ({}, Auto, {"max_iter": None, "patience": 10}),
        ({"solver": "als", "max_steps": 5}, ALS, {"max_iter": 5}),
        (
            {"loss": "in-batch-softmax", "batch_size": 64, "learning_rate": 0.1},
            Adam,
            {"batch_size": 64, "learning_rate": 0.1},
        ),
        ({"solver": "adam", "batch_size": 64, "start": "random"}, Adam, {"batch_size": None, "start": "random"}),
    ],
)
def test_flat_parameters_go_into_the_object_that_has_them(
    folder: Path, tmp_path: Path, flat: dict, kind: type, wanted: dict
) -> None:
    model = loaded(folder, tmp_path, flat)
    assert type(model.solver) is kind
    assert {name: model.solver.get_params()[name] for name in wanted} == wanted
    assert isinstance(model.loss, InBatchSoftmax if "loss" in flat else AllPairs)


def test_widths_and_a_weighted_index_are_read(folder: Path, tmp_path: Path) -> None:
    index = nk.quantization.IndexingLayer(4, 2, 4)
    model = loaded(folder, tmp_path, {"hidden": [8], "distortion_weight": 3.0})
    assert isinstance(model.left, Tower)
    assert model.left.hidden == (8,)
    assert model.index is None
    (tmp_path / "old").rename(tmp_path / "other")
    with pytest.raises(ValueError, match="was fitted without an index"):
        loaded(folder, tmp_path, {"distortion_weight": 3.0}, index=index)
    assert Indexed(index, 3.0).distortion_weight == 3.0
