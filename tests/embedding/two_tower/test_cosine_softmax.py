"""Sweeps on rows of length 1: against a slow twin, down the loss, resumed, and through `TwoTower`."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn.functional import normalize

import nearkin as nk
from nearkin.embedding import CosineSoftmax, SphereSweeps, sparse_ease
from nearkin.embedding.two_tower.cosine_softmax import SoftmaxLoss, with_imputed
from tests.reference.softmax import dense_softmax, dense_sweep

SHAPE = 30, 20


@pytest.fixture
def matrix(rng: np.random.Generator) -> sp.csr_matrix:
    return sp.csr_matrix(rng.random(SHAPE) * (rng.random(SHAPE) < 0.3) + np.eye(*SHAPE) + np.eye(*SHAPE, k=-10))


def planted(m: int, n: int) -> nk.Interactions:
    """Planted pairs without their features."""
    pairs = nk.data.planted_interactions(m, n, random_state=0).interactions
    return nk.Interactions.from_matrix(pairs.matrix())


def solver_of(matrix: sp.csr_matrix, rng: np.random.Generator, **options) -> SphereSweeps:
    P, Q = (normalize(torch.tensor(rng.standard_normal((size, 6)))) for size in matrix.shape)
    loss = SoftmaxLoss(matrix, temperature=0.3, weights=matrix.data, counts=0)
    solver = SphereSweeps(**{"max_iter": 40, "n_sampled": None} | options)
    return solver.sweep_from(loss, P, Q, torch.Generator().manual_seed(0))


def test_a_sweep_is_that_of_the_slow_twin(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    solver = solver_of(matrix, rng, momentum=0.0)
    b, W = torch.ones(SHAPE[1], dtype=torch.float64), torch.tensor(matrix.toarray())
    P, Q = dense_sweep(solver.P, solver.Q, W, b, 0.3, 1.0, W > 0)
    solver.step()
    torch.testing.assert_close(solver.P, P)
    torch.testing.assert_close(solver.Q, Q)


def test_sweeps_lower_the_loss_on_unit_rows(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    solver = solver_of(matrix, rng)
    values = [solver.step() for _ in range(40)]
    assert values[-1] < 0.9 * values[0]
    assert values[-1] < values[10]
    for X in solver.embeddings():
        torch.testing.assert_close(X.norm(dim=1), torch.ones(len(X), dtype=X.dtype))


def test_the_embeddings_are_means_over_the_last_quarter(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    solver, tables = solver_of(matrix, rng, n_sampled=8, max_iter=8), []
    for _ in range(8):
        solver.step()
        tables.append(solver.P)
    torch.testing.assert_close(solver.embeddings()[0], normalize(tables[-2] + tables[-1]))


def test_rows_without_a_pair_stay_zero(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    dense = matrix.toarray()
    dense[4] = dense[:, 7] = 0
    solver = solver_of(sp.csr_matrix(dense), rng, n_sampled=5)
    solver.step()
    assert not solver.P[4].any()
    assert not solver.Q[7].any()


def test_a_resumed_solver_goes_on_alike(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    first, second = solver_of(matrix, rng, n_sampled=8), solver_of(matrix, rng, n_sampled=8)
    first.step()
    second.load_state({name: value.clone() for name, value in first.state().items()})
    assert first.step() == second.step()
    torch.testing.assert_close(first.Q, second.Q, rtol=0, atol=0)


def test_the_estimator_learns_saves_and_goes_on(tmp_path: Path) -> None:
    parts = nk.data.split_random(planted(300, 200), random_state=0)
    model = nk.TwoTower(16, loss="cosine-softmax", random_state=0).set_params(loss__temperature=0.2)
    model.fit(parts.train)
    counts = np.bincount(parts.train.indices, minlength=200).astype(np.float32)[:, None]
    by_count = nk.metrics.ranking_metrics(np.ones((300, 1), np.float32), counts, parts.test, seen=parts.train, k=20)
    assert model.solver_ == "sphere"
    assert model.evaluate(parts.test, k=20)["ndcg@20"] > 1.3 * by_count["ndcg@20"]
    model.save(tmp_path / "emb")
    loaded = nk.TwoTower.load(tmp_path / "emb")
    assert isinstance(loaded.loss, CosineSoftmax)
    assert loaded.loss.temperature == 0.2
    model.partial_fit(parts.valid, max_iter=1)
    np.testing.assert_allclose(np.linalg.norm(model.left_embeddings_[:, :-1], axis=1), 1, rtol=1e-5)
    degrees = np.diff(model.seen_.columns.indptr)
    bias = 0.2 * 0.5 * np.log(np.maximum(degrees, 1))
    np.testing.assert_allclose(model.right_embeddings_[:, -1], bias - bias.mean(), atol=1e-6)
    assert (model.left_embeddings_[:, -1] == 1).all()


def test_a_bias_tells_popular_rights_apart_where_cosines_cannot() -> None:
    """Every left has right 0, or right 1 or 2 or ...: by history all of the others are alike."""
    lefts, rights = np.arange(60), 1 + np.arange(60) % 12
    rights[rights > 6] = 1  # the popular one
    pairs = nk.Interactions.from_pairs(np.r_[lefts, lefts], np.r_[np.zeros(60, int), rights], np.ones(120))
    with_bias, without = (
        nk.TwoTower(4, loss=CosineSoftmax(temperature=0.5, bias_power=power), random_state=0).fit(pairs)
        for power in (1.0, 0.0)
    )
    assert with_bias.right_embeddings_[1, -1] == with_bias.right_embeddings_[1:, -1].max()
    assert without.right_embeddings_.shape == (7, 4)
    np.testing.assert_allclose(np.linalg.norm(without.right_embeddings_, axis=1), 1, rtol=1e-5)


def test_imputed_rights_share_a_lefts_weight_by_their_ranks(matrix: sp.csr_matrix) -> None:
    lists = np.tile([3, 8, 1, -1], (30, 1))
    lists[4] = -1  # nothing to impute
    wanted = matrix.toarray()
    for row in np.delete(np.arange(30), 4):
        weight = wanted[row].sum()
        wanted[row] *= 0.6
        for rank, column in enumerate([3, 8, 1], start=1):
            wanted[row, column] += 0.4 * weight / rank / (1 + 1 / 2 + 1 / 3)
    found = with_imputed(matrix, lists, 0.4)
    np.testing.assert_allclose(found.toarray(), wanted)
    np.testing.assert_allclose(found.sum(1), matrix.sum(1))


def test_the_loss_has_the_imputed_labels_and_the_bias_of_the_pairs() -> None:
    pairs = planted(60, 40)
    loss = CosineSoftmax(imputed=0.3, ridge=3.0, weighting="none")
    found = loss.softmax_loss(loss.objective(pairs))
    plain = CosineSoftmax(weighting="none")
    without = plain.softmax_loss(plain.objective(pairs))
    labels = with_imputed(pairs.matrix() > 0, sparse_ease(pairs, 50, ridge=3.0)[1], 0.3).toarray()
    rng = np.random.default_rng(0)
    P, Q = (torch.tensor(rng.standard_normal((size, 5))) for size in (60, 40))
    ones = torch.ones(40, dtype=torch.float64)
    observed = torch.tensor(pairs.matrix().toarray() > 0)  # leaves the sums, an imputed pair does not
    expected = dense_softmax(P, Q, torch.tensor(labels), ones, 0.15, without.bias, observed)
    assert found.value(P, Q) == pytest.approx(float(expected), rel=1e-6)
    torch.testing.assert_close(found.bias, without.bias)
    assert found.value(P, Q) != pytest.approx(without.value(P, Q), rel=1e-3)


def test_twice_the_pairs_lead_by_the_same_however_few() -> None:
    degrees = np.array([1, 2, 4, 8])
    bias = CosineSoftmax(bias_power=0.7).bias(degrees, degrees)
    np.testing.assert_allclose(np.diff(bias), 0.7 * np.log(2))
    assert bias.mean() == pytest.approx(0)
    np.testing.assert_allclose(CosineSoftmax(bias_power=0.7).bias(np.array([0, 1]), degrees), bias[0])
