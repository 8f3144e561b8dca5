"""The one place where errors become one line and an exit code."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
import nearkin.jobs.report
from nearkin._distributed import join_processes
from tests.cli.conftest import refused, run
from tests.covering import each


def test_an_unexpected_error_is_one_line_that_says_what_to_report(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise KeyError("lost")

    monkeypatch.setattr(sys.modules["nearkin.jobs.report"], "folder_page", fail)
    result = run("report", tmp_path)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "unexpected KeyError at test_group.py:" in line
    assert "please report" in line
    monkeypatch.setenv("NEARKIN_DEBUG", "1")
    assert isinstance(run("report", tmp_path).exception, KeyError)


def test_ids_are_printed_as_they_are(tmp_path):
    """Before, `[red]7` printed 7, `[/b]` ended in a traceback and escapes reached the terminal."""
    ids = ["[red]7", "[/b]", "\x1b[31mx\ny"]
    X = np.eye(3, dtype=np.float32)
    nk.Index.build(X, ids=ids).save(tmp_path / "idx")
    np.save(tmp_path / "Q.npy", X)
    result = run("search", tmp_path / "idx", tmp_path / "Q.npy", "-k", 1)
    assert result.exit_code == 0, result.output
    for shown in ("[red]7", "[/b]", r"\x1b[31mx\ny"):
        assert shown in result.stdout
    assert "\x1b" not in result.stdout


def test_out_is_checked_before_the_work(tmp_path):
    """Before, it failed after the work."""
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    refused("/proc/nope cannot be made: /proc takes no files", "embed", tmp_path / "pairs.csv", "--out", "/proc/nope")


@each("text", ["soon", "-1", "nan", "0"])
def test_a_timeout_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv("NEARKIN_TIMEOUT", text)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(ValueError, match=f"NEARKIN_TIMEOUT is '{text}'; it must be a number of seconds"),
        join_processes(),
    ):
        pass


def test_quiet_and_verbose_go_anywhere(tmp_path: Path) -> None:
    """Without a terminal: lines for steps that take time, for all of them with --verbose, for none with --quiet."""
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(300, 4)))
    out = "--out", tmp_path / "idx", "--json", "--overwrite"
    command = "compress", tmp_path / "X.npy", "--bytes", 1, "--centroids", 16, *out
    log = run(*command, "--verbose").stderr.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d nearkin compress began", log[0])
    assert any(re.fullmatch(r"\d\d:\d\d:\d\d train: \d+\.\d s", line) for line in log)
    assert re.fullmatch(r"\d\d:\d\d:\d\d done in \d+\.\d s", log[-1])
    quiet = run("--quiet", *command, "--threads", 1)
    assert not quiet.stderr
    assert json.loads(quiet.stdout)["threads"] == 1
    refused("--threads is 0; it must be at least 1", *command, "--threads", 0)
    assert run(*command, "--quiet", "--verbose").exit_code == 2


@each("content", ["[]", "{"])
def test_a_record_that_cannot_be_is_one_line(tmp_path, content):
    """Before: an unexpected KeyError."""
    nk.Index.build(np.eye(3, dtype=np.float32)).save(tmp_path / "idx")
    (tmp_path / "idx" / "evaluation.json").write_text(content)
    refused("damaged", "report", tmp_path / "idx", "--out", tmp_path / "page.html")


def test_any_command_reads_text_as_told(tmp_path: Path) -> None:
    """`compress X.csv` named --delimiter in its error, and had no such option."""
    rows = [f"Zoë{row}::{row}.5::{row % 7}" for row in range(40)]
    (tmp_path / "X.csv").write_text("\n".join(["id::f0::f1", *rows]), encoding="cp1252")
    words = ("compress", tmp_path / "X.csv", "--method", "int8", "--out", tmp_path / "idx")
    assert "--encoding cp1252" in run(*words).stderr
    made = run(*words, "--delimiter", "::", "--encoding", "cp1252", "--header", "--json")
    assert made.exit_code == 0, made.stderr
    assert nk.Index.load(tmp_path / "idx").ids.tolist()[0] == "Zoë0"
