"""SOGram: on a batch of all rows, value and gradient are those of the all-pairs loss a pair."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding.all_pairs import AllPairsLoss
from nearkin.embedding.two_tower.batch_losses.batch_loss import PairBatch
from nearkin.embedding.two_tower.solvers.sogram import RunningGramians
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.towers import ResidualTower, Side

M, N, COPIES = 6, 5, 20_000


@pytest.fixture
def towers(rng: np.random.Generator) -> TowerPair:
    tables = [torch.tensor(rng.standard_normal((rows, 3)), dtype=torch.float32) for rows in (M, N)]
    sides = [Side(ResidualTower(len(table), 3, None, table), len(table), None) for table in tables]
    return TowerPair(*sides, ridge=(torch.zeros(M, 1), torch.zeros(N, 1)))


def test_value_and_gradient_of_all_rows_are_the_all_pairs_ones(rng: np.random.Generator, towers: TowerPair) -> None:
    """Rows are drawn with replacement: 1e5 draws of 6 and 5 rows leave half a per cent of noise."""
    observed = sp.random(M, N, density=0.5, random_state=0, format="csr")
    prior = rng.standard_normal((M, 2)), rng.standard_normal((N, 2))
    loss = AllPairsLoss(observed, omega=2.0, a=1 + rng.random(M), b=1 + rng.random(N), prior=prior)
    rows, columns = (torch.from_numpy(x).long().repeat(COPIES) for x in observed.nonzero())
    P, Q = towers.left.embed_rows(rows), towers.right.embed_rows(columns)
    batch = PairBatch(rows, columns, torch.arange(observed.nnz).repeat(COPIES), P, Q)
    found = RunningGramians(loss)(batch, towers, torch.Generator().manual_seed(0))
    found.backward()
    exact = [X.detach() for X in towers.embeddings()]
    assert float(found.detach()) == pytest.approx(loss.value(*exact) / loss.observed_weight, rel=0.02)
    for side, wanted in zip(towers.sides, loss.gradient(*exact), strict=True):
        wanted = wanted / loss.observed_weight
        error = float((side.tower.table.grad - wanted).norm() / wanted.norm())
        assert error < 0.02, f"{error:.3f} of the gradient"


def test_the_gramians_are_averaged_over_batches(towers: TowerPair) -> None:
    sogram = RunningGramians(AllPairsLoss(sp.eye(M, N, format="csr"), omega=1.0))
    one, two = torch.eye(3), 3 * torch.eye(3)
    sogram._average(one, one)
    torch.testing.assert_close(sogram.grams[0], one)  # the first batch is all there is
    sogram._average(two, one)
    torch.testing.assert_close(sogram.grams[0], 0.9 * one + 0.1 * two)
    torch.testing.assert_close(sogram.grams[1], one)
