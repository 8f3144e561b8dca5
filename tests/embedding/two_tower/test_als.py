"""Alternating least squares: exact against normal equations, CG against exact, any convex loss, and features."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding import ALS
from nearkin.embedding.all_pairs import AllPairsLoss
from nearkin.embedding.two_tower.als import DEFAULTS, BranchRegression, descend_left, solve_by_cross_validation
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side


def loss_of(name: str = "squared", **options) -> AllPairsLoss:
    matrix = sp.random(40, 25, density=0.2, random_state=0, format="csr")
    return AllPairsLoss(matrix, loss=name, labels=1.0, omega=0.2, regularization=0.05, **options)


def tables(rng: np.random.Generator, k: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(rng.standard_normal((40, k))), torch.tensor(rng.standard_normal((25, k)))


def test_a_full_block_solves_the_normal_equations(rng: np.random.Generator) -> None:
    loss, (P, Q) = loss_of(a=rng.random(40), b=rng.random(25), prior=0.1), tables(rng)
    solver = ALS(block_size=6).alternate(loss, P, Q)
    P = descend_left(loss, P, Q)
    assert loss.gradient(P, Q)[0].abs().max() < 1e-10
    solver.step()
    assert loss.gradient(solver.P, solver.Q)[1].abs().max() < 1e-10, "the right side was solved last"


@pytest.mark.parametrize("block_size", [None, 2])
def test_sweeps_reach_the_minimum_of_exact_ones(rng: np.random.Generator, block_size: int | None) -> None:
    loss, start = loss_of(), tables(rng)
    exact = ALS(block_size=6).alternate(loss, *start)
    solver = ALS(block_size=block_size).alternate(loss, *start)
    values = []
    for _ in range(100):
        exact.step()
        solver.step()
        values.append(solver.value())
    assert (np.diff(values) <= 1e-9).all(), "every sweep lowers the loss"
    assert values[-1] == pytest.approx(exact.value(), rel=0.01)


def test_full_conjugate_gradients_are_exact(rng: np.random.Generator) -> None:
    loss, start = loss_of(), tables(rng)
    solver, exact = (ALS(**how).alternate(loss, *start) for how in ({"cg_steps": 20}, {"block_size": 6}))
    solver.step(), exact.step()
    torch.testing.assert_close(solver.P @ solver.Q.T, exact.P @ exact.Q.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["logistic", "squared-hinge"])
def test_other_losses_fall_in_every_sweep(rng: np.random.Generator, name: str) -> None:
    solver = ALS().alternate(loss_of(name), *tables(rng))
    values = [solver.value()]
    for _ in range(8):
        solver.step()
        values.append(solver.value())
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < 0.9 * values[0]


def test_float32_rows_without_pairs_go_to_zero(rng: np.random.Generator) -> None:
    matrix = sp.csr_matrix(([1.0, 1.0], ([0, 2], [1, 0])), shape=(3, 3))
    P, Q = (torch.tensor(rng.standard_normal((3, 2)), dtype=torch.float32) for _ in range(2))
    solver = ALS(cg_steps=4).alternate(AllPairsLoss(matrix, regularization=0.1), P, Q)
    for _ in range(5):
        solver.step()
    assert solver.P.dtype == torch.float32
    assert solver.P[1].abs().max() < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_the_last_layer_of_a_branch_is_a_weighted_regression(rng: np.random.Generator, weighted: bool) -> None:
    """Without hidden layers g is linear: targets linear in the features are met, where rows have a weight."""
    X = rng.standard_normal((50, 4)).astype(np.float32)
    branch = FeatureBranch(4, 3, (), torch.Generator().manual_seed(0))
    side = Side(ResidualTower(50, 3, branch), 50, X)
    targets = torch.from_numpy(X @ rng.standard_normal((4, 3)).astype(np.float32) + [1.0, -2.0, 0.5]).float()
    weights = torch.ones(50, dtype=torch.float64)
    if weighted:
        weights[:10], targets[:10] = 0, 99.0
    regression = BranchRegression(side, weights, generator=torch.Generator().manual_seed(0))
    regression.step(targets)
    torch.testing.assert_close(regression.side.encoded()[10:], targets[10:], rtol=1e-3, atol=1e-3)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))[0]
    before = regression.side.encoded()
    regression.turn(turn)
    torch.testing.assert_close(regression.side.encoded(), before @ turn, rtol=1e-4, atol=1e-4)


def test_damping_is_chosen_by_generalized_cross_validation(rng: np.random.Generator) -> None:
    """The error of the chosen damping is the least of a fine grid of them, computed from the hat matrix."""
    X, n = rng.standard_normal((30, 12)), 30
    Y = X @ rng.standard_normal((12, 2)) * 0.2 + rng.standard_normal((30, 2))
    A, B = (torch.from_numpy(part) for part in (X.T @ X, X.T @ Y))
    S = solve_by_cross_validation(A, B, float((Y**2).sum()), n).numpy()

    def error(damping: float) -> tuple[float, np.ndarray]:
        solve = np.linalg.inv(X.T @ X + damping * np.eye(12))
        found = solve @ X.T @ Y
        return ((Y - X @ found) ** 2).sum() / (n - np.trace(X @ solve @ X.T)) ** 2, found

    dampings = torch.linalg.eigvalsh(A)[-1] * torch.logspace(*DEFAULTS.dampings, dtype=torch.float64)
    tried = [error(float(damping)) for damping in dampings]
    best = min(tried, key=lambda pair: pair[0])[1]
    np.testing.assert_allclose(S, best, rtol=1e-6)
