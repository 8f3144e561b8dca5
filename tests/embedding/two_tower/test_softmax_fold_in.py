"""A new row under a softmax on cosines stands still: against autograd over the dense loss, and against a refit."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nearkin as nk
from nearkin.embedding import CosineSoftmax

PAIRS = nk.Interactions.from_matrix(
    nk.data.planted_interactions(300, 120, random_state=0).interactions.matrix()
)  # without their features
T = 0.25


def fitted_with(**options: float) -> nk.TwoTower:
    loss = CosineSoftmax(temperature=T, weighting="none", **options)
    return nk.TwoTower(9, loss=loss, random_state=0).fit(PAIRS)


@pytest.fixture(scope="module")
def fitted() -> nk.TwoTower:
    return fitted_with()


def turning(row: np.ndarray, value) -> float:
    """How long the part of a value's gradient is that turns a row of length 1."""
    x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    np.testing.assert_allclose(np.linalg.norm(row), 1, rtol=1e-5)
    (gradient,) = torch.autograd.grad(value(x), x)
    return float((gradient - (gradient @ x) * x).detach().norm())


def masses(model: nk.TwoTower, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    P, Q = (torch.tensor(X, dtype=torch.float64) for X in (model.left_embeddings_, model.right_embeddings_))
    return P, Q, (b * torch.exp(P @ Q.T / T)).sum(1)


@pytest.mark.parametrize("options", [{}, {"bias_power": 0.0}, {"cost_power": 0.2}])
def test_a_new_left_is_where_its_loss_does_not_turn_it(options: dict[str, float]) -> None:
    model = fitted_with(**options)
    k = 8 if options.get("bias_power") != 0 else 9
    row, history = model.embed_left([3, 17, 40])[0], torch.zeros(1, 120, dtype=torch.float64)
    assert row.shape == (9,)
    assert k == 9 or row[8] == 1
    history[0, [3, 17, 40]] = 1
    W = torch.tensor(PAIRS.matrix().toarray() > 0).double()
    counts = W.sum(0).clamp(min=1)
    b = counts ** options.get("cost_power", 0.0)
    Q = torch.tensor(model.right_embeddings_, dtype=torch.float64)
    bias = Q[:, 8] / T if k == 8 else 0.0

    def value(p: torch.Tensor) -> torch.Tensor:
        scores = Q[:, :k] @ p / T + bias
        return T * (torch.logsumexp(scores + b.log(), 0) - (history[0] / history.sum()) @ scores)

    assert turning(row[:k], value) < 1e-3
    assert turning(model.left_embeddings_[5, :k], value) > 0.05, "another one's row is turned"


@pytest.mark.parametrize("cost_power", [0.0, 0.3])
def test_a_new_right_is_where_its_loss_does_not_turn_it(cost_power: float) -> None:
    model = fitted_with(cost_power=cost_power)
    row, history = model.embed_right([3, 17, 40, 5])[0], [3, 17, 40, 5]
    counts = np.maximum(np.bincount(PAIRS.indices, minlength=120), 1)
    bias = 0.5 * (np.log(4) - np.log(counts).mean())
    assert row[8] == pytest.approx(T * bias, abs=1e-5)
    popularity = counts.astype(float) ** cost_power
    P, _, mass = masses(model, torch.tensor(popularity / popularity.mean()))
    weights = torch.tensor(np.diff(PAIRS.indptr)).double()
    b = 4**cost_power / popularity.mean()

    def value(q: torch.Tensor) -> torch.Tensor:
        scores = P[:, :8] @ q / T
        return T / 4 * ((b * weights * torch.exp(scores + bias) / mass).sum() - scores[history].sum())

    assert turning(row[:8], value) < 1e-3
    assert turning(model.right_embeddings_[5, :8] / np.linalg.norm(model.right_embeddings_[5, :8]), value) > 0.05


def test_ids_records_and_sparse_rows_say_the_same(fitted: nk.TwoTower) -> None:
    histories = [[3, 17, 40], [5], []]
    matrix = sp.csr_matrix((np.ones(4), ([0, 0, 0, 1], [3, 17, 40, 5])), shape=(3, 120))
    by_ids = fitted.embed_left(histories)
    np.testing.assert_array_equal(by_ids, fitted.embed_left(matrix))
    np.testing.assert_allclose(by_ids[0], fitted.embed_left([3, 17, 40])[0], atol=2e-4)
    np.testing.assert_array_equal(by_ids[2], [*np.zeros(8), 1], "who met nothing is offered what is popular")
    new = fitted.embed_right([[3], []])
    np.testing.assert_array_equal(new[1, :8], np.zeros(8))
    with pytest.raises(ValueError, match="history is empty; give at least one right id"):
        fitted.embed_left([])


def test_users_left_out_rank_as_in_a_refit(fitted: nk.TwoTower) -> None:
    rng = np.random.default_rng(0)
    out = np.isin(PAIRS.rows, np.arange(0, 300, 6))
    judged = out & (rng.random(len(PAIRS)) < 0.3)
    part, whole = PAIRS.select(~out), PAIRS.select(~judged)
    model, refit = (
        nk.TwoTower(9, loss=CosineSoftmax(temperature=T), random_state=0).fit(pairs) for pairs in (part, whole)
    )
    P = model.embed_left(PAIRS.select(out & ~judged).matrix())
    folded, again = (
        nk.metrics.ranking_metrics(left, right, PAIRS.select(judged), seen=whole, k=20)["ndcg@20"]
        for left, right in ((P, model.right_embeddings_), (refit.left_embeddings_, refit.right_embeddings_))
    )
    assert folded > 0.93 * again, (folded, again)


def test_a_fitted_row_is_where_a_new_one_with_its_pairs_goes(fitted: nk.TwoTower) -> None:
    for again, known in (
        (fitted.embed_left(PAIRS.matrix()), fitted.left_embeddings_),
        (fitted.embed_right(sp.csr_matrix(PAIRS.matrix().T)), fitted.right_embeddings_),
    ):
        cosines = (again[:, :8] * known[:, :8]).sum(1)
        assert np.median(cosines) > 0.95
        np.testing.assert_allclose(again[:, 8], known[:, 8], atol=1e-5)


def test_a_loaded_model_folds_in_alike(fitted: nk.TwoTower, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embed_left([1, 2]), fitted.embed_left([1, 2]))
    np.testing.assert_array_equal(loaded.embed_right([1, 2]), fitted.embed_right([1, 2]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_no_label_is_imputed_again_for_a_new_row(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums that a new row meets are those of the fit with imputed labels, without their regressions."""
    model = fitted_with(imputed=0.3)
    embed = model.embed_left if side == "left" else model.embed_right
    row = embed([3, 17, 40])
    monkeypatch.setattr("nearkin.embedding.two_tower.cosine_softmax.sparse_ease", None)
    np.testing.assert_array_equal(embed([3, 17, 40]), row)


def test_a_new_row_alone_is_where_it_is_among_others(fitted: nk.TwoTower) -> None:
    """Before, all rows went on until the last stood still, so that a row alone ended up to 8e-4 elsewhere."""
    histories = [[3], [3, 17, 40], list(range(30)), [5, 6]]
    alone = np.concatenate([fitted.embed_left([history]) for history in histories])
    np.testing.assert_allclose(fitted.embed_left(histories), alone, atol=2e-6)
