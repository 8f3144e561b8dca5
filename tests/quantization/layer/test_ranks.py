"""Two processes that train one indexing layer hold the same layer, and it is the one that sees all rows."""

import os
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from nearkin.quantization import IndexingLayer, optimizers

D, M, K, STEPS, ROWS = 8, 2, 8, 6, 48
AVERAGES = ("exact", "average")
CASES = [("givens-greedy", "average"), AVERAGES, ("cayley", "gradient")]
CUTS = {1: [0, ROWS], 2: [0, 20, ROWS]}  # uneven


def trained(rank: int, size: int, rotation: str, centroids: str) -> dict[str, torch.Tensor]:
    """The state after a few steps from the first collected row on, each rank with its own part of every batch."""
    torch.manual_seed(0)
    tower = nn.Linear(D, D)
    layer = IndexingLayer(D, M, K, rotation=rotation, centroids=(centroids, 256), warmup_steps=1, buffer_size=90,
                          max_iter=3, rotation_lr=0.02)  # fmt: skip
    net: nn.Module = nn.Sequential(tower, layer)
    if size > 1:
        net = DistributedDataParallel(net)
    moving = optimizers(layer, tower.parameters(), lr=1e-2)
    for step in range(STEPS):
        rows = torch.randn(ROWS, D, generator=torch.Generator().manual_seed(step))
        first, stop = CUTS[size][rank : rank + 2]
        T, distortion = net(rows[first:stop])
        for optimizer in moving:
            optimizer.zero_grad()
        # DDP averages over ranks: weighed so that the average is the gradient of all rows' mean
        share = (stop - first) * size / ROWS
        (share * (distortion + (T - rows[first:stop]).square().sum() / (stop - first))).backward()
        for optimizer in moving:
            optimizer.step()
    return {name: value.clone() for name, value in net.state_dict().items()}


def work(rank: int, size: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    states = [trained(rank, size, *case) for case in CASES]
    torch.save(states, Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


@pytest.mark.skipif(sys.platform == "win32", reason="gloo over a file meets on POSIX systems")
def test_two_ranks_train_one_layer(tmp_path: Path) -> None:
    start_processes(work, (2, str(tmp_path)), 2, start_method="spawn")
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for case, a, b in zip(CASES, first, second, strict=True):
        assert int(a["module.1.phases.progress"][0]) == 2, case  # it trains
        for name, value in a.items():
            assert torch.equal(value, b[name]), (case, name)
    for name, value in trained(0, 1, *AVERAGES).items():  # what moves by gradients sees zeros before the start in DDP
        seen = first[CASES.index(AVERAGES)][f"module.{name}"]
        torch.testing.assert_close(seen, value, rtol=1e-3, atol=1e-3, msg=f"{name} differs from that of one process")
