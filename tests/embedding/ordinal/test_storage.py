import copy

import numpy as np
import pytest

import nearkin as nk
from nearkin.data.comparisons.votes import comparisons_from_vectors
from nearkin.records import Comparisons


@pytest.fixture(scope="module")
def fitted():
    points = np.random.default_rng(0).normal(size=(20, 2))
    answers = comparisons_from_vectors(points, 800, random_state=1)
    weighted = Comparisons(answers.indices, np.array([f"ö {n}" for n in range(20)]), weights=np.ones(800))
    return nk.OrdinalEmbedding(2, loss="t-ste", random_state=0).fit(weighted)


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


def test_round_trip(model, tmp_path):
    model.save(tmp_path / "emb")
    again = nk.OrdinalEmbedding.load(tmp_path / "emb")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.objects_, model.objects_)
    np.testing.assert_array_equal(again.next_queries(5), model.next_queries(5))
    assert again.score(model.comparisons_) == model.score(model.comparisons_)


def test_fewer_points_than_objects_are_damage(model, tmp_path):
    """`score` read outside the points of such a folder."""
    model.embedding_ = model.embedding_[:3]
    model.save(tmp_path / "emb")
    with pytest.raises(ValueError, match=r"embedding has shape \(3, 2\); it must be \(20, 2\)"):
        nk.OrdinalEmbedding.load(tmp_path / "emb")
