"""The engine's examples run, at a small size, and draw their figure."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "sorting_flow": ["--etas", "0.05,0.5", "--time", "1", "--runs", "1"],
    "orthogonal_procrustes": ["--d", "10", "--steps", "20"],
    "orthogonal_pca": ["--k", "3", "--steps", "20"],
    "orthogonal_mlp": ["--epochs", "1"],
    "orthogonal_rnn": ["--steps", "3", "--delay", "3", "--width", "16"],
    "plain_convnet": ["--epochs", "1", "--depth", "2", "--channels", "4"],
}


@pytest.mark.parametrize("name", SMALL)
def test_example_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "figure.png"
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]([*SMALL[name], "--out", str(figure)])
    assert figure.stat().st_size > 1000
    assert str(figure) in capsys.readouterr().out
