"""`nearkin export`, as typed."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from nearkin.export import target
from tests.cli.conftest import refused, run, run_json
from tests.covering import each


@pytest.fixture
def idx(compressed: Callable[..., Path]) -> Path:
    return compressed("--method", "none", "--bytes", 2)


def test_a_record_and_a_line_for_people(idx: Path, tmp_path: Path, files: Path) -> None:
    pytest.importorskip("lance", reason="pip install 'nearkin[lance]'")
    args = "export", idx, "--to", "lance", "--out", tmp_path / "out"
    record = run_json(*args, "--queries", f"{files / 'data.npz'}:query")
    assert (record["recall"], record["queries"], record["rows"]) == (1, 20, 600)
    text = " ".join(run(*args, "--overwrite").stdout.split())
    assert "self-check: 100 queries, recall@10 1.0000 of plain FAISS's neighbours, target 0.95: passed" in text


def test_below_the_target_the_exit_code_is_one(idx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target.Source, "positions", lambda self, ids: ids * 0 - 1)
    pytest.importorskip("lance", reason="pip install 'nearkin[lance]'")
    result = run("export", idx, "--to", "lance", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "FAILED; nothing was published" in result.stderr
    assert not (tmp_path / "out").exists()


@each(
    ("args", "message"),
    [
        (["--to", "faiss"], "target is 'faiss'; it must be one of 'lance', 'pgvector'"),
        (["--to", "lance"], "lance takes out, overwrite: missing a required argument"),
        (
            ["--to", "pgvector", "--out", "x"],
            "pgvector takes dsn, name, overwrite, form: got an unexpected",
        ),
        (["--to", "lance", "--out", "IDX"], "exists; give another name, or --overwrite to replace it"),
        (["--to", "pgvector", "--dsn", "host=127.0.0.1 port=1"], "PostgreSQL at host=127.0.0.1 port=1 gives no"),
    ],
)
def test_bad_input_is_one_line(idx: Path, args: list[str], message: str) -> None:
    if "pgvector" in args and not find_spec("psycopg"):
        return
    refused(message, "export", idx, *[str(idx) if arg == "IDX" else arg for arg in args])
