"""Sampled losses against their formulas, pair by pair, and SOGram against the all-pairs loss."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nearkin as nk
from nearkin.embedding import InBatchHinge, InBatchSoftmax, SampledBCE, SOGram
from nearkin.embedding.two_tower.baselines import MiniBatches, PairBatch
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import ResidualTower, Side, TowerPair
from tests.embedding.two_tower.problems import observed, tower_pair

M, N, COPIES = 6, 5, 20_000


def towers(rng: np.random.Generator, pairs: nk.Interactions, **options: object) -> TowerPair:
    tables = [torch.tensor(rng.standard_normal((rows, 3)), dtype=torch.float32) for rows in (M, N)]
    sides = [Side(ResidualTower(len(table), 3, None, table), len(table), None) for table in tables]
    return tower_pair(*sides, pairs, (0.0, 0.0), **options)


def test_sogram_on_all_rows_is_the_all_pairs_loss(rng: np.random.Generator) -> None:
    """Rows are drawn with replacement: 1e5 draws of 6 and 5 rows leave half a per cent of noise."""
    pairs = observed(M, N, 0.5)
    prior = rng.standard_normal((M, 2)), rng.standard_normal((N, 2))
    pair = towers(rng, pairs, omega=2.0, a=1 + rng.random(M), b=1 + rng.random(N), prior=prior)
    rows, columns = (torch.from_numpy(x).long().repeat(COPIES) for x in (pairs.rows, pairs.indices))
    P, Q = pair.left.embed_rows(rows), pair.right.embed_rows(columns)
    loss = pair.objective.loss(0.0)
    solver = SOGram().begin(pair, AllPairs())
    found = solver.batch_loss(loss)(PairBatch(rows, columns, torch.arange(len(pairs)).repeat(COPIES), P, Q, pair))
    found.backward()
    exact = [X.detach() for X in pair.embeddings()]
    assert float(found.detach()) == pytest.approx(loss.value(*exact) / loss.observed_weight, rel=0.02)
    for side, wanted in zip(pair.sides, loss.gradient(*exact), strict=True):
        wanted = wanted / loss.observed_weight
        error = float((side.tower.table.grad - wanted).norm() / wanted.norm())
        assert error < 0.02, f"{error:.3f} of the gradient"


def test_the_gramians_are_averaged_over_batches(rng: np.random.Generator) -> None:
    sogram = SOGram().begin(towers(rng, nk.Interactions.from_matrix(sp.eye(M, N, format="csr"))), AllPairs())
    one, two = torch.eye(3), 3 * torch.eye(3)
    sogram._average(one, one)
    torch.testing.assert_close(sogram.grams[0], one)  # the first batch is all there is
    sogram._average(two, one)
    torch.testing.assert_close(sogram.grams[0], 0.9 * one + 0.1 * two)
    torch.testing.assert_close(sogram.grams[1], one)


def test_an_epoch_counts_the_penalty_of_a_row_once(rng: np.random.Generator) -> None:
    """Batches of all pairs with loss 0: the mean of their penalties is that of all rows with a pair, a pair."""
    pairs = observed(M, N, 0.4)
    sides = [Side(ResidualTower(n, 3, None, torch.tensor(rng.random((n, 3)))), n, None) for n in (M, N)]
    ridge = rng.random(M), rng.random(N)
    pair = tower_pair(*sides, pairs, ridge)
    batches = MiniBatches(pair, lambda batch: 0.0 * batch.P.sum(), batch_size=3, learning_rate=1e-12)
    used = [np.bincount(x, minlength=n) > 0 for x, n in ((pairs.rows, M), (pairs.indices, N))]
    wanted = sum(
        0.5 * (r[u] * side.tower.table.detach().numpy()[u].T ** 2).sum()
        for side, r, u in zip(sides, ridge, used, strict=True)
    )
    assert batches.epoch() == pytest.approx(wanted / len(pairs), rel=1e-5)


PAIRS = nk.Interactions.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 2, 0, 1])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 3.0])
OBJECTIVE = replace(AllPairs().objective(PAIRS), weights=WEIGHTS)


def batch() -> PairBatch:
    """The pairs 0, 3, 4 and 5: rights 0, 2, 0 and 1, of which 0 occurs twice."""
    draw = torch.Generator().manual_seed(0)
    P, Q = (torch.randn(4, 3, generator=draw) for _ in range(2))
    places = torch.tensor([0, 3, 4, 5])
    return PairBatch(torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2, 0, 1]), places, P, Q, None)


def test_in_batch_softmax_takes_the_log_of_the_frequency_off_every_score() -> None:
    b = batch()
    found = InBatchSoftmax().batch_loss(OBJECTIVE)(b)
    frequency, losses = np.array([3, 2, 1]) / 6, []
    for i in range(4):
        scores = {
            j: float(b.P[i] @ b.Q[j]) - math.log(frequency[b.columns[j]])
            for j in range(4)
            if j == i or b.columns[j] != b.columns[i]
        }
        losses.append(math.log(sum(math.exp(s) for s in scores.values())) - scores[i])
    assert float(found) == pytest.approx(np.mean(WEIGHTS[b.places] * losses), rel=1e-5)


def test_in_batch_hinge_averages_the_other_rights() -> None:
    b = batch()
    found = InBatchHinge().batch_loss(OBJECTIVE)(b)
    P, Q = (M.numpy() / np.linalg.norm(M.numpy(), axis=1, keepdims=True) for M in (b.P, b.Q))
    losses = []
    for i in range(4):
        others = [j for j in range(4) if b.columns[j] != b.columns[i]]
        losses.append(np.mean([max(0.0, 0.1 - P[i] @ Q[i] + P[i] @ Q[j]) for j in others]))
    assert float(found) == pytest.approx(np.mean(WEIGHTS[b.places] * losses), rel=1e-5)


def test_a_batch_of_one_right_has_no_negatives() -> None:
    b = batch()._replace(columns=torch.tensor([0, 0, 0, 0]))
    assert float(InBatchHinge().batch_loss(OBJECTIVE)(b)) == 0.0


def test_sampled_bce_draws_rights_with_a_pair_or_without_features(rng: np.random.Generator) -> None:
    objective = replace(AllPairs().objective(PAIRS), b=np.array([0.0, 1.0, 0.0]), weights=WEIGHTS)
    sides = [Side(ResidualTower(n, 3, None, torch.tensor(rng.random((n, 3)))), n, None) for n in (4, 3)]
    pair = TowerPair(*sides, objective, 0.0, torch.Generator().manual_seed(0))
    b = batch()._replace(pair=pair)
    found = SampledBCE(negatives=2).batch_loss(objective)(b).detach()
    positive = np.log1p(np.exp(-(b.P * b.Q).sum(1).numpy())) * WEIGHTS[b.places]
    negative = np.log1p(np.exp((b.P @ pair.right.tower.table.detach()[1].float()).numpy()))
    assert float(found) == pytest.approx(positive.mean() + 2 * negative.mean(), rel=1e-5)
