"""partial_fit: new pairs and new ids join the model; as good as a refit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding import Adam
from nearkin.embedding.two_tower.fitting import join_interactions
from nearkin.quantization import IndexingLayer
from tests.covering import each

PLANTED = nk.data.planted_interactions(300, 120, random_state=0).interactions
PAIRS = replace(PLANTED, left_features=None, right_features=None)


def cut(pairs: nk.Interactions, keep: np.ndarray) -> nk.Interactions:
    """Some of the pairs, over the ids that occur in them."""
    part = pairs.select(keep)
    left, right = (np.unique(x) for x in (part.rows, part.indices))
    features = {
        name: None if X is None else X[rows]
        for name, X, rows in (
            ("left_features", pairs.left_features, left), ("right_features", pairs.right_features, right)
        )
    }  # fmt: skip
    return nk.Interactions.from_pairs(
        pairs.left_ids[part.rows], pairs.right_ids[part.indices], part.weights,
        left_ids=pairs.left_ids[left], right_ids=pairs.right_ids[right], **features,
    )  # fmt: skip


@each("pairs", [PAIRS, PLANTED])
def test_an_update_ranks_as_a_refit(pairs: nk.Interactions) -> None:
    rng = np.random.default_rng(0)
    judged = rng.random(len(pairs)) < 0.15
    late = (rng.random(len(pairs)) < 0.1) | (pairs.rows >= 280) | (pairs.indices >= 112)
    model = nk.TwoTower(8, regularization=0.02, random_state=0).fit(cut(pairs, ~late & ~judged))
    assert len(model.left_ids_) < 300
    model.partial_fit(cut(pairs, late & ~judged))
    refit = nk.TwoTower(8, regularization=0.02, random_state=0).fit(pairs.select(~judged))
    order = [np.argsort(ids) for ids in (model.left_ids_, model.right_ids_)]
    assert model.left_ids_[order[0]].tolist() == pairs.left_ids.tolist()
    updated, again = (
        nk.metrics.ranking_metrics(P, Q, pairs.select(judged), seen=pairs.select(~judged), k=20)["ndcg@20"]
        for P, Q in (
            (model.left_embeddings_[order[0]], model.right_embeddings_[order[1]]),
            (refit.left_embeddings_, refit.right_embeddings_),
        )
    )
    assert updated > 0.97 * again, (updated, again)
    assert len(model.history_) == 2


def test_pairs_ids_weights_and_features_are_joined() -> None:
    seen = nk.Interactions.from_pairs(["b", "a"], [10, 20], [1.0, 2.0], left_features=np.eye(2))
    new = nk.Interactions.from_pairs(["c", "b"], [5, 10], [3.0, 4.0], left_features=np.full((2, 2), 7.0))
    both = join_interactions(seen, new)
    assert both.left_ids.tolist() == ["a", "b", "c"]
    assert both.right_ids.tolist() == [10, 20, 5]
    np.testing.assert_array_equal(both.matrix().toarray(), [[0, 2, 0], [5, 0, 0], [0, 0, 3]])
    np.testing.assert_array_equal(both.left_features, [[1, 0], [0, 1], [7, 7]])


def test_an_unfitted_model_is_fitted() -> None:
    made = {"loss": "all-pairs", "regularization": 0.02, "random_state": 0}
    one, other = nk.TwoTower(4, **made).partial_fit(PAIRS), nk.TwoTower(4, **made).fit(PAIRS)
    np.testing.assert_array_equal(one.left_embeddings_, other.left_embeddings_)


def test_gradient_solvers_and_a_loaded_model_go_on(tmp_path: Path) -> None:
    late = PAIRS.rows >= 280
    model = nk.TwoTower(4, solver=Adam(max_iter=8), regularization=0.02, random_state=0).fit(cut(PAIRS, ~late))
    model.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m")
    for one in (model, loaded):
        one.partial_fit(cut(PAIRS, late))
    assert len(model.history_) == 2, "a quarter of its steps"
    np.testing.assert_array_equal(loaded.left_embeddings_, model.left_embeddings_)


def test_the_index_is_learned_again_from_fitted_towers() -> None:
    late = PAIRS.rows >= 280
    index = IndexingLayer(8, 2, 16, max_iter=10)
    model = nk.TwoTower(8, index=index, regularization=0.02, random_state=0).fit(cut(PAIRS, ~late))
    model.partial_fit(cut(PAIRS, late))
    assert model.index_.phase == "train"
    codes = model.index_.codes(model.right_embeddings_)
    np.testing.assert_allclose(model.index_.to_quantizer().decode(codes), model.right_embeddings_, atol=1e-5)


def test_what_cannot_be_joined_is_said(tmp_path: Path) -> None:
    model = nk.TwoTower(4, regularization=0.02, random_state=0).fit(PAIRS)
    with pytest.raises(TypeError, match="interactions is of type ndarray"):
        model.partial_fit(np.eye(3))
    with pytest.raises(TypeError, match="interactions has ids of type <U1, the model"):
        model.partial_fit(nk.Interactions.from_pairs(["a"], ["b"]))
    featured = nk.TwoTower(4, regularization=0.02, random_state=0).fit(PLANTED)
    with pytest.raises(ValueError, match="the interactions have no left features"):
        featured.partial_fit(nk.Interactions.from_pairs([9999], [0]))
    with pytest.raises(ValueError, match=r"left features have shape \(1, 3\); in fit it was \(300, 16\)"):
        featured.partial_fit(
            nk.Interactions.from_pairs([9999], [0]).with_features(left=np.ones((1, 3)), right=np.ones((1, 16)))
        )
    featured.save(tmp_path / "m")
    with pytest.raises(ValueError, match="a folder keeps none"):
        nk.TwoTower.load(tmp_path / "m").partial_fit(PLANTED)
    numbered = nk.TwoTower(
        4, left=torch.nn.Embedding(300, 4), solver=Adam(max_iter=1), regularization=0.02, random_state=0
    ).fit(PAIRS)
    with pytest.raises(ValueError, match="called with row numbers takes no more rows"):
        numbered.partial_fit(PAIRS)
