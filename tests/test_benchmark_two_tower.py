"""What the table of rivals rests on: their losses, the sparse EASE, and the reader of LightGCN's folders."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import nearkin as nk
from benchmarks.two_tower.choosing import Axis, Setting, climbed
from benchmarks.two_tower.linear_rivals import ease
from benchmarks.two_tower.public import read_public
from benchmarks.two_tower.rivals import RIVALS, Batch, fit_rival, in_batch_softmax, uniform_softmax


@pytest.fixture
def batch() -> Batch:
    """Four lefts with nine pairs; every right of the batch is drawn as a negative in batch."""
    generator = torch.Generator().manual_seed(0)
    P, table = (torch.randn(n, 5, generator=generator) for n in (4, 7))
    at, columns = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 3]), torch.tensor([0, 2, 1, 2, 6, 5, 0, 3, 4])
    frequency = torch.tensor([0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1])
    N = torch.randn(9, 5, generator=generator)
    return Batch(P, table[columns], N, at, columns, frequency[columns].log())


def test_uniform_softmax_is_the_mean_over_the_pairs(batch: Batch) -> None:
    own = (batch.P[batch.at] * batch.Q).sum(1, keepdim=True)
    logits = torch.cat([own, batch.P[batch.at] @ batch.N.T], 1) / 0.5
    expected = cross_entropy(logits, torch.zeros(len(own), dtype=torch.long))
    torch.testing.assert_close(uniform_softmax(batch, 0.5), expected)


def test_in_batch_softmax_leaves_out_a_lefts_own_rights(batch: Batch) -> None:
    losses = []
    for e, (left, right) in enumerate(zip(batch.at.tolist(), batch.columns.tolist(), strict=True)):
        mine = set(batch.columns[batch.at == left].tolist())
        logits = (batch.P[left] @ batch.Q.T) / 0.5 - batch.log_frequency
        others = [i for i, column in enumerate(batch.columns.tolist()) if column not in mine]
        losses.append(torch.logsumexp(logits[[e, *others]], 0) - logits[e])
        assert right in mine
    torch.testing.assert_close(in_batch_softmax(batch, 0.5), torch.stack(losses).mean())


def test_the_sparse_ease_is_ease_where_every_right_is_a_neighbour(rng: np.random.Generator) -> None:
    X = rng.random((60, 12)) < 0.5
    assert ((X.T.astype(int) @ X) > 0).all()
    pairs = nk.Interactions.from_pairs(*X.nonzero())
    sparse, dense = nk.embedding.sparse_ease(pairs, 3, ridge=10.0)[1], ease(pairs, 3, 10.0)
    found = sparse >= 0  # a score below 0 is no recommendation
    np.testing.assert_array_equal(sparse[found], dense[found])
    assert found.mean() > 0.9


@pytest.mark.parametrize("label", RIVALS)
def test_every_rival_learns(label: str) -> None:
    lefts, rights = np.arange(120).repeat(6), np.tile(np.arange(6), 120) + 6 * (np.arange(120).repeat(6) % 4)
    keep = np.random.default_rng(0).random(len(lefts)) < 0.7
    train, test = (nk.Interactions.from_pairs(lefts[k], rights[k], left_ids=np.arange(120), right_ids=np.arange(24))
                   for k in (keep, ~keep))  # fmt: skip
    options = {name: axis.start for name, axis in RIVALS[label].axes.items()}
    P, Q, _ = fit_rival(RIVALS[label], Setting(options, 0.03, 20), train, 8, 0)
    assert nk.metrics.ranking_metrics(P, Q, test, seen=train, k=4)["recall@4"] > 0.8


def test_settings_climb_until_no_move_is_better() -> None:
    tried = []

    def judge(values: dict[str, float]) -> float:
        tried.append(tuple(values.values()))
        return -((values["a"] - 20) ** 2) - 100 * (values["b"] - 0.9) ** 2 - 10 * values["a"] * (values["b"] - 0.8) ** 2

    found = climbed({"a": Axis(1.0, 2.0), "b": Axis(0.2, 1.5, under=1.0)}, judge)
    assert found == {"a": 16.0, "b": 0.675}
    assert len(tried) == len(set(tried)), "every point is judged once"
    assert {(8.0, 0.675), (32.0, 0.675), (16.0, 0.45)} <= set(tried), "its neighbours were tried, 1.01 is out of bounds"


def test_a_folder_as_lightgcn_has_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.txt").write_text("0 3 5\n1 5\n2\n")
    (tmp_path / "toy" / "test.txt").write_text("0 4\n1 3 4\n")
    parts = read_public("toy", tmp_path, 0)
    assert (len(parts.train), len(parts.test), parts.train.shape) == (3, 3, (2, 3))
