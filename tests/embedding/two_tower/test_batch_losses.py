"""The losses of a batch against their formulas, pair by pair."""

import math

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding.two_tower.batch_losses.batch_loss import PairBatch
from nearkin.embedding.two_tower.batch_losses.in_batch_hinge import HingeOfBatch
from nearkin.embedding.two_tower.batch_losses.in_batch_softmax import SoftmaxOfBatch

PAIRS = nk.Interactions.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 2, 0, 1])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 3.0])


def batch() -> PairBatch:
    """The pairs 0, 3, 4 and 5: rights 0, 2, 0 and 1, of which 0 stands twice."""
    draw = torch.Generator().manual_seed(0)
    P, Q = (torch.randn(4, 3, generator=draw) for _ in range(2))
    places = torch.tensor([0, 3, 4, 5])
    return PairBatch(torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2, 0, 1]), places, P, Q)


def test_in_batch_softmax_takes_the_log_of_the_frequency_off_every_score() -> None:
    b = batch()
    found = SoftmaxOfBatch(PAIRS, WEIGHTS)(b, None, torch.Generator())
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
    found = HingeOfBatch(torch.from_numpy(WEIGHTS), 0.1)(b, None, torch.Generator())
    P, Q = (M.numpy() / np.linalg.norm(M.numpy(), axis=1, keepdims=True) for M in (b.P, b.Q))
    losses = []
    for i in range(4):
        others = [j for j in range(4) if b.columns[j] != b.columns[i]]
        losses.append(np.mean([max(0.0, 0.1 - P[i] @ Q[i] + P[i] @ Q[j]) for j in others]))
    assert float(found) == pytest.approx(np.mean(WEIGHTS[b.places] * losses), rel=1e-5)
