"""SGDG solves its equation; the GPU's command runs."""

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import harness
from benchmarks.gpu import run as gpu
from benchmarks.orthogonal.methods import FiveLoops
from benchmarks.table import Results
from nearkin.linalg.haar import haar_orthogonal


def test_sgdg_solves_the_equation_of_cayley() -> None:
    X = haar_orthogonal(6, 6, random_state=0, dtype=torch.float64)
    G = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = nn.Parameter(X.clone())
    p.grad = G
    FiveLoops([p], 1e-2).step()
    W = -(G @ X.T - X @ G.T) / 2  # on square X the projection of Li et al. takes half of the form
    identity = torch.eye(6, dtype=torch.float64)
    exact = torch.linalg.solve(identity - 0.005 * W, (identity + 0.005 * W) @ X)
    torch.testing.assert_close(p.detach(), exact, rtol=0, atol=1e-7)


def test_the_command_for_a_gpu_runs_in_small_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    options = ["--device", "cpu", "--small", "--seconds", "0.001", "--threads"]
    monkeypatch.setattr("sys.argv", ["gpu", *options, str(torch.get_num_threads())])
    gpu.main()
    found = Results(tmp_path).read("gpu")
    assert set(found) == {"device", "towers", "layers", "all pairs", "steps"}
    assert all(value > 0 for row in found["steps"]["cpu"].values() for value in row.values())
    assert all(value > 0 for part in ("towers", "layers", "all pairs") for value in found[part]["cpu"].values())
