"""The averages of the indexing layer where they lie are those on the host; no number is read from a device."""

import copy
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from nearkin.linalg.haar import haar_orthogonal
from nearkin.quantization import IndexingLayer
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.layer.centroids import LayerCentroids
from nearkin.quantization.layer.layer import CHECK_EVERY
from nearkin.quantization.product import DEFAULTS
from tests.covering import covering

M, K, D = 3, 8, 12
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")),
]
each_device = pytest.mark.parametrize("device", DEVICES)


def draw(n: int = 50, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(K - 2, (n, M), generator=generator)  # two centroids are dead
    return torch.randn(n, D, generator=generator), codes


@each_device
def test_averages_fade_and_give_the_centroids_of_their_sums(device: str) -> None:
    R = haar_orthogonal(D, D, random_state=0)
    layer = LayerCentroids((M, K, D // M), by_gradient=False, horizon=120).to(device)
    host = ClusterSums(M, K, D)
    for seed in range(4):
        X, codes = draw(seed=seed)
        assert layer.observe(X.to(device), codes.to(device), R.to(device)) is None
        host.decay(1 - 50 / 120).update(X.numpy(), codes.numpy())
    np.testing.assert_allclose(layer.sums.cpu(), host.sums, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.counts.cpu(), host.counts)
    wanted = host.centroids(R.numpy(), DEFAULTS.dead * host.counts[0].sum() / K)
    np.testing.assert_allclose(layer.codebooks.detach().cpu(), wanted, rtol=1e-4, atol=1e-5)


@each_device
def test_a_dead_centroid_that_learns_by_gradient_moves_and_gets_time(device: str) -> None:
    layer = LayerCentroids((M, K, D // M), by_gradient=True, horizon=120).to(device)
    layer.set(torch.randn(M, K, D // M, generator=torch.Generator().manual_seed(1)).numpy())
    before = layer.codebooks.detach().cpu().clone()
    X, codes = draw()
    layer.observe(X.to(device), codes.to(device), torch.eye(D, device=device))
    after = layer.codebooks.detach().cpu()
    torch.testing.assert_close(after[:, : K - 2], before[:, : K - 2])
    assert not torch.isclose(after[:, K - 2 :], before[:, K - 2 :]).all(dim=2).any()
    assert (layer.counts > 0).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there; on the CPU test_layer.py does it")
def test_the_layer_trains_on_a_device() -> None:
    for rotation, n_lists in product(("givens-random", "cayley", "frozen"), (0, 4)):
        layer = IndexingLayer(D, M, K, n_lists, rotation, buffer_size=64, max_iter=2).cuda()
        for step in range(5):
            x = torch.randn(64, D, generator=torch.Generator().manual_seed(step)).cuda().requires_grad_()
            T, distortion = layer(x)
            (T.sum() + distortion).backward()
            assert T.device.type == x.grad.device.type == "cuda"
        assert 0 < float(distortion.detach()) < D, (rotation, n_lists)


READING = ("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__")


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Takes every tensor for one on a device, and once called, makes it an error to read a number."""
    for module in ("centroids", "layer"):
        monkeypatch.setattr(f"nearkin.quantization.layer.{module}.on_host", lambda tensor: False)

    def refuse(*args: object) -> None:
        raise AssertionError("a number was read")

    return lambda: [monkeypatch.setattr(Tensor, name, refuse) for name in READING] and None


def started(rotation: str, centroids: str, n_lists: int) -> IndexingLayer:
    layer = IndexingLayer(D, M, K, n_lists, rotation, centroids=centroids, buffer_size=64, max_iter=2)
    layer(torch.randn(64, D, generator=torch.Generator().manual_seed(0)))
    return layer


def stepped(layer: IndexingLayer) -> list[Tensor]:
    x = torch.randn(40, D, generator=torch.Generator().manual_seed(1)).requires_grad_()
    T, distortion = layer(x)
    (T.sum() + distortion).backward()
    return [x.grad, T.detach(), *(p.grad for p in layer.parameters() if p.grad is not None), *layer.buffers()]


@pytest.mark.parametrize(
    ("rotation", "centroids", "n_lists"),
    covering(["givens-random", "cayley", "frozen"], ["average", "gradient"], [0, 4]),
)
def test_a_training_step_reads_no_number_and_is_that_on_the_host(
    rotation: str, centroids: str, n_lists: int, far_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = started(rotation, centroids, n_lists)
    there._batches = 1  # the first of a hundred is looked at
    with monkeypatch.context() as undone:
        for module in ("centroids", "layer"):
            undone.setattr(f"nearkin.quantization.layer.{module}.on_host", lambda tensor: True)
        expected = stepped(copy.deepcopy(there))
    far_away()
    found = stepped(there)
    monkeypatch.undo()
    for value, other in zip(found, expected, strict=True):
        torch.testing.assert_close(value, other, rtol=1e-4, atol=1e-5)


def test_one_batch_in_a_hundred_is_looked_at(far_away: Callable[[], None]) -> None:
    layer = started("frozen", "average", 0)
    layer._batches = CHECK_EVERY
    far_away()
    with pytest.raises(AssertionError, match="a number was read"):
        stepped(layer)


def test_averages_restart_where_codebooks_are_set() -> None:
    """Rows of before, of which many sums were taken, do not weigh on the new centroids."""
    rng = np.random.default_rng(0)
    kept = LayerCentroids((M, K, D // M), by_gradient=False, horizon=1000)
    kept.set(rng.normal(size=(M, K, D // M)).astype(np.float32))
    kept.begin(rng.normal(size=(40, D)).astype(np.float32), np.eye(D, dtype=np.float32))
    assert kept.counts.sum() == M * 40
    kept.set(rng.normal(size=(M, K, D // M)).astype(np.float32))
    assert kept.counts.sum() == 0
    assert kept.sums.abs().sum() == 0
