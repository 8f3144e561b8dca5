"""partial_fit: new pairs and new ids join the model; as good as a refit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import nearkin as nk
from nearkin.embedding import Adam
from nearkin.embedding.two_tower.fitting import join_interactions
from nearkin.quantization import IndexingLayer
from tests.covering import each
from tests.refusals import each_refused

PLANTED = nk.data.planted_interactions(300, 120, random_state=0).interactions
PAIRS = replace(PLANTED, left_features=None, right_features=None)


def cut(pairs: nk.Interactions, keep: np.ndarray) -> nk.Interactions:
    """Some of the pairs, over the ids that occur in them."""
    part = pairs.select(keep)
    left, right = (np.unique(x) for x in (part.rows, part.indices))
    found = nk.Interactions.from_pairs(
        pairs.left_ids[part.rows], pairs.right_ids[part.indices], part.weights,
        left_ids=pairs.left_ids[left], right_ids=pairs.right_ids[right],
    )  # fmt: skip
    X, Y = pairs.left_features, pairs.right_features
    return found if X is None else found.with_features(left=X[left], right=Y[right])


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
    updated = model.left_embeddings_[order[0]], model.right_embeddings_[order[1]]
    refitted, wanted, seen = (refit.left_embeddings_, refit.right_embeddings_), judged, pairs.select(~judged)
    found = [
        nk.metrics.ranking_metrics(*tables, pairs.select(wanted), seen=seen, k=20)["ndcg@20"]
        for tables in (updated, refitted)
    ]
    assert found[0] > 0.97 * found[1], found
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
    made = {"n_components": 4, "regularization": 0.02, "random_state": 0}
    model, featured = nk.TwoTower(**made).fit(PAIRS), nk.TwoTower(**made).fit(PLANTED)
    featured.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m")
    numbered = nk.TwoTower(left=torch.nn.Embedding(300, 4), solver=Adam(max_iter=1), **made).fit(PAIRS)
    unseen = nk.Interactions.from_pairs([9999], [0])
    narrow = unseen.with_features(left=np.ones((1, 3)), right=np.ones((1, 16)))
    text = nk.Interactions.from_pairs(["a"], ["b"])
    each_refused([
        (lambda: model.partial_fit(np.eye(3)), TypeError, "interactions is of type ndarray"),
        (lambda: model.partial_fit(text), TypeError, "interactions has ids of type <U1, the model"),
        (lambda: featured.partial_fit(unseen), ValueError, "the interactions have no left features"),
        (lambda: featured.partial_fit(narrow), ValueError, r"left features have shape \(1, 3\); in fit it was \(300"),
        (lambda: loaded.partial_fit(PLANTED), ValueError, "a folder keeps none"),
        (lambda: numbered.partial_fit(PAIRS), ValueError, "called with row numbers takes no more rows"),
    ])  # fmt: skip
