"""Saved models: what is given again when a model is loaded."""

from pathlib import Path

import numpy as np
import pytest
from torch import nn

import nearkin as nk
from nearkin.embedding import ALS, AllPairs, Tower

PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions


def test_settings_are_read_as_objects_and_an_index_that_was_not_there_is_refused(tmp_path: Path) -> None:
    loss, solver = AllPairs(omega=0.1, weighting="none"), ALS(max_iter=2)
    nk.TwoTower(4, loss=loss, solver=solver, left=Tower((8,)), random_state=0).fit(PAIRS).save(tmp_path / "m")
    model = nk.TwoTower.load(tmp_path / "m")
    assert model.loss.get_params() == loss.get_params()
    assert model.solver.get_params() == solver.get_params()
    assert isinstance(model.left, Tower)
    assert model.left.hidden == (8,)
    given = nk.TwoTower.load(tmp_path / "m", left=nn.Linear(3, 4))
    assert isinstance(given.left, Tower), "a module fills what is not saved alone"
    with pytest.raises(ValueError, match="was fitted without an index"):
        nk.TwoTower.load(tmp_path / "m", index=nk.quantization.IndexingLayer(4, 2, 4))


def test_factors_of_a_prior_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prior = tuple(rng.normal(size=(n, 2)) for n in PAIRS.shape)
    nk.TwoTower(4, loss=AllPairs(prior=prior), random_state=0).fit(PAIRS).save(tmp_path / "m")
    for given, kept in zip(prior, nk.TwoTower.load(tmp_path / "m").loss.prior, strict=True):
        np.testing.assert_array_equal(given, kept)
