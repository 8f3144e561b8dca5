"""The softmax over all rights against its slow twin, central differences, and samples that stand for all."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding.two_tower.cosine_softmax import Sample, SoftmaxLoss, sampled
from tests.reference.softmax import dense_softmax

SHAPE = 12, 9


@pytest.fixture
def matrix(rng: np.random.Generator) -> sp.csr_matrix:
    dense = rng.random(SHAPE) * (rng.random(SHAPE) < 0.4)
    dense[3] = 0  # a left row without a pair
    return sp.csr_matrix(dense)


@pytest.fixture(params=[False, True], ids=["all", "without its own"])
def case(matrix: sp.csr_matrix, rng: np.random.Generator, request: pytest.FixtureRequest) -> tuple:
    """The loss, P, Q, and what `dense_softmax` takes; one right is left out of the sums, and some of the pairs."""
    b = rng.random(SHAPE[1]) + 0.1
    b[4] = 0
    P, Q = (torch.tensor(rng.standard_normal((size, 5))) for size in SHAPE)
    out = (matrix.toarray() > 0) & (rng.random(SHAPE) < (0.6 if request.param else 0))
    counts = ~out[matrix.nonzero()]
    loss = SoftmaxLoss(matrix, temperature=0.7, weights=matrix.data, b=b, counts=counts)
    return loss, P, Q, (torch.tensor(matrix.toarray()), torch.tensor(b), 0.7, 0.0, torch.tensor(out))


def test_value_is_that_of_the_sum_over_pairs(case: tuple) -> None:
    loss, P, Q, dense = case
    assert loss.value(P, Q) == pytest.approx(float(dense_softmax(P, Q, *dense)), rel=1e-12)


def test_gradient_is_that_of_the_slow_twin_and_of_central_differences(case: tuple) -> None:
    loss, P, Q, dense = case
    P.requires_grad_(), Q.requires_grad_()
    dense_softmax(P, Q, *dense).backward()
    P_, Q_ = P.detach(), Q.detach()
    dP, dQ = loss.gradient(P_, Q_)
    torch.testing.assert_close(dP, P.grad, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(dQ, Q.grad, rtol=1e-10, atol=1e-10)
    for at, h in (((2, 1), 1e-6), ((7, 4), 1e-6)):
        step = torch.zeros_like(Q_)
        step[at] = h
        numeric = (loss.value(P_, Q_ + step) - loss.value(P_, Q_ - step)) / (2 * h)
        assert float(dQ[at]) == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def test_a_bias_is_that_of_the_slow_twin(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    bias = rng.standard_normal(SHAPE[1])
    loss = SoftmaxLoss(matrix, temperature=0.7, weights=matrix.data, bias=bias)
    P, Q = (torch.tensor(rng.standard_normal((size, 5)), requires_grad=True) for size in SHAPE)
    Y = torch.tensor(matrix.toarray())
    value = dense_softmax(P, Q, Y, torch.ones(SHAPE[1]), 0.7, torch.tensor(bias))
    value.backward()
    assert loss.value(P.detach(), Q.detach()) == pytest.approx(float(value.detach()), rel=1e-12)
    dP, dQ = loss.gradient(P.detach(), Q.detach())
    torch.testing.assert_close(dP, P.grad, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(dQ, Q.grad, rtol=1e-10, atol=1e-10)
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
    for _ in range(2000):
        sample = sampled(numbers, weights, 3, generator)
        assert len(sample.numbers) == 3
        torch.testing.assert_close(sample.log_counts, -chances[sample.numbers // 10].log())
        drawn[sample.numbers // 10] += 1
    torch.testing.assert_close(drawn / 2000, chances.float(), rtol=0, atol=0.05)
    assert sampled(numbers, weights, 6, generator).log_counts.tolist() == [0.0] * 6


def test_a_user_without_an_item_left_has_no_sum(matrix: sp.csr_matrix, rng: np.random.Generator) -> None:
    full = matrix.toarray()
    full[5] = 1  # has all items
    matrix = sp.csr_matrix(full)
    P, Q = (torch.tensor(rng.standard_normal((size, 5)), dtype=torch.float32) for size in SHAPE)
    dP, dQ = SoftmaxLoss(matrix, temperature=0.05, weights=matrix.data, counts=0).gradient(P, Q)
    torch.testing.assert_close(dP[5], -Q.sum(0) / 0.05)
    full[5] = 0
    rest = sp.csr_matrix(full)
    loss = SoftmaxLoss(rest, temperature=0.05, weights=rest.data, counts=0)
    torch.testing.assert_close(dQ, loss.gradient(P, Q)[1] - P[5] / 0.05)


def test_large_scores_do_not_overflow(case: tuple) -> None:
    loss, P, Q, _ = case
    assert np.isfinite(loss.value(1e3 * P.float(), Q.float()))
    assert all(bool(g.isfinite().all()) for g in loss.gradient(1e3 * P.float(), Q.float()))


def test_what_does_not_fit_is_refused_by_name(matrix: sp.csr_matrix) -> None:
    with pytest.raises(ValueError, match="temperature"):
        SoftmaxLoss(matrix, temperature=0.0)
    with pytest.raises(ValueError, match="weights has shape"):
        SoftmaxLoss(matrix, temperature=0.1, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="bias has shape"):
        SoftmaxLoss(matrix, temperature=0.1, bias=[1.0, 2.0])
    with pytest.raises(ValueError, match="b is 0 for every right"):
        SoftmaxLoss(matrix, temperature=0.1, b=np.zeros(SHAPE[1]))
