"""Gradient solvers: the mean over the cells of a partition is the whole; the Gauss-Newton product is J^T G J, and on
linear towers alternating steps solve their block."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nearkin.embedding import AllPairs, GaussNewton
from nearkin.embedding.two_tower import gradient
from nearkin.embedding.two_tower.towers import ResidualTower, Side, TowerPair
from tests.covering import each
from tests.embedding.two_tower.problems import observed, tower_pair
from tests.embedding.two_tower.test_towers import side


def pair(rng: np.random.Generator, loss: str = "logistic", **options: object) -> TowerPair:
    right = Side(ResidualTower(11, 3, None, torch.tensor(rng.standard_normal((11, 3)), dtype=torch.float32)), 11, None)
    return tower_pair(side(rng), right, observed(23, 11), (0.3, 0.2), loss, **options)


@each("number", [0, 1])
def test_the_product_is_the_jacobian_around_the_dense_matrix(rng: np.random.Generator, number: int) -> None:
    towers = pair(rng)
    solver = GaussNewton().begin(towers, AllPairs())
    L = solver.loss
    point = L.at(*towers.embeddings())
    product = solver._matvec(point, number)
    size = sum(p.numel() for p in towers.sides[number].parameters().values())
    d = torch.tensor(rng.standard_normal((2, size)), dtype=torch.float32)
    one, other = (product(row) for row in d)
    assert float(one @ d[1]) == pytest.approx(float(other @ d[0]), rel=1e-3), "symmetric"
    assert float(one @ d[0]) > 0, "positive"
    h = 1e-2  # for the curvature of a convex loss in linear parameters, the Hessian is the Gauss-Newton matrix
    if number == 1:

        def slope(sign: float) -> torch.Tensor:
            with torch.no_grad():
                table = towers.right.tower.table
                table.add_(sign * h * d[0].reshape(table.shape))
            for p in towers.parameters():
                p.grad = None
            towers.value_and_gradient(L, solver.scale)
            with torch.no_grad():
                table.sub_(sign * h * d[0].reshape(table.shape))
            return table.grad.reshape(-1).clone()

        difference = (slope(1) - slope(-1)) / (2 * h)
        assert float((one - difference).norm()) <= 2e-3 * float(one.norm())


def test_one_alternating_step_solves_a_block_of_squares(rng: np.random.Generator) -> None:
    towers = pair(rng, "squared")
    solver = GaussNewton(cg_steps=40, damping=1e-9).begin(towers, AllPairs())
    L = solver.loss
    norms = []
    for _ in range(2):
        for p in towers.parameters():
            p.grad = None
        towers.value_and_gradient(L, solver.scale)
        norms.append(float(towers.right.tower.table.grad.norm()))
        solver._move(1)
    assert norms[1] <= 0.11 * norms[0], f"{norms}: CG ends at a tenth of the gradient, and a square is all there is"


def test_products_with_random_signs_estimate_the_diagonal(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient, "DEFAULTS", replace(gradient.DEFAULTS, probes=1000, floor=0.5))
    B = torch.tensor(rng.standard_normal((30, 40)) * np.arange(1, 31)[:, None] ** 0.5, dtype=torch.float32)
    exact = (B @ B.T).diagonal()
    found = GaussNewton().begin(pair(rng), AllPairs())._diagonal((B @ B.T).matmul, 30)
    torch.testing.assert_close(found, exact + 0.5 * exact.mean(), rtol=0.2, atol=0.1 * float(exact.mean()))


@each("number", [0, 1])
def test_the_product_holds_the_ridge_of_feature_towers(rng: np.random.Generator, number: int) -> None:
    """For linear towers and squares J^T G J + ridge is the Hessian: differences of the gradient."""
    sides = []
    for m in (23, 11):
        features = rng.standard_normal((m, 5)).astype(np.float32)
        sides.append(Side(torch.nn.Linear(5, 3), m, features))
    towers = tower_pair(sides[0], sides[1], observed(23, 11), (4.0, 3.0))
    solver = GaussNewton().begin(towers, AllPairs())
    L = solver.loss
    weight = towers.sides[number].tower.weight
    d = torch.tensor(rng.standard_normal(18), dtype=torch.float32)
    found = solver._matvec(L.at(*towers.embeddings()), number)(d)[:15]

    def gradient(h: float) -> torch.Tensor:
        for p in towers.parameters():
            p.grad = None
        with torch.no_grad():
            weight.add_(h * d[:15].reshape(3, 5))
            towers.sides[number].tower.bias.add_(h * d[15:])
        towers.value_and_gradient(L, solver.scale)
        return weight.grad.reshape(-1).clone()

    there = gradient(1.0)
    torch.testing.assert_close(found, (there - gradient(-2.0)) / 2, rtol=1e-3, atol=1e-4)


def test_steps_do_not_depend_on_the_unit_of_the_weights(rng: np.random.Generator) -> None:
    """Objective and damping are those of a mean observed pair: all weights and penalties eight times change nothing.
    Eight is exact: conjugate gradients amplify rounding."""
    found = []
    for unit in (1.0, 8.0):
        towers = pair(np.random.default_rng(3), weights=np.full(len(observed(23, 11)), unit), omega=0.3 * unit)
        towers.ridge = tuple(unit * r for r in towers.ridge)
        solver = GaussNewton().begin(towers, AllPairs())
        solver.pair.ridge = towers.ridge
        found.append([solver.step() for _ in range(3)])
    one, other = np.array(found)
    np.testing.assert_allclose(one, other, rtol=1e-5)
