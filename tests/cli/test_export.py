"""`nearkin export`, as typed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nearkin.export import target
from tests.cli.conftest import run, run_json


@pytest.fixture
def idx(compressed: Callable[..., Path]) -> Path:
    return compressed("--method", "none", "--bytes", 2)


def test_a_record_and_a_line_for_people(idx: Path, tmp_path: Path, files: Path) -> None:
    pytest.importorskip("lance", reason="pip install 'nearkin[lance]'")
    args = "export", idx, "--to", "lance", "--out", tmp_path / "out"
    record = run_json(*args, "--queries", f"{files / 'data.npz'}:query")
    assert (record["recall"], record["queries"], record["rows"]) == (1, 20, 600)
    text = " ".join(run(*args, "--overwrite").stdout.split())
    assert "self check 100 queries, recall@10 1.0000 of plain FAISS's neighbours, target 0.95: passed" in text


def test_below_the_target_the_exit_code_is_one(idx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target.Source, "positions", lambda self, ids: ids * 0 - 1)
    pytest.importorskip("lance", reason="pip install 'nearkin[lance]'")
    result = run("export", idx, "--to", "lance", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "FAILED; nothing was published" in result.stderr
    assert not (tmp_path / "out").exists()
