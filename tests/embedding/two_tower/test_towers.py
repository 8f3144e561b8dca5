"""Towers: chunks change nothing, sparse and dense features agree, and J, J^T are those of autograd."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin.embedding.two_tower import towers
from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side
from tests.covering import each


def side(rng: np.random.Generator, sparse: bool = False) -> Side:
    features = rng.standard_normal((23, 5)).astype(np.float32)
    features[rng.random((23, 5)) < 0.5] = 0
    branch = FeatureBranch(5, 3, (7,), torch.Generator().manual_seed(0))
    torch.nn.init.normal_(branch.last.weight, generator=torch.Generator().manual_seed(1))
    given = sp.csr_matrix(features) if sparse else features
    branch.fit_scale(given)
    table = torch.tensor(rng.standard_normal((23, 3)), dtype=torch.float32)
    return Side(ResidualTower(23, 3, branch, table), 23, given)


@each("sparse", [False, True])
def test_chunks_change_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    whole, U = side(rng, sparse), torch.tensor(rng.standard_normal((23, 3)), dtype=torch.float32)
    expected = whole.embed(keep_graph=True)
    whole.pull_back(U)
    gradients = {name: p.grad.clone() for name, p in whole.parameters().items()}
    pushed = None if sparse else whole.push_forward(gradients)
    monkeypatch.setattr(towers, "CHUNK", 4)
    torch.testing.assert_close(whole.embed(), expected)
    for p in whole.parameters().values():
        p.grad = None
    whole.pull_back(U)
    for name, p in whole.parameters().items():
        torch.testing.assert_close(p.grad, gradients[name], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(whole.pulled_back(U)[name], gradients[name], rtol=1e-4, atol=1e-5)
    if not sparse:
        torch.testing.assert_close(whole.push_forward(gradients), pushed)


def test_push_forward_and_pull_back_are_adjoint(rng: np.random.Generator) -> None:
    one = side(rng)
    U = torch.tensor(rng.standard_normal((23, 3)), dtype=torch.float32)
    direction = {
        name: torch.randn(p.shape, generator=torch.Generator().manual_seed(2)) for name, p in one.parameters().items()
    }
    pulled = one.pulled_back(U)
    left = float((one.push_forward(direction) * U).sum())
    right = float(sum((pulled[name] * direction[name]).sum() for name in pulled))
    assert left == pytest.approx(right, rel=1e-4)


@each("most", [0, 5])
def test_sparse_features_give_what_the_same_dense_ones_give(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(towers, "DIRECT", most)
    one = side(rng, sparse=True)
    assert isinstance(one.tower, ResidualTower)
    assert one.tower.branch is not None
    dense = torch.from_numpy(one.features.toarray())
    torch.testing.assert_close(one.tower(slice(0, 23), dense), one.embed(), rtol=1e-5, atol=1e-6)


def test_modules_of_the_user_get_features_or_row_numbers() -> None:
    features = np.eye(4, 3, dtype=np.float32)
    linear = torch.nn.Linear(3, 2)
    torch.testing.assert_close(Side(linear, 4, features).embed(), linear(torch.from_numpy(features)))
    table = torch.nn.Embedding(4, 2)
    torch.testing.assert_close(Side(table, 4, None).embed(), table.weight)


def test_a_branch_starts_at_zero_and_scales_its_inputs(rng: np.random.Generator) -> None:
    branch = FeatureBranch(2, 3, (8,), torch.Generator().manual_seed(0))
    x = (100 + 5 * rng.standard_normal((50, 2))).astype(np.float32)
    branch.fit_scale(x)
    assert branch(torch.from_numpy(x)).abs().max() == 0
    assert 0.1 < branch.hidden(torch.from_numpy(x)).std() < 2


DEVICES = ["cpu", "meta", *["cuda"] * torch.cuda.is_available()]


@each("device", DEVICES)  # a tensor on "meta" has no values, and what mixes devices is an error there
@each("bare", [False, True])
def test_a_side_works_where_its_tower_is(rng: np.random.Generator, device: str, bare: bool) -> None:
    one = side(rng)
    if bare:
        one.tower = torch.nn.Linear(5, 3)
    expected, direction = one.embed(), {name: torch.ones_like(p) for name, p in one.parameters().items()}
    pushed = one.push_forward(direction)
    one.tower.to(device)
    direction = {name: value.to(device) for name, value in direction.items()}
    rows = torch.tensor([4, 0, 4])
    found = {"embed": one.embed(keep_graph=True), "rows": one.embed_rows(rows), "push": one.push_forward(direction)}
    one.pull_back(torch.ones(23, 3, device=device))
    gradients = [p.grad for p in one.parameters().values()]
    assert {value.device.type for value in [*found.values(), *gradients]} == {device}
    if device != "meta":
        torch.testing.assert_close(found["embed"].cpu(), expected)
        torch.testing.assert_close(found["rows"].detach().cpu(), expected[rows])
        torch.testing.assert_close(found["push"].cpu(), pushed)
