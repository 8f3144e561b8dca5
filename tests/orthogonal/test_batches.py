"""Parameters of one shape that move as one batch take the steps of the loop over them."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import Adam, GivensDescent, RiemannianDescent, StochasticFlow
from nearkin.orthogonal.optimizer import BATCHED, as_tall, batches_by_shape, from_tall
from nearkin.orthogonal.retraction import RETRACTIONS
from tests.covering import covering

SHAPES = [(5, 5), (6, 3), (3, 6), (2, 5, 5), (2, 3, 6, 3), (2, 3, 6), (1, 1)]


def point(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    *batch, d, k = shape
    X = haar_orthogonal(*batch, max(d, k), min(d, k), random_state=seed, dtype=torch.float64)
    return (X if d >= k else X.mT.contiguous()).to(dtype)


def network(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    """Three parameters of every shape."""
    return [nn.Parameter(point(shape, 7 * n + 1, dtype)) for n in range(3) for shape in SHAPES]


def train(optimizer: Any, params: list[nn.Parameter], steps: int, first: int = 0) -> None:
    for step in range(first, first + steps):
        for number, p in enumerate(params):
            generator = torch.Generator().manual_seed(100 * step + number)
            p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype)
            if step == 1 and number == 0:
                p.grad = None  # one step behind the others from here on
        optimizer.step()


@pytest.mark.parametrize("momentum", [0.0, 0.7, Adam()], ids=["plain", "momentum", "adam"])
@pytest.mark.parametrize("retraction", RETRACTIONS)
def test_a_batch_of_parameters_is_the_loop(retraction: str, momentum: Any) -> None:
    joined, single = network(), network()
    options = {"momentum": momentum, "stabilize_every": 3}
    ours = RiemannianDescent(joined, 0.02, retraction, **options)
    loop = RiemannianDescent(single, 0.02, retraction, foreach=False, **options)
    train(ours, joined, 5)
    train(loop, single, 5)
    for a, b in zip(joined, single, strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=0, atol=1e-10)
        assert ours.state[a].keys() == loop.state[b].keys()
        for name, value in ours.state[a].items():
            torch.testing.assert_close(value, loop.state[b][name], rtol=0, atol=1e-9)


COORDINATES = {
    "givens random": lambda p, **o: GivensDescent(p, 0.02, "random", **o),
    "givens random, 2 matchings": lambda p, **o: GivensDescent(p, 0.02, "random", n_matchings=2, **o),
    "givens greedy": lambda p, **o: GivensDescent(p, 0.02, "greedy", **o),
    "flow pairs": lambda p, **o: StochasticFlow(p, 0.02, 2, scale="none", **o),
    "flow blocks": lambda p, **o: StochasticFlow(p, 0.02, 3, scale="none", **o),
    "flow importance": lambda p, **o: StochasticFlow(p, 0.01, 2, "importance", **o),
}


@pytest.mark.parametrize(
    ("name", "shape", "momentum"),
    covering([*COORDINATES], [(6, 6), (7, 4), (4, 7), (2, 6, 6)], [0.0, 0.7, Adam()]),
    ids=str,
)
def test_coordinate_steps_of_a_batch_are_the_loop(name: str, momentum: Any, shape: tuple[int, ...]) -> None:
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(point(shape, seed)) for seed in range(3)]
        optimizer = COORDINATES[name]([{"params": params, "foreach": foreach}], momentum=momentum, stabilize_every=3)
        for step in range(4):
            for number, p in enumerate(params):
                generator = torch.Generator().manual_seed(100 * step + number)
                p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64)
            optimizer.step()
        ends.append((params, [optimizer.state[p] for p in params]))
    for a, b in zip(ends[0][0], ends[1][0], strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=0, atol=1e-12)
    for ours, theirs in zip(ends[0][1], ends[1][1], strict=True):
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            torch.testing.assert_close(value, theirs[key], rtol=0, atol=1e-12)


def test_convolutions_are_joined_too() -> None:
    kernels = [point((4, 18), seed).reshape(4, 2, 3, 3) for seed in range(3)]
    ends = []
    for foreach in (True, False):
        params = [nn.Parameter(kernel.clone()) for kernel in kernels]
        optimizer = RiemannianDescent(params, 0.05, "qr", momentum=0.5, layout="convolution", foreach=foreach)
        train(optimizer, params, 4)
        ends.append([p.detach() for p in params])
    for a, b in zip(*ends, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_a_saved_batch_goes_on_bit_for_bit() -> None:
    params = network(torch.float32)
    optimizer = RiemannianDescent(params, 0.05, "newton-schulz", momentum=Adam())
    train(optimizer, params, 3)
    saved, values = copy.deepcopy(optimizer.state_dict()), [p.detach().clone() for p in params]
    train(optimizer, params, 3, 3)
    others = [nn.Parameter(value) for value in values]
    resumed = RiemannianDescent(others, 0.05, "newton-schulz", momentum=Adam())
    resumed.load_state_dict(saved)
    train(resumed, others, 3, 3)
    assert all(torch.equal(a, b) for a, b in zip(params, others, strict=True))
    for state in optimizer.state.values():  # each saves its own memory and not that of the batch
        assert state["momentum"].untyped_storage().nbytes() == state["momentum"].nbytes


def test_what_moves_together() -> None:
    large = int(BATCHED**0.5) + 1
    shapes = [(4, 4), (4, 4), (large, large), (large, large), (4, 4)]
    params = [nn.Parameter(torch.eye(*shape, dtype=torch.float32)) for shape in shapes]
    halves = [nn.Parameter(torch.eye(4, dtype=torch.bfloat16)) for _ in range(2)]
    group, other = {"foreach": True}, {"foreach": True}
    active = [*((group, p) for p in params[:4]), (other, params[4]), *((group, p) for p in halves)]
    assert [len(part) for _, part in batches_by_shape(active, {})] == [2, 1, 1, 1, 1, 1]
    assert [len(part) for _, part in batches_by_shape([({}, p) for p in params[:2]], {})] == [1, 1]
    late = {params[0]: {"step": 3}, params[1]: {"step": 2}}
    assert [len(part) for _, part in batches_by_shape(active[:2], late)] == [1, 1]
    assert GivensDescent(params, 0.1).param_groups[0]["foreach"]


def test_gradients_are_tested_together_and_named_one_by_one() -> None:
    params = [nn.Parameter(torch.eye(3)) for _ in range(4)]
    optimizer, before = RiemannianDescent(params, 0.1), [p.detach().clone() for p in params]
    for bad, message in ((torch.nan, "gradient of parameter 2.*NaN"), (1e38, "gradient of parameter 2.*as large as")):
        for p in params:
            p.grad = torch.ones(3, 3)
        params[2].grad = torch.full((3, 3), bad)
        with pytest.raises(ValueError, match=message):
            optimizer.step()
        assert all(torch.equal(p, b) for p, b in zip(params, before, strict=True))
    for p in params:  # each is fine, only their common norm is not
        p.grad = torch.full((3, 3), 9e18) * torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 0]])
    optimizer.step()


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (4, 4), (2, 4, 4), (3, 5, 2), (3, 2, 5), (2, 3, 2, 5)])
def test_a_matrix_or_a_batch_is_seen_tall_and_written_back(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p)
    assert X.shape[-2:] == ((4, 4) if shape[-1] == 4 else (5, 2))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() + 1, p, "matrix"), kept + 1)


@pytest.mark.parametrize("shape", [(4, 2, 3, 3), (20, 2, 3, 3)])
def test_a_kernel_is_its_window_times_channels(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p, "convolution")
    assert X.shape == (1, max(shape[0], 18), min(shape[0], 18))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() * 2, p, "convolution"), kept * 2)
