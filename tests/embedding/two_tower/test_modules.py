"""Towers of the user's own, an index on the right side, priors and labels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, GaussNewton
from tests.covering import each


@pytest.fixture(scope="module")
def parts() -> nk.data.Parts:
    return nk.data.split_random(nk.data.planted_interactions(100, 60, random_state=0).interactions, random_state=0)


class Rounding(nn.Module):
    """An index of the simplest kind: a straight-through rounding to a grid of `step`; its distortion has a weight."""

    def __init__(self, step: float, weight: float = 1.0) -> None:
        super().__init__()
        self.step, self.weight, self.calls = step, weight, 0

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.calls += 1
        rounded = torch.round(x / self.step) * self.step
        return x + (rounded - x).detach(), self.weight * (rounded - x).square().sum(1).mean()


def tower() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 6))


@each("solver", [Adam(max_iter=15, learning_rate=0.02), GaussNewton(max_iter=5)])
def test_modules_of_the_user_are_trained_on_features(parts: nk.data.Parts, solver: object, tmp_path: Path) -> None:
    left = tower()
    before = [p.clone() for p in left.parameters()]
    model = nk.TwoTower(6, left=left, right=tower(), solver=solver, regularization=0.002, random_state=0)
    model.fit(parts.train, validation=parts.valid)
    assert model.history_[-1]["objective"] < 0.95 * model.history_[0]["objective"]
    assert all(torch.equal(*pair) for pair in zip(before, left.parameters(), strict=True)), "the module is copied"
    x = parts.train.left_features[:4]
    np.testing.assert_allclose(model.transform_left(x), model.left_embeddings_[:4], rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m", left=tower(), right=tower())
    np.testing.assert_allclose(loaded.transform_left(x), model.transform_left(x), rtol=1e-6)
    with pytest.raises(ValueError, match="fitted with your own left tower; load it with left="):
        nk.TwoTower.load(tmp_path / "m")


ON_A_GPU = {
    "adam": {"solver": Adam(max_iter=5)},
    "one default side": {"solver": Adam(max_iter=5), "right": None},
    "batches": {"loss": "in-batch-softmax", "solver": Adam(max_iter=2, batch_size=256)},
    "gauss-newton": {"solver": GaussNewton(max_iter=2)},
    "index": {"solver": Adam(max_iter=5), "index": Rounding(0.01)},
    "layer": {"solver": Adam(max_iter=5), "index": nk.quantization.IndexingLayer(6, 2, 8, buffer_size=64)},
}
ON_A_GPU["layer, batches"] = ON_A_GPU["batches"] | {"index": nk.quantization.IndexingLayer(6, 2, 8, buffer_size=64)}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")
@pytest.mark.parametrize("name", ON_A_GPU)
def test_modules_on_a_gpu_train_there_as_on_the_cpu(parts: nk.data.Parts, name: str, tmp_path: Path) -> None:
    objectives = {}
    for device in ("cpu", "cuda"):
        options = {"left": tower().to(device), "right": tower().to(device), "random_state": 0} | ON_A_GPU[name]
        model = nk.TwoTower(6, **options).fit(parts.train)
        objectives[device] = [record["objective"] for record in model.history_]
        model.partial_fit(parts.valid, max_iter=1)
        x = parts.train.left_features[:4]
        np.testing.assert_allclose(model.transform_left(x), model.left_encoder_(torch.from_numpy(x)).detach())
        model.save(tmp_path / f"model-{device}")
    apart = 0.1 if "layer" in name else 0.02  # k-means begins from vectors that are rounded otherwise
    np.testing.assert_allclose(objectives["cuda"], objectives["cpu"], rtol=apart)


@each("way", [{"solver": Adam(max_iter=6)}, {"loss": "in-batch-softmax", "solver": Adam(max_iter=6, batch_size=128)}])
def test_the_right_side_is_trained_through_an_index(parts: nk.data.Parts, way: dict) -> None:
    index = Rounding(0.25)
    found = {}
    for weight in (0.0, 10.0):
        model = nk.TwoTower(6, index=Rounding(0.25, weight), regularization=0.02, random_state=0, **way)
        model.fit(parts.train)
        found[weight] = float(Rounding(0.25)(torch.from_numpy(model.right_embeddings_))[1])
    assert index.calls == 0, "the given module is copied"
    assert model.index_.calls > 0
    assert found[10.0] < found[0.0], f"distortion by its weight: {found}"


def test_labels_and_priors_are_fitted(parts: nk.data.Parts) -> None:
    """With labels -1 and +1 on all pairs but a prior of 3, observed scores approach the labels, the others 3."""
    pairs = nk.Interactions.from_pairs(
        [0, 0, 1, 1], [0, 1, 0, 1], [2.0, 1.0, 1.0, 2.0], left_ids=range(3), right_ids=range(3)
    )
    loss = AllPairs(labels="weights", prior=3.0, omega=1.0)
    solver = ALS(max_iter=120, block_size=16)
    model = nk.TwoTower(3, loss=loss, regularization=1e-6, solver=solver, random_state=0).fit(pairs)
    Z = model.left_embeddings_ @ model.right_embeddings_.T
    np.testing.assert_allclose(Z, [[2, 1, 3], [1, 2, 3], [3, 3, 3]], atol=0.05)
