"""Every example runs, in seconds and without data of its own: `main()` of examples/*.py under `--out FOLDER`."""

import importlib.util
import runpy
import signal
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import nearkin as nk
from nearkin.jobs.demo import digits

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
SECONDS = 60  # of processor time
SMALL = {  # options of the longer ones, whose --out is a figure
    "eurodist": ["--answers", "1200"],
    "evolution_strategies": ["--generations", "2", "--population", "4"],
    "orthogonal_mlp": ["--epochs", "1", "--seeds", "1"],
    "orthogonal_pca": ["--k", "3", "--steps", "20"],
    "orthogonal_procrustes": ["--d", "10", "--steps", "20"],
    "orthogonal_rnn": ["--steps", "3", "--delay", "3", "--width", "16"],
    "plain_convnet": ["--epochs", "1", "--depth", "2", "--channels", "4"],
    "sorting_flow": ["--etas", "0.05,0.5", "--time", "1", "--runs", "1"],
}
FEWER = {  # constants of the longer ones without options
    "how_many_bytes": {"QUERIES": (0,)},
    "index_in_your_model": {"STEPS": 60},
    "orthogonal_mlp": {"GRID": (0.1,)},
    "one_optimizer": {"STEPS": 30},
    "rotate_before_rounding": {"STEPS": 30},
}
EXTRAS = {"evolution_strategies": "gymnasium", "langchain_store": "langchain_core"}  # beyond nearkin itself


def stop(*_: object) -> None:
    raise TimeoutError(f"the example took more than {SECONDS} seconds of processor time")


@pytest.mark.usefixtures("few_fits", "quick_faiss")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem in EXTRAS:
        pytest.importorskip(EXTRAS[path.stem], reason=f"needs {EXTRAS[path.stem]}")
    of_demo = importlib.import_module("nearkin.jobs.demo")
    monkeypatch.setattr(of_demo, "BYTES", (4,))
    some = [part[:200] for part in digits()]
    monkeypatch.setattr(of_demo, "digits", lambda: some)
    planted, savefig = nk.data.planted_interactions, Figure.savefig
    monkeypatch.setattr(nk.data, "planted_interactions", lambda m, n, **more: planted(m // 2, n // 2, **more))
    monkeypatch.setattr(Figure, "savefig", lambda figure, to, **more: savefig(figure, to, **more | {"dpi": 40}))
    out = tmp_path / "figure.png" if path.stem in SMALL else tmp_path
    monkeypatch.setattr("sys.argv", [path.name, *SMALL.get(path.stem, []), "--out", str(out)])
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in FEWER.get(path.stem, {}).items():
        monkeypatch.setattr(module, name, value)
    assert module.__doc__, f"{path.name} must open with the user's question"
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        module.main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    printed = capsys.readouterr().out
    assert printed, f"{path.name} printed nothing"
    assert out.is_dir() or out.stat().st_size > 1000
    assert "False" not in printed, printed
    if path.stem == "eurodist":
        wrong = {line.split()[0]: float(line.split()[5].rstrip(",")) for line in printed.splitlines()[:4]}
        assert set(wrong) == {"gnmds", "ckl", "ste", "t-ste"}
        assert max(wrong.values()) < 0.12, wrong


def test_the_example_that_needs_gymnasium_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    example = runpy.run_path(str(FOLDER / "evolution_strategies.py"))
    with pytest.raises(SystemExit, match=r"pip install 'nearkin\[rl\]'"):
        example["main"](["--out", str(tmp_path / "figure.png")])
