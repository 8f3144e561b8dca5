"""Alternating least squares: exact against normal equations, CG against exact, any convex loss, and features."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding.all_pairs import AllPairsLoss
from nearkin.embedding.all_pairs.row_solves import solve_left
from nearkin.embedding.two_tower.solvers.als import AlternatingLeastSquares


def loss_of(name: str = "squared", **options) -> AllPairsLoss:
    matrix = sp.random(40, 25, density=0.2, random_state=0, format="csr")
    return AllPairsLoss(matrix, loss=name, labels=1.0, omega=0.2, regularization=0.05, **options)


def tables(rng: np.random.Generator, k: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(rng.standard_normal((40, k))), torch.tensor(rng.standard_normal((25, k)))


def test_a_full_block_solves_the_normal_equations(rng: np.random.Generator) -> None:
    loss, (P, Q) = loss_of(a=rng.random(40), b=rng.random(25), prior=0.1), tables(rng)
    solver = AlternatingLeastSquares(loss, P, Q, block_size=6)
    P = solve_left(loss, P, Q)
    assert loss.gradient(P, Q)[0].abs().max() < 1e-10
    solver.step()
    assert loss.gradient(solver.P, solver.Q)[1].abs().max() < 1e-10, "the right side was solved last"


@pytest.mark.parametrize("block_size", [None, 2])
def test_sweeps_lead_to_the_minimum_that_exact_ones_find(rng: np.random.Generator, block_size: int | None) -> None:
    loss, start = loss_of(), tables(rng)
    exact = AlternatingLeastSquares(loss, *start, block_size=6)
    solver = AlternatingLeastSquares(loss, *start, block_size=block_size)
    values = []
    for _ in range(200):
        exact.step()
        solver.step()
        values.append(solver.value())
    assert (np.diff(values) <= 1e-9).all(), "every sweep lowers the loss"
    assert values[-1] == pytest.approx(exact.value(), rel=0.01)


def test_full_conjugate_gradients_are_exact(rng: np.random.Generator) -> None:
    loss, start = loss_of(), tables(rng)
    solver, exact = (AlternatingLeastSquares(loss, *start, **how) for how in ({"cg_steps": 20}, {"block_size": 6}))
    solver.step(), exact.step()
    torch.testing.assert_close(solver.P @ solver.Q.T, exact.P @ exact.Q.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["logistic", "squared-hinge"])
def test_other_losses_fall_in_every_sweep(rng: np.random.Generator, name: str) -> None:
    solver = AlternatingLeastSquares(loss_of(name), *tables(rng))
    values = [solver.value()]
    for _ in range(8):
        solver.step()
        values.append(solver.value())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < 0.9 * values[0]


def test_float32_rows_without_pairs_go_to_zero(rng: np.random.Generator) -> None:
    matrix = sp.csr_matrix(([1.0, 1.0], ([0, 2], [1, 0])), shape=(3, 3))
    P, Q = (torch.tensor(rng.standard_normal((3, 2)), dtype=torch.float32) for _ in range(2))
    solver = AlternatingLeastSquares(AllPairsLoss(matrix, regularization=0.1), P, Q, cg_steps=4)
    for _ in range(5):
        solver.step()
    assert solver.P.dtype == torch.float32
    assert solver.P[1].abs().max() < 1e-6
