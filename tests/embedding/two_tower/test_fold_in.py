"""A new row: the minimiser of the model's own loss, which for a softmax on cosines stands still; beside a refit."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nearkin as nk
from nearkin.embedding import AllPairs, CosineSoftmax
from tests.covering import each

PLANTED = nk.data.planted_interactions(180, 120, random_state=0).interactions
PAIRS = replace(PLANTED, left_features=None, right_features=None)
T = 0.25
ALL_PAIRS, SOFTMAX = AllPairs(), CosineSoftmax(temperature=T, weighting="none")
either = each("loss", [ALL_PAIRS, SOFTMAX])


@cache
def fitted(loss: AllPairs | CosineSoftmax) -> nk.TwoTower:
    """Eight columns, and under a softmax the bias."""
    sized = {"n_components": 9} if isinstance(loss, CosineSoftmax) else {"n_components": 8, "regularization": 0.02}
    return nk.TwoTower(loss=loss, random_state=0, **sized).fit(PAIRS)


@cache
def fitted_with(**options: float) -> nk.TwoTower:
    return fitted(CosineSoftmax(temperature=T, weighting="none", **options)) if options else fitted(SOFTMAX)


def slow(model: nk.TwoTower, columns: np.ndarray, weights: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The row by its normal equations over every entity of the other side, in float64."""
    Q, omega = other.astype(np.float64), model.omega_
    ridge = model.regularization_ * (weights.sum() + omega * len(Q))
    A = omega * Q.T @ Q + ridge * np.eye(Q.shape[1])
    for j, w in zip(columns, weights, strict=True):
        A += (w - omega) * np.outer(Q[j], Q[j])
    return np.linalg.solve(A, (weights[:, None] * Q[columns]).sum(0))


def test_a_row_solves_its_normal_equations() -> None:
    model, history = fitted(ALL_PAIRS), [3, 17, 40]
    weights = np.full(3, np.log(2.0) / np.log1p(PAIRS.weights.astype(np.float64)).mean())
    found, item = model.embed_left(PAIRS.right_ids[history]), model.embed_right(PAIRS.left_ids[history])
    assert found.shape == (1, 8)
    np.testing.assert_allclose(found[0], slow(model, np.array(history), weights, model.right_embeddings_), rtol=1e-3)
    np.testing.assert_allclose(item[0], slow(model, np.array(history), weights, model.left_embeddings_), rtol=1e-3)


@either
def test_ids_records_and_sparse_rows_say_the_same(loss: AllPairs | CosineSoftmax) -> None:
    """A row alone too: under a softmax all rows once went on until the last stood still, up to 8e-4 elsewhere."""
    model, histories = fitted(loss), [[3, 17, 40], [5], [], list(range(30)), [5, 6]]
    rows = [row for row, history in enumerate(histories) for _ in history]
    columns = [column for history in histories for column in history]
    by_ids = model.embed_left(histories)
    alone = np.concatenate([model.embed_left(one) if one else by_ids[2:3] for one in histories])
    matrix = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(5, 120))
    np.testing.assert_array_equal(by_ids, model.embed_left(matrix))
    shuffled = PAIRS.right_ids[np.roll(np.arange(120), 7)]  # another order of the same ids
    record = nk.Interactions.from_pairs(rows, columns, left_ids=range(5), right_ids=shuffled)
    np.testing.assert_array_equal(by_ids, model.embed_left(record))
    np.testing.assert_allclose(by_ids, alone, atol=2e-6)
    assert loss is SOFTMAX or (by_ids[0] == alone[0]).all()
    np.testing.assert_array_equal(by_ids[2], [0] * 8 + [1] * (loss is SOFTMAX))  # the bias: what is popular
    np.testing.assert_array_equal(model.embed_right([[3], []])[1, :8], np.zeros(8))


def costly() -> nk.TwoTower:
    rng = np.random.default_rng(0)
    loss = AllPairs(left_costs=0.5 + rng.random(180), right_costs=0.5 + rng.random(120), prior=0.1)
    return nk.TwoTower(4, loss=loss, regularization=0.02, random_state=0).fit(PAIRS)


@each("make", [costly, fitted_with])
def test_a_loaded_model_folds_in_alike(make: Callable[[], nk.TwoTower], tmp_path: Path) -> None:
    model = make()
    model.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embed_left([1, 2]), model.embed_left([1, 2]))
    np.testing.assert_array_equal(loaded.embed_right([1, 2]), model.embed_right([1, 2]))


