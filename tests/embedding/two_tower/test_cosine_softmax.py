"""The softmax over all rights and its sweeps on rows of length 1: against slow twins and central differences, down the
loss, resumed, and through `TwoTower`."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn.functional import normalize

import nearkin as nk
from nearkin.embedding import CosineSoftmax, SphereSweeps
from nearkin.embedding.baselines import sparse_ease
from nearkin.embedding.two_tower.cosine_softmax import Sample, SoftmaxLoss, sampled, with_imputed
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
    assert found.left(P, Q).value == pytest.approx(float(expected), rel=1e-6)
    torch.testing.assert_close(found.bias, without.bias)
    assert found.left(P, Q).value != pytest.approx(without.left(P, Q).value, rel=1e-3)


SMALL = 12, 9


@pytest.fixture
def small(rng: np.random.Generator) -> sp.csr_matrix:
    dense = rng.random(SMALL) * (rng.random(SMALL) < 0.4)
    dense[3] = 0  # a left row without a pair
    return sp.csr_matrix(dense)


@pytest.fixture(params=[False, True], ids=["all", "without its own"])
def case(small: sp.csr_matrix, rng: np.random.Generator, request: pytest.FixtureRequest) -> tuple:
    """The loss, P, Q, and what `dense_softmax` takes; one right is left out of the sums, and some of the pairs."""
    b = rng.random(SMALL[1]) + 0.1
    b[4] = 0
    P, Q = (torch.tensor(rng.standard_normal((size, 5))) for size in SMALL)
    out = (small.toarray() > 0) & (rng.random(SMALL) < (0.6 if request.param else 0))
    counts = ~out[small.nonzero()]
    loss = SoftmaxLoss(small, temperature=0.7, weights=small.data, b=b, counts=counts)
    return loss, P, Q, (torch.tensor(small.toarray()), torch.tensor(b), 0.7, 0.0, torch.tensor(out))


def gradient(loss: SoftmaxLoss, P: torch.Tensor, Q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    left = loss.left(P, Q)
    return left.slope / loss.temperature, loss.right(P, Q, left.log_masses) / loss.temperature


def same(loss: SoftmaxLoss, P: torch.Tensor, Q: torch.Tensor, *dense: object) -> None:
    """Value and gradient are those of the sum over pairs."""
    P, Q = P.requires_grad_(), Q.requires_grad_()
    value = dense_softmax(P, Q, *dense)
    value.backward()
    assert loss.left(P.detach(), Q.detach()).value == pytest.approx(float(value.detach()), rel=1e-12)
    for found, wanted in zip(gradient(loss, P.detach(), Q.detach()), (P.grad, Q.grad), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_value_and_gradient_are_those_of_the_slow_twin_and_of_central_differences(case: tuple) -> None:
    loss, P, Q, dense = case
    same(loss, P.clone(), Q.clone(), *dense)
    for at in ((2, 1), (7, 4)):
        step = torch.zeros_like(Q)
        step[at] = 1e-6
        numeric = (loss.left(P, Q + step).value - loss.left(P, Q - step).value) / 2e-6
        assert float(gradient(loss, P, Q)[1][at]) == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def test_a_bias_is_that_of_the_slow_twin(small: sp.csr_matrix, rng: np.random.Generator) -> None:
    bias, Y = rng.standard_normal(SMALL[1]), torch.tensor(small.toarray())
    loss = SoftmaxLoss(small, temperature=0.7, weights=small.data, bias=bias)
    P, Q = (torch.tensor(rng.standard_normal((size, 5))) for size in SMALL)
    same(loss, P, Q, Y, torch.ones(SMALL[1]), 0.7, torch.tensor(bias))
    torch.testing.assert_close(loss.right_weights, Y.sum(0))
    torch.testing.assert_close(loss.left_weights, Y.sum(1))


def test_samples_estimate_masses_and_the_right_slope_without_bias(case: tuple) -> None:
    """Each row alone, with its chance: the sum over these samples is the whole sum, but for the observed pairs' part,
    which each of them has."""
    loss, P, Q, _ = case
    whole, once = loss.left(P, Q), torch.zeros(1, dtype=torch.float64)
    none = Sample(torch.tensor([0]), once.log())  # a row that counts 0 times

    def masses(sample: Sample) -> torch.Tensor:
        log_masses = loss.left(P, Q, sample).log_masses
        return log_masses.exp().where(log_masses < torch.inf, 0)  # a sum of nothing

    parts = [masses(Sample(one[None], once)) for one in loss.rights]
    torch.testing.assert_close(sum(parts) - (len(parts) - 1) * masses(none), whole.log_masses.exp())
    slopes = [loss.right(P, Q, whole.log_masses, Sample(one[None], once)) for one in loss.lefts]
    own = loss.right(P, Q, whole.log_masses, none)
    torch.testing.assert_close(sum(slopes) - (len(slopes) - 1) * own, loss.right(P, Q, whole.log_masses))


def test_a_row_is_drawn_with_its_chance_and_counts_for_its_inverse() -> None:
    weights = torch.tensor([8.0, 1, 2, 1, 1, 3], dtype=torch.float64)
    generator, numbers, drawn = torch.Generator().manual_seed(0), 10 * torch.arange(6), torch.zeros(6)
    chances = torch.tensor([1.0, 2 / 8, 4 / 8, 2 / 8, 2 / 8, 6 / 8], dtype=torch.float64)  # the first is always in
    for _ in range(1000):
        sample = sampled(numbers, weights, 3, generator)
        assert len(sample.numbers) == 3
        torch.testing.assert_close(sample.log_counts, -chances[sample.numbers // 10].log())
        drawn[sample.numbers // 10] += 1
    torch.testing.assert_close(drawn / 1000, chances.float(), rtol=0, atol=0.05)
    assert sampled(numbers, weights, 6, generator).log_counts.tolist() == [0.0] * 6


def test_a_user_without_an_item_left_has_no_sum(small: sp.csr_matrix, rng: np.random.Generator) -> None:
    full = small.toarray()
    full[5] = 1  # has all items
    small = sp.csr_matrix(full)
    P, Q = (torch.tensor(rng.standard_normal((size, 5)), dtype=torch.float32) for size in SMALL)
    dP, dQ = gradient(SoftmaxLoss(small, temperature=0.05, weights=small.data, counts=0), P, Q)
    torch.testing.assert_close(dP[5], -Q.sum(0) / 0.05)
    full[5] = 0
    rest = sp.csr_matrix(full)
    loss = SoftmaxLoss(rest, temperature=0.05, weights=rest.data, counts=0)
    torch.testing.assert_close(dQ, gradient(loss, P, Q)[1] - P[5] / 0.05)


def test_large_scores_do_not_overflow(case: tuple) -> None:
    loss, P, Q, _ = case
    assert np.isfinite(loss.left(1e3 * P.float(), Q.float()).value)
    assert all(bool(g.isfinite().all()) for g in gradient(loss, 1e3 * P.float(), Q.float()))


def test_what_does_not_fit_is_refused_by_name(small: sp.csr_matrix) -> None:
    for options, match in (
        ({"temperature": 0.0}, "temperature"),
        ({"weights": [1.0, 2.0]}, "weights has shape"),
        ({"bias": [1.0, 2.0]}, "bias has shape"),
        ({"b": np.zeros(SMALL[1])}, "b is 0 for every right"),
    ):
        with pytest.raises(ValueError, match=match):
            SoftmaxLoss(small, **{"temperature": 0.1} | options)
