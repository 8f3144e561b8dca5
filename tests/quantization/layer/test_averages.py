"""The averages of the indexing layer where they lie are those on the host; no number is read from a device."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from nearkin.linalg.haar import haar_orthogonal
from nearkin.quantization.codebooks import ClusterSums, revive
from nearkin.quantization.layer import averages
from nearkin.quantization.layer.centroids import LayerCentroids
from nearkin.quantization.layer.layer import CHECK_EVERY, IndexingLayer

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
@pytest.mark.parametrize("fewest", [0.0, 6.0, 1000.0])
def test_sums_and_centroids_are_those_on_the_host(device: str, fewest: float) -> None:
    X, codes = draw()
    R = haar_orthogonal(D, D, random_state=0)
    host = ClusterSums(M, K, D).update(X.numpy(), codes.numpy())
    sums, counts = torch.zeros(M, K, D, device=device), torch.zeros(M, K, dtype=torch.float64, device=device)
    averages.add_rows(X.to(device), codes.to(device), sums, counts)
    np.testing.assert_allclose(sums.cpu(), host.sums, atol=1e-5)
    np.testing.assert_array_equal(counts.cpu(), host.counts)
    found = averages.centroids(sums, counts, R.to(device), torch.tensor(fewest, device=device))
    np.testing.assert_allclose(found.cpu(), host.centroids(R.numpy(), fewest), atol=1e-5)


@each_device
@pytest.mark.parametrize("fewest", [0.0, 3.0, 1000.0])
def test_revived_as_on_the_host(device: str, fewest: float) -> None:
    generator = torch.Generator().manual_seed(0)
    books, counts = torch.randn(M, K, 2, generator=generator), torch.randint(8, (M, K), generator=generator).double()
    found, dead = averages.revived(books.to(device), counts.to(device), torch.tensor(fewest, device=device))
    for m in range(M):
        centroids = books[m].numpy().copy()
        np.testing.assert_array_equal(dead[m].cpu(), revive(centroids, counts[m].numpy(), fewest))
        np.testing.assert_array_equal(found[m].cpu(), centroids)


@each_device
@pytest.mark.parametrize("by_gradient", [False, True])
def test_what_is_observed_there_is_what_is_observed_on_the_host(device: str, by_gradient: bool) -> None:
    R = haar_orthogonal(D, D, random_state=0)
    made = []
    for _ in range(2):
        made.append(LayerCentroids((M, K, D // M), by_gradient=by_gradient, exact_rotation=False, horizon=120))
        made[-1].set(torch.randn(M, K, D // M, generator=torch.Generator().manual_seed(1)).numpy())
    host, there = made[0], made[1].to(device)
    for seed in range(4):
        X, codes = draw(seed=seed)
        assert host.observe(X, codes, R) is None
        there._observe_there(X.to(device), codes.to(device), R.to(device))
    for name, value in host.state_dict().items():
        torch.testing.assert_close(there.state_dict()[name].cpu(), value, rtol=1e-5, atol=1e-5, msg=name)


@each_device
@pytest.mark.parametrize("rotation", ["givens-random", "cayley", "frozen", "exact"])
@pytest.mark.parametrize("n_lists", [0, 4])
def test_the_layer_trains_on_every_device(device: str, rotation: str, n_lists: int) -> None:
    layer = IndexingLayer(D, M, K, n_lists, rotation, buffer_size=64, max_iter=2).to(device)
    distortions = []
    for step in range(5):
        x = torch.randn(64, D, generator=torch.Generator().manual_seed(step)).to(device).requires_grad_()
        T, distortion = layer(x)
        (T.sum() + distortion).backward()
        assert T.device.type == x.grad.device.type == device
        distortions.append(float(distortion.detach()))
    assert 0 < distortions[-1] < D


READING = ("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__")


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Takes every tensor for one on a device, and once called, makes it an error to read a number."""
    monkeypatch.setattr(averages, "on_host", lambda tensor: False)

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


@pytest.mark.parametrize("rotation", ["givens-random", "cayley", "frozen"])
@pytest.mark.parametrize("centroids", ["average", "gradient"])
@pytest.mark.parametrize("n_lists", [0, 4])
def test_a_training_step_reads_no_number_and_is_that_on_the_host(
    rotation: str, centroids: str, n_lists: int, far_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = started(rotation, centroids, n_lists)
    there._batches = 1  # the first of a hundred is looked at
    with monkeypatch.context() as undone:
        undone.setattr(averages, "on_host", lambda tensor: True)
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


def test_rows_on_the_host_are_looked_at_in_every_batch() -> None:
    layer = IndexingLayer(D, M, K, rotation="frozen", buffer_size=64, max_iter=2)
    layer(torch.randn(64, D, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="tower's output"):
        layer(torch.full((4, D), torch.nan))
