"""Every example runs, in seconds and without data of its own: `main()` of examples/*.py under `--out FOLDER`."""

import importlib.util
import signal
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SECONDS = 60
EXTRAS = {"evolution_strategies": "gymnasium"}  # what an example needs beyond nearkin itself


def stop(*_: object) -> None:
    raise TimeoutError(f"the example took more than {SECONDS} seconds")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem in EXTRAS:
        pytest.importorskip(EXTRAS[path.stem], reason=f"needs {EXTRAS[path.stem]}, which nearkin[rl] installs")
    monkeypatch.setattr("sys.argv", [path.name, "--out", str(tmp_path)])
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__doc__, f"{path.name} must open with the user's question"
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        module.main()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    printed = capsys.readouterr().out
    assert printed, f"{path.name} printed nothing"
    assert "False" not in printed, printed
