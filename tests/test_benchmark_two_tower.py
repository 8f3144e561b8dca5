"""What the table of rivals rests on: they learn, LightGCN's gradient, and how settings are chosen."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

import nearkin as nk
from benchmarks.two_tower.light_gcn import LAYERS, RIDGE, gradient, graph_of, light_gcn
from benchmarks.two_tower.linear_rivals import ease, graph_filter
from benchmarks.two_tower.rivals import RIVALS, Axis, Setting, climbed, fit_rival
from benchmarks.two_tower.sampled import SampledBCE
from nearkin.embedding import Adam


@pytest.mark.parametrize("label", RIVALS)
def test_every_rival_learns(label: str, grouped: tuple) -> None:
    train, test = grouped
    options = {name: axis.start for name, axis in RIVALS[label].axes.items()}
    epochs = 8 if "margin" in options else 4  # few negatives exceed a margin
    P, Q, _ = fit_rival(RIVALS[label], Setting(options, 0.1, epochs), train, 8, 0)
    assert nk.metrics.ranking_metrics(P, Q, test, seen=train, k=4)["recall@4"] > 0.8


def test_rivals_without_settings_learn(grouped: tuple) -> None:
    train, test = grouped
    light_gcn(train, 8, 0.03, 100, 0, seconds=0.01)  # compiles
    P, Q, _, passes = light_gcn(train, 8, 0.03, 100, 0, seconds=0.3)
    assert passes > 1
    lists = nk.metrics.recommend(P, Q, 4, seen=train)[1], ease(train, 4, 10.0), graph_filter(train, 4, (0.5, 0.5))
    for ranked in lists:
        assert nk.metrics.list_metrics(ranked, test, k=4)["recall@4"] > 0.8


def test_settings_climb_until_no_move_is_better() -> None:
    tried = []

    def judge(values: dict[str, float]) -> float:
        tried.append(tuple(values.values()))
        return -((values["a"] - 20) ** 2) - 100 * (values["b"] - 0.9) ** 2 - 10 * values["a"] * (values["b"] - 0.8) ** 2

    found = climbed({"a": Axis(1.0, 2.0), "b": Axis(0.2, 1.5, under=1.0)}, judge)
    assert found == {"a": 16.0, "b": 0.675}
    assert len(tried) == len(set(tried)), "every point is judged once"
    assert {(8.0, 0.675), (32.0, 0.675), (16.0, 0.45)} <= set(tried), "its neighbours were tried, 1.01 is out of bounds"


@pytest.fixture
def grouped() -> tuple[nk.Interactions, nk.Interactions]:
    """Training and test pairs of 120 lefts in four groups, which like six rights each."""
    lefts, rights = np.arange(120).repeat(6), np.tile(np.arange(6), 120) + 6 * (np.arange(120).repeat(6) % 4)
    keep = np.random.default_rng(0).random(len(lefts)) < 0.7
    train, test = (nk.Interactions.from_pairs(lefts[k], rights[k], left_ids=np.arange(120), right_ids=np.arange(24))
                   for k in (keep, ~keep))  # fmt: skip
    return train, test


def dense_average(pairs: nk.Interactions) -> torch.Tensor:
    """The matrix that averages a table over the graph's steps, from the definition, in float64."""
    X = (pairs.matrix().toarray() > 0).astype(float)
    A = np.block([[np.zeros((len(X), len(X))), X], [X.T, np.zeros((X.shape[1], X.shape[1]))]])
    scale = np.maximum(A.sum(1), 1) ** -0.5
    S = scale[:, None] * A * scale
    return torch.from_numpy(sum(np.linalg.matrix_power(S, layer) for layer in range(LAYERS + 1)) / (LAYERS + 1))


def test_lightgcns_gradient_is_that_of_its_loss(grouped: tuple, rng: np.random.Generator) -> None:
    train, _ = grouped
    part = rng.integers(len(train), size=50)
    numbers = np.stack([train.rows[part], 120 + train.indices[part], 120 + rng.integers(24, size=50)]).astype(np.int64)
    table = torch.from_numpy(rng.standard_normal((144, 8)).astype(np.float32)).requires_grad_()
    P, Q, N = (dense_average(train).float() @ table)[torch.from_numpy(numbers)]
    lengths = table[torch.from_numpy(numbers)].square().sum() / 2
    (softplus((P * (N - Q)).sum(1)).mean() + RIDGE * lengths / 50).backward()
    found = gradient(graph_of(train), table.detach().numpy(), numbers)
    torch.testing.assert_close(found, table.grad, rtol=0, atol=1e-2 * float(table.grad.abs().max()))


def test_a_rival_of_ones_own_learns(grouped: tuple, tmp_path: Path) -> None:
    """A loss that nearkin does not know: far above chance, and saved and loaded."""
    train, test = grouped
    solver = Adam(max_iter=20, learning_rate=0.05, batch_size=128)
    model = nk.TwoTower(6, loss=SampledBCE(), solver=solver, regularization=0.02, random_state=0).fit(train)
    assert model.evaluate(test, k=4)["recall@4"] > 0.5  # by chance .2
    model.save(tmp_path / "saved")
    loaded = nk.TwoTower.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.right_embeddings_, model.right_embeddings_)
    with pytest.raises(ValueError, match="a new row is solved for 'all-pairs' and 'cosine-softmax' only"):
        loaded.embed_left([[0, 1]])
