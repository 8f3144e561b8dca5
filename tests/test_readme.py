"""What the README shows runs: its Python block and its commands work."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import options_of, run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a language, "" for those without one."""
    return [
        text
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
        if language == kind
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "vectors.npy", rng.normal(size=(400, 16)).astype(np.float32))
    np.save(tmp_path / "queries.npy", rng.normal(size=(5, 16)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_of_commands_shows_commands_that_exist() -> None:
    shown = re.findall(r"^\|[^|]*\| `(?:torchrun [^`]* -m )?(nearkin [^`]*)` \|$", README, re.MULTILINE)
    assert len(shown) >= 10
    for line in shown:
        words = shlex.split(line)[1:]
        wrong = {word for word in words if word.startswith("--")} - options_of(words[0])
        assert not wrong, f"{words[0]} has no {wrong}"


def test_the_python_block(folder: Path) -> None:
    code = blocks("python")[0]
    names: dict[str, object] = {}
    exec(code, names)
    assert np.shape(names["ids"]) == (5, 10)
    assert (folder / "idx" / "index.faiss").is_file()


def test_the_commands(folder: Path) -> None:
    lines = [line.partition("#")[0] for block in blocks("") for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("nearkin ")]
    assert [command[0] for command in commands] == ["compress", "search", "evaluate", "report"]
    for command in commands:
        result = run(*command)
        assert result.exit_code == 0, result.output
    assert (folder / "hits.csv").is_file()
