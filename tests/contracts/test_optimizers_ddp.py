"""Every optimizer and the indexing layer under DistributedDataParallel, and a network sharded too: two processes with
data of their own hold the same points, bit for bit, and they are those of one process that sees all the data.
"""

import os
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, orthogonal_, orthogonal_optimizer
from nearkin.orthogonal.optimizer import whole
from nearkin.quantization import IndexingLayer, optimizers
from tests.contracts.test_optimizers import MOMENTS, OPTIMIZERS
from tests.covering import each
from tests.orthogonal.steps import point
from tests.processes import FORKSERVER

STEPS, RANKS = 2, 2
SHAPES = {"square": (6, 6), "batch": (2, 6, 3), "wide": (3, 7), "convolution": (4, 2, 3, 3)}
KINDS = (("momentum", torch.float64), ("adam", torch.float32), ("momentum", torch.bfloat16))
NAMES = {kind: [*OPTIMIZERS][number :: len(KINDS)] for number, kind in enumerate(KINDS)}  # in turn
NEAR = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 3e-2}  # gradients are summed in another order
ON = {torch.float64: 2e-11, torch.float32: 4e-5, torch.bfloat16: 1e-2}


class Points(nn.Module):
    """Matrices, a batch of them and a convolution kernel for every optimizer, each with its targets.

    The loss is half the squared distance to the targets. One network for all, so that gradients meet once a step.
    """

    def __init__(self, dtype: torch.dtype, names: list[str]) -> None:
        super().__init__()
        self.of = nn.ModuleList(nn.ParameterDict(starts(dtype)) for _ in names)

    def forward(self, targets: list[Tensor]) -> Tensor:
        pairs = [(one[name], target) for one in self.of for name, target in zip(SHAPES, targets, strict=True)]
        return sum((0.5 * (p - target).square().sum() for p, target in pairs), torch.zeros(()))


def starts(dtype: torch.dtype) -> dict[str, nn.Parameter]:
    flat = {name: (4, 18) if name == "convolution" else shape for name, shape in SHAPES.items()}
    points = {name: point(shape, number, dtype) for number, (name, shape) in enumerate(flat.items())}
    return {name: nn.Parameter(value.reshape(SHAPES[name])) for name, value in points.items()}


def targets(step: int, rank: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in SHAPES.values()]


def optimizer_of(points: nn.Module, name: str, moments: str) -> Any:
    params = dict(points.named_parameters())
    kernel = params.pop("convolution")
    groups = [{"params": list(params.values())}, {"params": [kernel], "layout": "convolution"}]
    options = {} if name.startswith("riemannian") else {"random_state": 0}
    return OPTIMIZERS[name](groups, 0.02, stabilize_every=2, **options, **MOMENTS[moments])


def trained(moments: str, dtype: torch.dtype, rank: int | None) -> dict[str, dict[str, Tensor]]:
    """Every optimizer's points after a few steps under a schedule: of one rank, or of one process with all the data."""
    names = NAMES[moments, dtype]
    net = Points(dtype, names)
    optimizers = [optimizer_of(one, name, moments) for one, name in zip(net.of, names, strict=True)]
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS) for optimizer in optimizers]
    model = net if rank is None else DistributedDataParallel(net)
    for step in range(STEPS):
        net.zero_grad()
        seen = range(RANKS) if rank is None else [rank]
        losses = [model(targets(step, other, dtype)) for other in seen]
        (sum(losses, torch.zeros(())) / len(losses)).backward()
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
    points = [{key: value.detach() for key, value in one.named_parameters()} for one in net.of]
    return dict(zip(names, points, strict=True))


def network(how: str | None) -> tuple[nn.Sequential, nn.Module, Any]:
    """A network of matrices on the manifold and others, what trains it, and one optimizer for all of it."""
    net = nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 7), nn.Tanh(), nn.Linear(7, 2))
    for number, layer in enumerate((net[0], net[2], net[4])):
        nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(number))
        nn.init.zeros_(layer.bias)
    model: nn.Module = DistributedDataParallel(net) if how == "ddp" else net
    if how == "fsdp":
        for part in (net[0], net[2], net):
            fully_shard(part)
    for number in (0, 2):
        orthogonal_(net[number], random_state=number)
    others = partial(torch.optim.AdamW, lr=1e-2)
    return net, model, orthogonal_optimizer(net, 0.05, method="flow", momentum=Adam(), others=others)


def go_on(model: nn.Module, optimizer: Any, rank: int | None) -> list[float]:
    """The losses of a few steps, the mean of all ranks' rows."""
    losses = list[float]()
    for step in range(STEPS):
        optimizer.zero_grad()
        numbers = range(RANKS) if rank is None else [rank]
        rows = [torch.randn(8, 6, generator=torch.Generator().manual_seed(10 * step + number)) for number in numbers]
        loss = model(torch.cat(rows)).square().mean()
        loss.backward()
        losses.append(float(loss.detach()))
        optimizer.step()
    return losses


