"""Sub-blocks: the mean over the cells of a partition is the whole: value, gradient and penalty."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nearkin as nk
from benchmarks.two_tower.sub_blocks import SubBlocks
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import ResidualTower, Side, zero_grad
from nearkin.quantization import IndexingLayer
from tests.embedding.two_tower.problems import observed, tower_pair

M, N = 12, 8  # divisible by the grid: cells of one size, so that the mean is the whole and not only on average


class Watch:
    """In an optimizer's place: adds up the gradients and moves nothing."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self.parameters, self.sums, self.count = parameters, [torch.zeros_like(p) for p in parameters], 0

    def step(self) -> None:
        self.count += 1
        for total, p in zip(self.sums, self.parameters, strict=True):
            total += p.grad


@pytest.mark.parametrize("grid", [1, 2, 4])
@pytest.mark.parametrize("loss_name", ["squared", "logistic"])
def test_the_mean_over_cells_is_the_whole(rng: np.random.Generator, grid: int, loss_name: str) -> None:
    """ESL, eq. 13 on sub-blocks; the left tower is a module on features, whose penalty falls on its embeddings."""
    pairs = observed(M, N, 0.4)
    options = {
        "a": rng.random(M),
        "b": rng.random(N),
        "prior": (rng.standard_normal((M, 2)), rng.standard_normal((N, 2))),
    }
    left = Side(torch.nn.Linear(5, 3), M, rng.standard_normal((M, 5)).astype(np.float32))
    table = torch.tensor(rng.standard_normal((N, 3)), dtype=torch.float32)
    right = Side(ResidualTower(N, 3, None, table), N, None)
    pair = tower_pair(left, right, pairs, (rng.random(M), rng.random(N)), loss_name, **options)
    solver = SubBlocks(grid=grid).begin(pair, AllPairs())
    loss = solver.loss
    watch = Watch(solver.parameters)
    solver.optimizers = [watch]
    value = solver.step()
    zero_grad(solver.parameters)
    whole = pair.value_and_gradient(loss, solver.scale)
    assert watch.count == grid**2
    assert value == pytest.approx(whole, rel=1e-5)
    with torch.no_grad():
        penalty = float(pair.penalty(*pair.embeddings())) * solver.scale
    assert penalty > 0.1 * whole, "a penalty that could be missed"
    for total, p in zip(watch.sums, solver.parameters, strict=True):
        torch.testing.assert_close(total / watch.count, p.grad, rtol=1e-4, atol=1e-5)


def test_records_have_the_distortion_of_an_index() -> None:
    pairs = nk.Interactions.from_pairs(*sp.random(40, 30, density=0.3, random_state=0).nonzero())
    solver = SubBlocks(max_iter=2, grid=2)
    model = nk.TwoTower(4, solver=solver, index=IndexingLayer(4, 2, 8, random_state=0), random_state=0).fit(pairs)
    assert np.isfinite([record["distortion"] for record in model.history_]).all()
