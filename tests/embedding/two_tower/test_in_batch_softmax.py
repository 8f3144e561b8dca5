"""The softmax among the rights of a batch against its formula, pair by pair, and the penalty of a row in batches."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding import InBatchSoftmax
from nearkin.embedding.two_tower.in_batch_softmax import MiniBatches, PairBatch
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import ResidualTower, Side
from tests.embedding.two_tower.problems import observed, tower_pair

M, N = 6, 5


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