def mixed(how: str | None, rank: int | None) -> tuple[list[float], list[Tensor]]:
    """Losses and parameters of the whole network; what is sharded is saved half-way and goes on from there."""
    net, model, optimizer = network(how)
    losses = go_on(model, optimizer, rank)
    if how == "fsdp":
        first, second = get_state_dict(net, optimizer)
        net, model, optimizer = network(how)
        set_state_dict(net, optimizer, model_state_dict=first, optim_state_dict=second)
    losses += go_on(model, optimizer, rank)
    return losses, [whole(p) for p in net.parameters()]


AVERAGES = ("frozen", "average")
LAYERS = [("givens-greedy", "average"), AVERAGES, ("cayley", "gradient")]
CUTS = {1: [0, 48], RANKS: [0, 20, 48]}  # uneven


def layer(rank: int, size: int, rotation: str, centroids: str) -> dict[str, Tensor]:
    """The state after a few steps from the first collected row on, each rank with its own part of every batch."""
    torch.manual_seed(0)
    options = {"centroids": (centroids, 256), "warmup_steps": 1, "buffer_size": 90, "max_iter": 3, "rotation_lr": 0.02}
    net: nn.Module = nn.Sequential(nn.Linear(8, 8), IndexingLayer(8, 2, 8, rotation=rotation, **options))
    moving = optimizers(net[1], net[0].parameters(), lr=1e-2)
    net = net if size == 1 else DistributedDataParallel(net)
    for step in range(6):
        rows = torch.randn(48, 8, generator=torch.Generator().manual_seed(step))
        first, stop = CUTS[size][rank : rank + 2]
        T, distortion = net(rows[first:stop])
        for optimizer in moving:
            optimizer.zero_grad()
        # DDP averages over ranks: weighed so that the average is the gradient of all rows' mean
        share = (stop - first) * size / 48
        (share * (distortion + (T - rows[first:stop]).square().sum() / (stop - first))).backward()
        for optimizer in moving:
            optimizer.step()
    return {name: value.clone() for name, value in net.state_dict().items()}


def work(number: int, folder: str, rank: int | None = None) -> None:
    """What one of the processes does; the second is started, and its number among those started is 0."""
    rank = number + 1 if rank is None else rank
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS, timeout=timedelta(minutes=5))
    found = {str(kind): trained(*kind, rank) for kind in KINDS}
    layers = [layer(rank, RANKS, *case) for case in LAYERS]
    torch.save((found, {how: mixed(how, rank) for how in ("ddp", "fsdp")}, layers), Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, dict[str, Tensor]]]:
    return {str(kind): trained(*kind, None) for kind in KINDS}


@pytest.fixture(scope="module")
def ranks(
    alone: dict[str, dict[str, dict[str, Tensor]]], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[dict[str, Any], dict[str, Any], list[dict[str, Tensor]]]]:
    """What both hold; their loops are compiled already, by the process alone."""
    if sys.platform == "win32":
        pytest.skip("gloo over a file meets on POSIX systems")
    folder = tmp_path_factory.mktemp("ranks")
    other = start_processes(work, (str(folder),), RANKS - 1, join=False, start_method=FORKSERVER.get_start_method())
    work(0, str(folder), 0)
    while not other.join():
        pass
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


@each(("kind", "name"), [(kind, name) for kind in KINDS for name in NAMES[kind]])
def test_two_processes_hold_one_model(name: str, kind: tuple[str, torch.dtype], ranks: Any, alone: Any) -> None:
    first, second = (found[str(kind)][name] for found, _, _ in ranks)
    dtype = kind[1]
    for key, start in starts(dtype).items():
        value = first[key]
        assert torch.equal(value, second[key]), key
        assert not torch.equal(value, start)
        # matchings of weights may turn on the last bit
        torch.testing.assert_close(value, alone[str(kind)][name][key], rtol=0, atol=NEAR[dtype])
        assert orthogonality_error(value.flatten(1) if key == "convolution" else value) < ON[dtype]


@each("how", ["ddp", "fsdp"])
def test_two_processes_train_a_network_to_the_loss_of_one(how: str, ranks: Any) -> None:
    """Sharded matrices too: each is gathered for its step, and every process keeps its rows."""
    (first, points), (second, others) = (found[how] for _, found, _ in ranks)
    losses, expected = mixed(None, None)
    assert [(a + b) / 2 for a, b in zip(first, second, strict=True)] == pytest.approx(losses, rel=1e-4)
    for value, other, one in zip(points, others, expected, strict=True):
        assert torch.equal(value, other)
        torch.testing.assert_close(value, one, rtol=0, atol=NEAR[torch.float32])
    assert max(orthogonality_error(points[number]) for number in (0, 2)) < ON[torch.float32]


def test_two_processes_train_one_indexing_layer(ranks: Any) -> None:
    (_, _, first), (_, _, second) = ranks
    for case, a, b in zip(LAYERS, first, second, strict=True):
        assert int(a["module.1.phases._extra_state"][0]) == 2, case  # it trains
        for name, value in a.items():
            assert torch.equal(value, b[name]), (case, name)
    for name, value in layer(0, 1, *AVERAGES).items():  # what moves by gradients sees zeros before the start in DDP
        seen = first[LAYERS.index(AVERAGES)][f"module.{name}"]
        torch.testing.assert_close(seen, value, rtol=1e-3, atol=1e-3, msg=f"{name} differs from that of one process")
