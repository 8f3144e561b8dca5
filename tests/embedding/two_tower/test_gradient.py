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
@each("loss", ["squared", "logistic"])
def test_the_product_is_the_hessian_of_linear_towers_with_its_ridge(
    rng: np.random.Generator, loss: str, number: int
) -> None:
    """J^T G J + ridge: differences of the gradient."""
    features = [rng.standard_normal((m, 5)).astype(np.float32) for m in (23, 11)]
    sides = [Side(torch.nn.Linear(5, 3), len(X), X) for X in features]
    towers = tower_pair(*sides, observed(23, 11), (4.0, 3.0), loss)
    solver = GaussNewton().begin(towers, AllPairs())
    L, tower = solver.loss, towers.sides[number].tower
    d = 0.01 * torch.tensor(rng.standard_normal(18), dtype=torch.float32)
    found = solver._matvec(L.at(*towers.embeddings()), number)(d)

    def gradient(h: float) -> torch.Tensor:
        for p in towers.parameters():
            p.grad = None
        with torch.no_grad():
            tower.weight.add_(h * d[:15].reshape(3, 5))
            tower.bias.add_(h * d[15:])
        towers.value_and_gradient(L, solver.scale)
        return torch.cat([tower.weight.grad.reshape(-1), tower.bias.grad])

    there = gradient(1.0)
    difference = (there - gradient(-2.0)) / 2
    assert float((found - difference).norm()) <= 2e-3 * float(found.norm())


@each("number", [0, 1])
def test_the_product_of_deep_towers_is_symmetric_and_positive(rng: np.random.Generator, number: int) -> None:
    towers = pair(rng)
    solver = GaussNewton().begin(towers, AllPairs())
    product = solver._matvec(solver.loss.at(*towers.embeddings()), number)
    size = sum(p.numel() for p in towers.sides[number].parameters().values())
    one, other = torch.tensor(rng.standard_normal((2, size)), dtype=torch.float32)
    assert float(product(one) @ other) == pytest.approx(float(product(other) @ one), rel=1e-3)
    assert float(product(one) @ one) > 0


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
