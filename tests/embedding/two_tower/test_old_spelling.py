"""The flat parameters of version 0.1 work as they did, and say what to type instead."""

import inspect

import numpy as np
import pytest

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, Indexed, Tower
from nearkin.embedding.two_tower.old_spelling import OLD

PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions


def test_flat_parameters_give_the_same_fit_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="in nearkin") as said:
        old = nk.TwoTower(
            4, omega=0.1, weighting="none", max_steps=3, patience=4, batch_size=512, hidden=(8,), random_state=0
        )
    assert {str(warning.message).split("=")[0] for warning in said} == {
        *("omega", "weighting", "max_steps", "patience", "batch_size", "hidden")
    }
    assert "type loss=nk.embedding.AllPairs(omega=...)" in "".join(str(warning.message) for warning in said)
    assert all(warning.filename == __file__ for warning in said), "the warning points at the caller"
    new = nk.TwoTower(
        4, loss=AllPairs(omega=0.1, weighting="none"), solver=nk.embedding.Auto(max_iter=3, patience=4),
        left=Tower((8,)), right=Tower((8,)), random_state=0,
    )  # fmt: skip
    np.testing.assert_array_equal(old.fit(PAIRS).left_embeddings_, new.fit(PAIRS).left_embeddings_)


def test_they_go_into_the_object_that_uses_them() -> None:
    index = nk.quantization.IndexingLayer(4, 2, 4)
    with pytest.warns(DeprecationWarning, match="= is deprecated"):
        sampled = nk.TwoTower(loss="in-batch-softmax", batch_size=64, learning_rate=0.1, max_steps=2)
    with pytest.warns(DeprecationWarning, match="= is deprecated"):
        full = nk.TwoTower(solver="adam", batch_size=64, start="random")
    with pytest.warns(DeprecationWarning, match="type index=nk.embedding.Indexed"):
        model = nk.TwoTower(index=index, distortion_weight=3.0)
    assert isinstance(sampled.solver, Adam)
    assert (sampled.solver.batch_size, sampled.solver.learning_rate, sampled.solver.max_iter) == (64, 0.1, 2)
    assert (full.solver.batch_size, full.solver.start) == (None, "random"), "it never used a batch size"
    assert isinstance(model.index, Indexed)
    assert (model.index.module, model.index.distortion_weight) == (index, 3.0)


def test_they_can_be_set_later() -> None:
    model = nk.TwoTower(solver="als")
    with pytest.warns(DeprecationWarning, match="max_steps= is deprecated"):
        model.set_params(max_steps=5)
    assert isinstance(model.solver, ALS)
    assert model.solver.max_iter == 5


def test_they_are_no_parameters_any_more() -> None:
    assert not set(OLD) & {*inspect.signature(nk.TwoTower).parameters, *nk.TwoTower().get_params()}
    with pytest.raises(TypeError, match="unexpected keyword argument 'omegas'"):
        nk.TwoTower(omegas=3)
