"""The examples in docstrings run and print what they show: one test a room, so no other test imports all of src."""

import doctest
import importlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk

SRC = Path(__file__).parents[1] / "src" / "nearkin"
KNOWN = {"np": np, "nk": nk}  # docs/api/index.md says so
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ROOMS: dict[str, list[str]] = defaultdict(list)
for file in sorted(SRC.rglob("*.py")):
    if ">>> " in file.read_text(encoding="utf-8"):
        parts = file.relative_to(SRC).with_suffix("").parts
        ROOMS[parts[0] if len(parts) > 1 else ""].append(".".join(["nearkin", *parts]))


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("room", ROOMS)
def test_examples_of_docstrings(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finder, runner, report = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(optionflags=FLAGS), []
    for name in ROOMS[room]:
        module = importlib.import_module(name)
        examples = [test for test in finder.find(module, name, extraglobs=KNOWN) if test.examples]
        assert examples, f"{name} holds >>> and no docstring with an example was found"
        for test in examples:
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
