"""Weights, costs and penalties of a table of pairs: the powers of popularity against their definitions."""

import numpy as np

import nearkin as nk
from nearkin.embedding import AllPairs
from tests.covering import each

PAIRS = nk.Interactions.from_pairs([0, 0, 0, 1, 2, 2], [0, 1, 2, 0, 0, 1], [1.0, 2.0, 1.0, 4.0, 1.0, 3.0])


def test_powers_weigh_popularity() -> None:
    objective = AllPairs(weighting="linear", weight_power=0.25, cost_power=0.5).objective(PAIRS)
    left, right = np.array([3, 3, 3, 1, 2, 2]), np.array([3, 2, 1, 3, 3, 2])
    wanted = PAIRS.weights * (left * right) ** -0.25
    np.testing.assert_allclose(objective.weights, wanted / wanted.mean())
    costs = np.sqrt([3.0, 2.0, 1.0])
    np.testing.assert_allclose(objective.b, costs / costs.mean())


def test_a_new_row_is_weighed_as_a_fitted_one() -> None:
    """With the right side fixed, a known user's history leads to where ALS last put the user, powers and all."""
    pairs = nk.data.planted_interactions(80, 40, random_state=0).interactions
    bare = nk.Interactions.from_pairs(pairs.rows, pairs.indices, pairs.weights, left_ids=range(80), right_ids=range(40))
    solver = nk.embedding.ALS(max_iter=60, block_size=4)
    loss = AllPairs(weight_power=0.25, cost_power=0.2)
    model = nk.TwoTower(4, loss=loss, solver=solver, regularization=0.05, random_state=0).fit(bare)
    again = model.embed_left(bare.matrix())
    np.testing.assert_allclose(again, model.left_embeddings_, atol=2e-3)


@each("omega", [0.0, 0.3])
def test_a_row_is_penalized_by_its_weight_and_one_without_by_the_mean(omega: float) -> None:
    """Light rows too: 100, 1 and 1 weigh less than the mean pair. An unobserved pair weighs omega a_i b_j."""
    pairs = nk.Interactions.from_pairs([0, 1, 2], [0, 1, 1], [100.0, 1.0, 1.0], left_ids=range(4), right_ids=range(3))
    a, b = np.array([1.0, 0.5, 2.0, 0.0]), np.array([1.0, 3.0, 0.0])
    loss = AllPairs(weighting="linear", omega=omega, left_costs=a, right_costs=b)
    weights = pairs.matrix().toarray() / (102 / 3) + omega * np.outer(a, b)
    for found, wanted in zip(loss.objective(pairs).ridge, (weights.sum(1), weights.sum(0)), strict=True):
        np.testing.assert_allclose(found, np.where(wanted > 0, wanted, wanted.mean()))


def test_only_a_side_with_features_leaves_rows_without_pairs_out() -> None:
    pairs = nk.Interactions.from_pairs([0, 1], [0, 1], left_ids=range(3), right_ids=range(4))
    for side in ("left", "right"):
        features = {side: np.ones((3 if side == "left" else 4, 2), np.float32)}
        objective = AllPairs().objective(pairs.with_features(**features))
        assert objective.a.tolist() == ([1, 1, 0] if side == "left" else [1, 1, 1])
        assert objective.b.tolist() == ([1, 1, 0, 0] if side == "right" else [1, 1, 1, 1])


def test_labels_by_weight_are_not_weighted_again() -> None:
    by_log = np.log1p(PAIRS.weights)
    np.testing.assert_allclose(AllPairs().objective(PAIRS).weights, by_log / by_log.mean(), rtol=1e-6)
    objective = AllPairs(labels="weights").objective(PAIRS)
    np.testing.assert_array_equal(objective.weights, np.ones(6))
    np.testing.assert_array_equal(objective.labels, PAIRS.weights)
