"""What every test gets: one thread, no screen, no global randomness."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned for the order of near rows takes few steps: for tests of what is done with it."""
    monkeypatch.setattr("nearkin.quantization.order._STEPS", 60)
    monkeypatch.setattr("nearkin.quantization.order._CODE_STEPS", 30)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
