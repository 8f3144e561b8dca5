"""A new row is the minimiser of the model's own loss: against the dense normal equations, and against a refit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nearkin as nk
from nearkin.embedding import AllPairs

PLANTED = nk.data.planted_interactions(300, 120, random_state=0).interactions
PAIRS = replace(PLANTED, left_features=None, right_features=None)


@pytest.fixture(scope="module")
def fitted() -> nk.TwoTower:
    return nk.TwoTower(8, loss="all-pairs", random_state=0).fit(PAIRS)


def slow(model: nk.TwoTower, columns: np.ndarray, weights: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The row by its normal equations over every entity of the other side, in float64."""
    Q, omega = other.astype(np.float64), model.omega_
    ridge = model.regularization_ * (weights.sum() + omega * len(Q))
    A = omega * Q.T @ Q + ridge * np.eye(Q.shape[1])
    for j, w in zip(columns, weights, strict=True):
        A += (w - omega) * np.outer(Q[j], Q[j])
    return np.linalg.solve(A, (weights[:, None] * Q[columns]).sum(0))


def test_a_row_solves_its_normal_equations(fitted: nk.TwoTower) -> None:
    history = [3, 17, 40]
    mean = np.log1p(PAIRS.weights.astype(np.float64)).mean()
    weights = np.full(3, np.log(2.0) / mean)
    found = fitted.embed_left(PAIRS.right_ids[history])
    assert found.shape == (1, 8)
    np.testing.assert_allclose(found[0], slow(fitted, np.array(history), weights, fitted.right_embeddings_), rtol=1e-3)
    item = fitted.embed_right(PAIRS.left_ids[history])
    np.testing.assert_allclose(item[0], slow(fitted, np.array(history), weights, fitted.left_embeddings_), rtol=1e-3)


def test_ids_records_and_sparse_rows_say_the_same(fitted: nk.TwoTower) -> None:
    histories = [[3, 17, 40], [5], []]
    matrix = sp.csr_matrix((np.ones(4), ([0, 0, 0, 1], [3, 17, 40, 5])), shape=(3, 120))
    by_ids = fitted.embed_left(histories)
    np.testing.assert_array_equal(by_ids, fitted.embed_left(matrix))
    shuffled = np.roll(np.arange(120), 7)  # another order of the same ids
    record = nk.Interactions.from_pairs(
        [0, 0, 0, 1], [3, 17, 40, 5], left_ids=range(3), right_ids=PAIRS.right_ids[shuffled]
    )
    np.testing.assert_array_equal(by_ids, fitted.embed_left(record))
    np.testing.assert_array_equal(by_ids[0], fitted.embed_left([3, 17, 40])[0])
    np.testing.assert_array_equal(by_ids[2], np.zeros(8), "nothing is known of who met nothing")


def test_a_fitted_row_is_where_a_new_one_with_its_history_goes(fitted: nk.TwoTower) -> None:
    """Rows and columns alternate to a fixed point, so a known user's history leads near the known user."""
    again = fitted.embed_left(PAIRS.matrix())
    scores, known = again @ fitted.right_embeddings_.T, fitted.left_embeddings_ @ fitted.right_embeddings_.T
    assert np.corrcoef(scores.ravel(), known.ravel())[0, 1] > 0.99


def test_users_left_out_rank_as_in_a_refit() -> None:
    rng = np.random.default_rng(0)
    out = np.isin(PAIRS.rows, np.arange(0, 300, 6))
    judged = out & (rng.random(len(PAIRS)) < 0.3)
    part, whole = PAIRS.select(~out), PAIRS.select(~judged)
    model, refit = (nk.TwoTower(8, regularization=0.02, random_state=0).fit(pairs) for pairs in (part, whole))
    P = model.embed_left(PAIRS.select(out & ~judged).matrix())
    folded, again = (
        nk.metrics.ranking_metrics(left, right, PAIRS.select(judged), seen=whole, k=20)["ndcg@20"]
        for left, right in ((P, model.right_embeddings_), (refit.left_embeddings_, refit.right_embeddings_))
    )
    assert folded > 0.95 * again, (folded, again)


@pytest.mark.parametrize("pair_loss", ["logistic", "squared-hinge"])
def test_other_losses_end_where_their_gradient_is_zero(pair_loss: str) -> None:
    loss = AllPairs(pair_loss=pair_loss, weighting="none")
    model = nk.TwoTower(4, loss=loss, regularization=0.05, random_state=0).fit(PAIRS)
    p = torch.tensor(model.embed_left([1, 2, 3])[0], dtype=torch.float64, requires_grad=True)
    Q = torch.tensor(model.right_embeddings_, dtype=torch.float64)
    z = Q @ p
    observed = torch.zeros(120, dtype=torch.bool)
    observed[[1, 2, 3]] = True
    value = {
        "logistic": lambda t: torch.nn.functional.softplus(-t),
        "squared-hinge": lambda t: (1 - t).relu() ** 2 / 2,
    }
    ridge = model.regularization_ * (3 + model.omega_ * 120)
    total = value[pair_loss](z[observed]).sum() + model.omega_ / 2 * (z[~observed] ** 2).sum() + ridge / 2 * p @ p
    (gradient,) = torch.autograd.grad(total, p)
    assert gradient.norm() < 1e-3 * ridge


def test_features_are_what_a_new_row_shrinks_towards() -> None:
    model = nk.TwoTower(8, loss="all-pairs", random_state=0).fit(PLANTED)
    x = PLANTED.left_features[:1]
    alone = model.transform_left(x)[0]
    bare, helped = model.embed_left([3])[0], model.embed_left([3], features=x)[0]
    assert np.linalg.norm(helped - alone) < np.linalg.norm(bare - alone)
    with pytest.raises(ValueError, match=r"features has shape \(2, 16\); it must be \(1, d\)"):
        model.embed_left([3], features=PLANTED.left_features[:2])


def test_a_loaded_model_folds_in_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    loss = AllPairs(left_costs=0.5 + rng.random(300), right_costs=0.5 + rng.random(120), prior=0.1)
    model = nk.TwoTower(4, loss=loss, regularization=0.02, random_state=0).fit(PAIRS)
    model.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embed_left([1, 2]), model.embed_left([1, 2]))
    np.testing.assert_array_equal(loaded.embed_right([1, 2]), model.embed_right([1, 2]))


def test_what_cannot_be_folded_in_is_said(fitted: nk.TwoTower) -> None:
    with pytest.raises(ValueError, match="right has 1 ids that right_ids lacks, the first is 999"):
        fitted.embed_left([999])
    with pytest.raises(ValueError, match="history is empty; give at least one right id"):
        fitted.embed_left([])
    with pytest.raises(ValueError, match=r"history has shape \(2, 5\); it must be \(b, 120\)"):
        fitted.embed_left(sp.csr_matrix(np.ones((2, 5))))
    solver = nk.embedding.Adam(max_iter=1)
    sampled = nk.TwoTower(4, loss="in-batch-softmax", solver=solver, random_state=0).fit(PAIRS)
    with pytest.raises(ValueError, match="loss is 'in-batch-softmax'; a new row is solved for 'all-pairs'"):
        sampled.embed_left([3])
