"""Alternating least squares: exact against normal equations, CG against exact, any convex loss, features; Newton steps
of single rows against a dense twin with its own line search."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

import nearkin as nk
from nearkin.embedding import ALS
from nearkin.embedding.all_pairs import AllPairsLoss
from nearkin.embedding.two_tower import als
from nearkin.embedding.two_tower.als import DEFAULTS, BranchRegression, descend_left, solve_by_cross_validation
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side
from tests.covering import each


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


@each("block_size", [None, 2])
def test_sweeps_reach_the_minimum_of_exact_ones(rng: np.random.Generator, block_size: int | None) -> None:
    loss, start = loss_of(), tables(rng)
    exact = ALS(block_size=6).alternate(loss, *start)
    solver = ALS(block_size=block_size).alternate(loss, *start)
    values = []
    for _ in range(50):
        exact.step()
        solver.step()
        values.append(solver.value())
    assert (np.diff(values) <= 1e-9).all(), "every sweep lowers the loss"
    assert values[-1] == pytest.approx(exact.value(), rel=0.01)


@each(("weighted", "hidden"), [(False, ()), (True, ()), (True, (3,))])
def test_the_last_layer_of_a_branch_is_a_weighted_regression(
    rng: np.random.Generator, weighted: bool, hidden: tuple[int, ...]
) -> None:
    """It reads the features: targets linear in these are met, where rows have a weight."""
    X = rng.standard_normal((50, 4)).astype(np.float32)
    branch = FeatureBranch(4, 3, hidden, torch.Generator().manual_seed(0))
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


M, N, K = 6, 8, 3
SCALE, RIDGE = 1e-3, 1e-4  # a small objective, so that a wrong constant beside it would decide the search


def problem(rng: np.random.Generator) -> tuple[AllPairsLoss, Tensor, Tensor]:
    """Logistic pairs far from where they would be, a small ridge: full Newton steps overshoot."""
    mask = rng.random((M, N)) < 0.6
    mask[:, 0] = True
    Y = sp.csr_matrix((rng.choice([-1.0, 1.0], mask.sum()), np.nonzero(mask)), shape=(M, N))
    loss = AllPairsLoss(Y, loss="logistic", omega=1e-3 * SCALE, weights=SCALE, regularization=RIDGE)
    P, Q = (torch.tensor(3 * rng.standard_normal((rows, K))) for rows in (M, N))
    return loss, P, Q


def dense_step(loss: AllPairsLoss, P: Tensor, Q: Tensor, mean: Tensor | None) -> tuple[Tensor, float]:
    """P after one step of every row's own Newton direction, as long as Armijo's rule says; and that length."""
    pull = torch.zeros_like(P) if mean is None else RIDGE * mean

    def shifted(X: Tensor) -> float:
        return loss.value(X, Q) - float((pull * X).sum())

    gradient = loss.gradient(P, Q)[0] - pull
    direction = torch.zeros_like(P)
    for i in range(M):
        columns = []
        for c in range(K):
            W = torch.zeros_like(P)
            W[i, c] = 1.0
            columns.append(loss.gauss_newton_product(P, Q, W, torch.zeros_like(Q))[0][i])
        direction[i] = torch.linalg.solve(torch.stack(columns, dim=1), -gradient[i])
    slope, t = float((gradient * direction).sum()), 1.0
    while shifted(P + t * direction) > shifted(P) + 1e-4 * t * slope:
        t /= 2
    return P + t * direction, t


@each("far", [None, 40.0])
def test_rows_go_as_far_as_armijos_rule_on_the_shifted_objective(rng: np.random.Generator, far: float | None) -> None:
    lengths = set()
    for _ in range(5):
        loss, P, Q = problem(rng)
        mean = None if far is None else torch.tensor(far * rng.standard_normal((M, K)))
        after = descend_left(loss, P, Q, mean=mean)
        expected, t = dense_step(loss, P, Q, mean)
        torch.testing.assert_close(after, expected, rtol=1e-6, atol=1e-8)
        lengths.add(t)
    assert len(lengths) > 1, "some steps must be full and some cut"
    assert min(lengths) < 1.0


def test_conjugate_gradients_stay_within_their_arrays(rng: np.random.Generator) -> None:
    """In Python, where an index beyond the array is an error; compiled code reads on in silence."""
    indptr, indices = np.array([0, 2, 3, 6]), np.array([0, 3, 1, 0, 2, 3], np.int32)
    Q, gradient, curvature = rng.normal(size=(4, 5)), rng.normal(size=(3, 5)), rng.random(6)
    found = np.empty((2, 3, 5))
    for solve, out in zip((als.solve_rows, als.solve_rows.py_func), found, strict=True):
        solve(0, 3, indptr, indices, curvature, Q, np.ones(5), np.ones(3), np.ones(3), gradient, out, 4, 1.0)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@each("solver", ["als", "ials++"])
@each("m", [3, 8])
def test_more_columns_than_the_data_have_and_no_penalty(solver: str, m: int) -> None:
    """Before, steps along rounding errors grew until the objective was nan."""
    pairs = np.tile(np.eye(2), (m, m))[: 2 * m, : m + 1] - np.eye(2 * m, m + 1)
    options = {"loss": "all-pairs", "solver": solver, "regularization": 0, "random_state": 0}
    model = nk.TwoTower(64, **options).fit(nk.Interactions.from_matrix(sp.csr_matrix(pairs)))
    np.testing.assert_allclose(model.left_embeddings_ @ model.right_embeddings_.T, pairs, atol=0.01)


@each("k", [8, 72])
def test_rows_are_descended_to_where_the_exact_solution_is(rng: np.random.Generator, k: int) -> None:
    """By conjugate gradients, in the tables' own basis again."""
    m, n = 60, 90
    pairs = sp.random(m, n, density=0.2, random_state=0, format="csr")
    prior = tuple(torch.tensor(rng.standard_normal((rows, k)) * np.linspace(1, 0.1, k) / k**0.5) for rows in (m, n))
    loss = AllPairsLoss(pairs, omega=0.05, prior=prior, regularization=0.05)
    P, Q = (X + 0.3 * torch.tensor(rng.standard_normal(X.shape)) / k**0.5 for X in prior)
    found, gram = descend_left(loss, P, Q), 0.05 * (Q.T @ Q) + 0.05 * torch.eye(k)
    exact, gradient = P.clone(), loss.gradient(P, Q)[0]
    for i in range(m):
        seen = Q[pairs.indices[pairs.indptr[i] : pairs.indptr[i + 1]]]
        exact[i] -= torch.linalg.solve(gram + (1 - 0.05) * seen.T @ seen, gradient[i])
    assert loss.value(found, Q) - loss.value(exact, Q) < 1e-3 * (loss.value(P, Q) - loss.value(exact, Q))
    torch.testing.assert_close(found, exact, rtol=0, atol=0.02 * float((exact - P).abs().max()))