@each("pair_loss", ["logistic", "squared-hinge"])
def test_other_losses_end_where_their_gradient_is_zero(pair_loss: str) -> None:
    loss = AllPairs(pair_loss=pair_loss, weighting="none")
    options = {"solver": nk.embedding.ALS(max_iter=3), "regularization": 0.005, "random_state": 0}
    model = nk.TwoTower(4, loss=loss, **options).fit(PAIRS)
    p = torch.tensor(model.embed_left([1, 2, 3])[0], dtype=torch.float64, requires_grad=True)
    Q = torch.tensor(model.right_embeddings_, dtype=torch.float64)
    z = Q @ p
    observed = torch.zeros(120, dtype=torch.bool)
    observed[[1, 2, 3]] = True
    value = {"logistic": lambda t: torch.nn.functional.softplus(-t), "squared-hinge": lambda t: (1 - t).relu() ** 2 / 2}
    ridge = model.regularization_ * (3 + model.omega_ * 120)
    total = value[pair_loss](z[observed]).sum() + model.omega_ / 2 * (z[~observed] ** 2).sum() + ridge / 2 * p @ p
    (gradient,) = torch.autograd.grad(total, p)
    assert p.norm() > 0.01, "zeros need no solution"
    assert gradient.norm() < 1e-3 * ridge * p.norm()
    added, _ = model.explain(None, [7], history=[1, 2, 3])
    assert added.sum() == pytest.approx(z[7].item(), rel=1e-4)


