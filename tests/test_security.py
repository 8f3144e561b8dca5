"""The promises of SECURITY.md that no other test holds; the last one here names the tests of the others."""

import ast
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin._storage import strangers
from nearkin._storage.manifest import ADDED, added
from nearkin.cli.app import command_of
from tests.cli.conftest import run
from tests.covering import each

ROOT = Path(__file__).parents[1]
LOADERS = ("pickle", "torch", "joblib", "marshal", "yaml")
RUNS_CODE = {"eval", "exec", "compile", "__import__", "pickle.Unpickler"}
RUNS_CODE |= {f"{module}.{load}" for module in LOADERS for load in ("load", "loads")}


def test_no_code_of_a_file_is_run() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in RUNS_CODE, f"{path}:{node.lineno} calls {name}"
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert words.get("allow_pickle", "False") == "False", f"{path}:{node.lineno} unpickles"


@each("name", ["/etc", "../x", "a/../../x"])
def test_names_that_lead_out_of_a_folder_are_none_of_its_files(name: str, tmp_path: Path) -> None:
    nk.Index.build(np.eye(4, dtype=np.float32)).save(tmp_path / "idx")
    (tmp_path / "idx" / ADDED).write_text(f'["{name}", "report.html"]')
    assert added(tmp_path / "idx") == ["report.html"]


def test_a_pipe_in_a_saved_folder_blocks_nothing(tmp_path: Path) -> None:
    nk.Index.build(np.eye(4, dtype=np.float32)).save(tmp_path / "idx")
    os.mkfifo(tmp_path / "idx" / ADDED)
    signal.alarm(20)
    try:
        assert strangers(tmp_path / "idx") == []
    finally:
        signal.alarm(0)


def test_a_sparse_matrix_is_as_large_as_its_entries(tmp_path: Path) -> None:
    parts = {"row": [0], "col": [1], "data": [1.0], "shape": [10**12, 10**12], "format": np.array(b"coo")}
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(ValueError, match=r"has the shape \(1000000000000, 1000000000000\) and 1 entry"):
        nk.read_interactions(tmp_path / "a.npz")
    sp.save_npz(tmp_path / "b.npz", sp.csr_matrix(([1.0, 1.0], ([0, 1], [1, 900_000])), (2, 10**6)))
    assert nk.read_interactions(tmp_path / "b.npz").shape == (2, 10**6)


def test_messages_and_tables_hold_no_terminal_codes(tmp_path: Path) -> None:
    name = tmp_path / "a\x1b[31m.csv"
    name.write_text("x\x1b[31m,b\n1,\x1b]0;title\x07\n")
    for words in (["embed", name], ["compress", name], ["search", name, name]):
        result = run(*words, *(["--out", tmp_path / "out"] if words[0] != "search" else []))
        assert result.exit_code == 2
        assert "\x1b" not in result.stdout + result.stderr


def test_pages_are_for_this_machine_unless_a_host_is_named() -> None:
    for name in ("ask", "explore"):
        assert next(one.default for one in command_of(name).params if one.name == "host") == "127.0.0.1"


def test_every_promise_names_the_tests_that_hold_it() -> None:
    """A comment behind each promise: `<!-- tests/... -->`."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"tests/[\w/]+\.py", text))
    assert [name for name in named if not (ROOT / name).is_file()] == []
    promises = re.search(r"They cannot:\n\n(.*?)\n\nThey can:", text, re.DOTALL)
    assert promises is not None
    for promise in re.split(r"\n(?=- )", promises[1]):
        assert "<!-- tests/" in promise, promise
