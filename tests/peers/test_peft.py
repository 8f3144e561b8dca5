"""PEFT's tests of OFT and BOFT adapters, with the rotations of `BlockRotation` in place of PEFT's own."""

import os
from functools import cache
from typing import Any

import pytest
import torch

import nearkin as nk
from tests.peers.kits import found, load

os.environ["HF_HUB_OFFLINE"] = "1"
found("peft", "tests")
import peft.tuners.boft.layer  # noqa: E402
import peft.tuners.oft.layer  # noqa: E402

OTHERS = {r"(\[(?!.*OFT).*|PSOFT.*|\w+)$": "another adapter"}

CALLS: list[torch.dtype] = []


@pytest.fixture(autouse=True)
def calls(record_property: Any) -> None:
    """A test that never asks for a rotation is counted apart."""
    CALLS.clear()
    record_property("calls", CALLS)


@cache
def rotation(blocks: int, size: int) -> Any:
    with torch.inference_mode(False):
        made = nk.orthogonal.BlockRotation(blocks * size, size)
    del made.weight
    return made


def rotations(entries: torch.Tensor, size: int) -> torch.Tensor:
    CALLS.append(entries.dtype)
    made = rotation(len(entries), size)
    made.__dict__["weight"] = entries  # a tensor, which is no parameter of its own
    return made.rotations().to(entries.dtype)


def of_oft(self: Any, Q: torch.Tensor, block_size: int, use_cayley_neumann: bool = True, *terms: Any) -> torch.Tensor:
    R = rotations(Q, block_size)
    return R if use_cayley_neumann else R.mT


def of_boft(self: Any, data: torch.Tensor) -> torch.Tensor:
    skew, size = (data.mT - data) / 2, data.shape[-1]
    return rotations(skew[:, *torch.triu_indices(size, size, 1)], size) if size > 1 else torch.ones_like(data)


peft.tuners.oft.layer.OFTRotationModule._cayley_batch = of_oft
peft.tuners.boft.layer.BOFTLayer.cayley_batch = of_boft
TestPeftCustomModel = load("peft", "tests/test_custom_models.py").TestPeftCustomModel
