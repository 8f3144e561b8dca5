"""Every optimizer under DistributedDataParallel: two processes with data of their own hold the same points.

Bit for bit, and they are those of one process that sees all the data.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from nearkin.linalg.procrustes import orthogonality_error
from nearkin.orthogonal import orthogonal_optimizer
from tests.contracts.test_optimizers import MOMENTS, OPTIMIZERS, point

STEPS, RANKS = 3, 2
SHAPES = {"square": (6, 6), "batch": (2, 6, 3), "wide": (3, 7), "convolution": (4, 2, 3, 3)}
KINDS = (("momentum", torch.float64), ("adam", torch.float32))


class Points(nn.Module):
    """Matrices, a batch of them and a convolution kernel; the loss is half the squared distance to the targets."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        for number, (name, shape) in enumerate(SHAPES.items()):
            start = (
                point((4, 18), number, dtype).reshape(shape) if name == "convolution" else point(shape, number, dtype)
            )
            setattr(self, name, nn.Parameter(start))

    def forward(self, targets: list[Tensor]) -> Tensor:
        pairs = zip(self.parameters(), targets, strict=True)
        return sum((0.5 * (p - target).square().sum() for p, target in pairs), torch.zeros(()))


def targets(step: int, rank: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in SHAPES.values()]


def optimizer_of(net: nn.Module, name: str, moments: str) -> Any:
    params = dict(net.named_parameters())
    kernel = params.pop("convolution")
    groups = [{"params": list(params.values())}, {"params": [kernel], "layout": "convolution"}]
    options = {} if name.startswith("riemannian") else {"random_state": 0}
    return OPTIMIZERS[name](groups, 0.02, stabilize_every=2, **options, **MOMENTS[moments])


def trained(name: str, moments: str, dtype: torch.dtype, rank: int | None) -> dict[str, Tensor]:
    """The points after a few steps under a schedule: of one rank, or of one process with everybody's data."""
    net = Points(dtype)
    optimizer = optimizer_of(net, name, moments)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    model = net if rank is None else DistributedDataParallel(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        seen = range(RANKS) if rank is None else [rank]
        losses = [model(targets(step, other, dtype)) for other in seen]
        (sum(losses, torch.zeros(())) / len(losses)).backward()
        optimizer.step()
        schedule.step()
    return {key: value.detach() for key, value in net.named_parameters()}


def cases() -> list[tuple[str, str, torch.dtype]]:
    return [(name, moments, dtype) for name in OPTIMIZERS for moments, dtype in KINDS]


def mixed(rank: int) -> list[Tensor]:
    """A whole network with one optimizer, matrices on the manifold and the rest by AdamW."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    with torch.no_grad():
        net[0].weight.copy_(point((6, 6), 0, torch.float32))
    optimizer = orthogonal_optimizer(net, 0.05, others=lambda rest: torch.optim.AdamW(rest, 1e-2))
    model = DistributedDataParallel(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        rows = torch.randn(8, 6, generator=torch.Generator().manual_seed(10 * step + rank))
        model(rows).square().mean().backward()
        optimizer.step()
    return [p.detach() for p in net.parameters()]


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    found = {str(case): trained(*case, rank) for case in cases()}
    torch.save((found, mixed(rank)), Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, dict[str, Tensor]], list[Tensor]]]:
    if sys.platform == "win32":
        pytest.skip("gloo over a file meets on POSIX systems")
    folder = tmp_path_factory.mktemp("ranks")
    start_processes(work, (str(folder),), RANKS, start_method="spawn")
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_processes_hold_one_model(name: str, ranks: Any) -> None:
    for case in [case for case in cases() if case[0] == name]:
        first, second = (found[str(case)] for found, _ in ranks)
        alone = trained(*case, None)
        for key, value in first.items():
            assert torch.equal(value, second[key]), (case, key)
            assert not torch.equal(value, dict(Points(case[2]).named_parameters())[key])
            # gradients are summed in another order, and matchings of weights may turn on the last bit
            torch.testing.assert_close(value, alone[key], rtol=0, atol=1e-9 if case[2] == torch.float64 else 1e-3)
            flat = value.flatten(1) if key == "convolution" else value
            assert orthogonality_error(flat) < (2e-11 if case[2] == torch.float64 else 4e-5)


def test_two_processes_hold_one_mixed_model(ranks: Any) -> None:
    (_, first), (_, second) = ranks
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert orthogonality_error(first[0]) < 4e-5
