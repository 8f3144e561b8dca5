"""What the table of rivals rests on: their losses, the sparse EASE, and the reader of LightGCN's folders."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

import nearkin as nk
from benchmarks.two_tower.light_gcn import LAYERS, RIDGE, gradient, graph_of, light_gcn
from benchmarks.two_tower.linear_rivals import ease, graph_filter
from benchmarks.two_tower.peers import with_implicit
from benchmarks.two_tower.public import Setup
from benchmarks.two_tower.rivals import (
    RIVALS,
    Axis,
    Setting,
    climbed,
    fit_rival,
)
from benchmarks.two_tower.sampled import SampledBCE
from nearkin.embedding import Adam
from nearkin.embedding.baselines import sparse_ease
from tests.covering import each


def test_the_sparse_ease_is_ease_where_every_right_is_a_neighbour(rng: np.random.Generator) -> None:
    X = rng.random((60, 12)) < 0.5
    assert ((X.T.astype(int) @ X) > 0).all()
    pairs = nk.Interactions.from_pairs(*X.nonzero())
    sparse, dense = sparse_ease(pairs, 3, ridge=10.0)[1], ease(pairs, 3, 10.0)
    found = sparse >= 0  # a score below 0 is no recommendation
    np.testing.assert_array_equal(sparse[found], dense[found])
    assert found.mean() > 0.9


@each("powers", [(0.5, 0.5), (0.3, 0.1)])
def test_the_graph_filter_is_its_formula(powers: tuple[float, float], rng: np.random.Generator) -> None:
    X = (rng.random((40, 30)) < 0.2).astype(float)
    left, right = np.maximum(X.sum(1), 1), np.maximum(X.sum(0), 1)
    R = X / np.sqrt(np.outer(left, right))
    wanted = (X * right ** -powers[0]) @ (R.T @ R) * right ** powers[1]
    wanted[X > 0] = -np.inf
    pairs = nk.Interactions.from_pairs(*X.nonzero(), left_ids=np.arange(40), right_ids=np.arange(30))
    found = np.take_along_axis(wanted, graph_filter(pairs, 8, powers), axis=1)
    np.testing.assert_allclose(found, -np.sort(-wanted, axis=1)[:, :8], rtol=1e-5)


@pytest.mark.parametrize("label", RIVALS)
def test_every_rival_learns(label: str, grouped: tuple) -> None:
    train, test = grouped
    options = {name: axis.start for name, axis in RIVALS[label].axes.items()}
    epochs = 8 if "margin" in options else 4  # few negatives exceed a margin
    P, Q, _ = fit_rival(RIVALS[label], Setting(options, 0.1, epochs), train, 8, 0)
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


def test_lightgcn_learns(grouped: tuple) -> None:
    train, test = grouped
    light_gcn(train, 8, 0.03, 100, 0, seconds=0.01)  # compiles
    P, Q, _, passes = light_gcn(train, 8, 0.03, 100, 0, seconds=0.3)
    assert nk.metrics.ranking_metrics(P, Q, test, seen=train, k=4)["recall@4"] > 0.8
    assert passes > 1


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A set "toy" in LightGCN's form: 400 lefts in four groups, 300 rights, a fifth of the pairs judged."""
    rng = np.random.default_rng(0)
    lines: dict[str, list[str]] = {"train.txt": [], "test.txt": []}
    for left in range(400):
        rights = rng.choice(np.arange(left % 4, 300, 4), 15, replace=False)
        for name, part in (("train.txt", rights[:12]), ("test.txt", rights[12:])):
            lines[name].append(" ".join(map(str, [left, *part])))
    (tmp_path / "toy").mkdir()
    for name, written in lines.items():
        (tmp_path / "toy" / name).write_text("\n".join(written))
    return tmp_path


def test_a_rival_keeps_the_settings_of_its_row(toy: Path) -> None:
    """Of a row measured before nothing is chosen anew: `--again`."""
    chose = {"options": {"ridge": 3e-4}, "rate": 0.02, "epochs": 3}
    setup = Setup("toy", toy, known={"BPR": chose})
    row = setup.measured(setup.ways()["BPR"], 2)
    assert row["settings"] == chose
    assert row["seeds"] == 2


def test_a_peer_that_is_not_installed_is_left_out_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the pass over all rows ended at the first row of implicit."""
    lacking, having = tmp_path / "lacking", tmp_path / "having"
    for path, status in ((lacking, 1), (having, 0)):
        path.write_text(f"#!/bin/sh\necho No module named implicit >&2\nexit {status}\n")
        path.chmod(0o755)
    assert with_implicit(lacking) is None
    assert "No module named implicit" in capsys.readouterr().out
    assert with_implicit(having) == having
    assert with_implicit(None) is None


def test_a_rival_of_ones_own_learns(tmp_path: Path) -> None:
    """A loss that nearkin does not know: far above chance, and saved and loaded."""
    planted = nk.data.planted_interactions(100, 60, random_state=0).interactions
    pairs = nk.Interactions.from_pairs(planted.left_ids[planted.rows], planted.right_ids[planted.indices])
    parts = nk.data.split_random(pairs, random_state=0)
    solver = Adam(max_iter=6, learning_rate=0.02, batch_size=128)
    model = nk.TwoTower(6, loss=SampledBCE(), solver=solver, regularization=0.02, random_state=0)
    whole = model.fit(parts.train, validation=parts.valid)
    rng = np.random.default_rng(0)
    chance = nk.metrics.ranking_metrics(rng.normal(size=(100, 6)), rng.normal(size=(60, 6)), parts.test, k=20)
    assert whole.score(parts.test, k=20) > 1.5 * chance["ndcg@20"]
    whole.save(tmp_path / "saved")
    loaded = nk.TwoTower.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.right_embeddings_, whole.right_embeddings_)
    with pytest.raises(ValueError, match="a new row is solved for 'all-pairs' and 'cosine-softmax' only"):
        loaded.embed_left([parts.train.right_ids[:3]])