@either
def test_contributions_are_those_of_a_slow_twin_and_sum_to_the_score(loss: AllPairs | CosineSoftmax) -> None:
    model, history, items = fitted(loss), [3, 17, 40], np.array([60, 5])
    Q, p = model.right_embeddings_[:, :8].astype(np.float64), model.embed_left(history)[0, :8]
    if loss is ALL_PAIRS:
        weights = np.full(3, np.log(2.0) / np.log1p(PAIRS.weights.astype(np.float64)).mean())
        whole = slow(model, np.array(history), weights, Q)
        A = sum(w * np.outer(Q[j], Q[j]) for j, w in zip(history, weights, strict=True))
        ridge = model.regularization_ * (weights.sum() + model.omega_ * 120)
        A += ridge * np.eye(8) + model.omega_ * (Q.T @ Q - Q[history].T @ Q[history])
        parts = np.linalg.solve(A, weights * Q[history].T).T
        np.testing.assert_allclose(parts.sum(0), whole, rtol=1e-9)
    else:
        shares = np.exp(Q @ p / T + model.right_embeddings_[:, 8] / T)
        shares[history] = 0  # the softmax is over the others
        parts = (Q[history] - shares @ Q / shares.sum()) / 3
        parts /= np.linalg.norm(parts.sum(0))
    expected = np.sort(Q[items] @ parts.T, axis=1)[:, ::-1]
    added, because = model.explain(None, items, 4, history=history)
    np.testing.assert_allclose(added[0, :, :3], expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(added[0].sum(1), Q[items] @ p, rtol=1e-4)
    assert (np.sort(because[0]) == [-1, *history]).all()
    assert (added[..., 3] == 0).all()


def test_recommendations_are_explained_by_each_users_own_pairs() -> None:
    model, users = fitted(ALL_PAIRS), PAIRS.left_ids[[4, 9]]
    ids = model.recommend(users, k=3)[1]
    ids[1, 2] = -1
    added, because = model.explain(users, ids, n=2)
    again = model.explain(None, ids, n=2, history=PAIRS.matrix()[[4, 9]])
    np.testing.assert_array_equal(added, again[0])
    np.testing.assert_array_equal(because, again[1])
    assert (added[..., 0] >= added[..., 1]).all()
    for row, user in enumerate([4, 9]):
        own = PAIRS.right_ids[PAIRS.indices[slice(*PAIRS.indptr[[user, user + 1]])]]
        assert np.isin(because[row], [*own, -1]).all()
    assert not added[1, 2].any()
    assert (because[1, 2] == -1).all()


UNKNOWN = "right has 1 id that right_ids lacks, the first is 999"
EMPTY = "history is empty; give at least one right id"


@each(
    ("asked", "options", "message"),
    [
        ((None, [5]), {}, "give either left_ids seen in fit, or None and the history="),
        (([999], [5]), {}, "left has 1 id that left_ids lacks, the first is 999"),
        (([4], [999]), {}, UNKNOWN),
        (([4, 9], [5]), {}, r"right_ids has shape \(1, 1\); it must be \(2, K\)"),
        (([4], [5], 0), {}, "n is 0; it must be"),
        ((None, [5]), {"history": []}, EMPTY),
    ],
)
def test_what_cannot_be_explained_is_said(asked: tuple, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(ALL_PAIRS).explain(*asked, **options)


def test_features_are_what_a_new_row_shrinks_towards() -> None:
    model = nk.TwoTower(8, loss="all-pairs", regularization=0.02, random_state=0).fit(PLANTED)
    x = PLANTED.left_features[:1]
    alone = model.transform_left(x)[0]
    bare, helped = model.embed_left([3])[0], model.embed_left([3], features=x)[0]
    assert np.linalg.norm(helped - alone) < np.linalg.norm(bare - alone)
    with pytest.raises(ValueError, match=r"features has shape \(2, 16\); it must be \(1, d\)"):
        model.embed_left([3], features=PLANTED.left_features[:2])


@either
def test_what_cannot_be_folded_in_is_said(loss: AllPairs | CosineSoftmax) -> None:
    shape = r"history has shape \(2, 5\); it must be \(b, 120\)"
    dense = np.eye(2, 120), r"shape \(2, 120\) \(weights are a scipy.sparse.csr_matrix\): 1 id occurs more than once"
    for history, message in (([999], UNKNOWN), ([], EMPTY), (sp.csr_matrix(np.ones((2, 5))), shape), dense):
        with pytest.raises(ValueError, match=message):
            fitted(loss).embed_left(history)


def test_a_loss_without_a_row_of_its_own_folds_nothing_in() -> None:
    solver = nk.embedding.Adam(max_iter=1, start="random")
    sampled = nk.TwoTower(4, loss="in-batch-softmax", solver=solver, random_state=0).fit(PAIRS)
    for ask in (lambda: sampled.embed_left([3]), lambda: sampled.explain([3], [4])):
        with pytest.raises(ValueError, match="loss is 'in-batch-softmax'; a new row is solved for 'all-pairs'"):
            ask()


def turning(row: np.ndarray, value) -> float:
    """How long the part of a value's gradient is that turns a row of length 1."""
    x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    np.testing.assert_allclose(np.linalg.norm(row), 1, rtol=1e-5)
    (gradient,) = torch.autograd.grad(value(x), x)
    return float((gradient - (gradient @ x) * x).detach().norm())


def masses(model: nk.TwoTower) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    P, Q = (torch.tensor(X, dtype=torch.float64) for X in (model.left_embeddings_, model.right_embeddings_))
    return P, Q, (~torch.tensor(PAIRS.matrix().toarray() > 0) * torch.exp(P @ Q.T / T)).sum(1)


@each("options", [{}, {"bias_power": 0.0}])
def test_a_new_left_is_where_its_loss_does_not_turn_it(options: dict[str, float]) -> None:
    model = fitted_with(**options)
    k = 8 if options.get("bias_power") != 0 else 9
    row, history = model.embed_left([3, 17, 40])[0], torch.zeros(1, 120, dtype=torch.float64)
    assert row.shape == (9,)
    assert k == 9 or row[8] == 1
    history[0, [3, 17, 40]] = 1
    b = (history[0] == 0).double()
    Q = torch.tensor(model.right_embeddings_, dtype=torch.float64)
    bias = Q[:, 8] / T if k == 8 else 0.0

    def value(p: torch.Tensor) -> torch.Tensor:
        scores = Q[:, :k] @ p / T + bias
        return T * (torch.logsumexp(scores + b.log(), 0) - (history[0] / history.sum()) @ scores)

    assert turning(row[:k], value) < 1e-3
    assert turning(model.left_embeddings_[5, :k], value) > 0.05, "another one's row is turned"


def test_a_new_right_is_where_its_loss_does_not_turn_it() -> None:
    model = fitted_with()
    row, history = model.embed_right([3, 17, 40, 5])[0], [3, 17, 40, 5]
    counts = np.maximum(np.bincount(PAIRS.indices, minlength=120), 1)
    bias = 0.5 * (np.log(4) - np.log(counts).mean())
    assert row[8] == pytest.approx(T * bias, abs=1e-5)
    P, _, mass = masses(model)
    weights = torch.tensor(np.diff(PAIRS.indptr)).double()

    def value(q: torch.Tensor) -> torch.Tensor:
        scores = P[:, :8] @ q / T
        others = torch.ones(len(P)).index_fill_(0, torch.tensor(history), 0)
        return T / 4 * ((others * weights * torch.exp(scores + bias) / mass).sum() - scores[history].sum())

    assert turning(row[:8], value) < 1e-3
    assert turning(model.right_embeddings_[5, :8] / np.linalg.norm(model.right_embeddings_[5, :8]), value) > 0.05
