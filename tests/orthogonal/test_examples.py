"""The engine's examples run, at a small size, and draw their figure."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "sorting_flow": ["--etas", "0.05,0.5", "--time", "1", "--runs", "1"],
    "orthogonal_procrustes": ["--d", "10", "--steps", "20"],
    "orthogonal_pca": ["--k", "3", "--steps", "20"],
    "orthogonal_mlp": ["--epochs", "1"],
    "orthogonal_rnn": ["--steps", "3", "--delay", "3", "--width", "16"],
    "evolution_strategies": ["--generations", "2", "--population", "4"],
    "plain_convnet": ["--epochs", "1", "--depth", "2", "--channels", "4"],
}


@pytest.mark.parametrize("name", SMALL)
def test_example_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "evolution_strategies":
        pytest.importorskip("gymnasium", reason="needs gymnasium, which nearkin[rl] installs")
    figure = tmp_path / "figure.png"
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]([*SMALL[name], "--out", str(figure)])
    assert figure.stat().st_size > 1000
    assert str(figure) in capsys.readouterr().out


def test_the_example_that_needs_gymnasium_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(SystemExit, match=r"pip install 'nearkin\[rl\]'"):
        runpy.run_path(str(EXAMPLES / "evolution_strategies.py"))["main"](["--out", str(tmp_path / "figure.png")])
