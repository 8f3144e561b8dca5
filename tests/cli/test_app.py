"""The command line as a process: exit codes, quick help, Ctrl-C."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import nearkin as nk
from nearkin.cli.app import app, explained
from tests.cli.conftest import refused, run
from tests.faults.child import cpu_seconds
from tests.processes import Program
from tests.test_architecture import FILES, nodes, package

SRC = Path(nk.__file__).parents[1]


def test_no_command_shows_help_and_an_unknown_one_is_one_line() -> None:
    shown = run()
    assert shown.exit_code == 0
    assert shown.stdout.index("nearkin compress") < shown.stdout.index("Needed most") < shown.stdout.index("Maintain")
    assert run("--version").stdout.startswith(f"nearkin {nk.__version__}\npython ")
    refused("No such command 'compres'", "compres")


def test_no_text_below_the_command_line_names_an_option() -> None:
    """A user of Python reads arguments; the command line words them as options."""
    below = [path for path in FILES if package(path) != "cli"]
    wrong = [
        f"{path}:{node.lineno} {node.value!r}"
        for path in below
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"[ (]--[a-z]", node.value)
        if "\n" not in node.value
    ]
    assert not wrong, "\n".join(wrong)


def test_words_are_completed_by_the_shell() -> None:
    given = {"_NEARKIN_COMPLETE": "complete_bash", "COMP_WORDS": "nearkin compress --me", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="nearkin", env=given)
    assert result.stdout.split() == ["--method", "--metric"]
    assert "--install-completion" in run("--help").stdout


MISSING = "embed no.csv --out emb", "explore idx --labels no.txt:1", "sweep no.npy"
LOADED = f"""
import sys, nearkin.cli
from typer.testing import CliRunner
CliRunner().invoke(nearkin.cli.app.app, ["--help"])
print([m for m in ("numpy", "faiss", "torch", "sklearn") if m in sys.modules])
for words in {MISSING}:
    said = CliRunner().invoke(nearkin.cli.app.app, words.split()).stderr
    print([m for m in ("torch",) if m in sys.modules], said, end="")
"""


def test_help_and_the_name_of_a_missing_file_load_no_library(tmp_path: Path) -> None:
    """`nearkin embed` loaded torch and scikit-learn, for seconds, before it looked for its table."""
    given = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, env=given, cwd=tmp_path)
    of_help, *lines = done.stdout.splitlines()
    assert of_help == "[]", done.stderr
    assert len(lines) == len(MISSING)
    for line in lines:
        assert line.startswith("[] nearkin: no.")
        assert "does not exist; check the name" in line


STREAMS = {  # how a shell calls it, with "1|" for a pipe that nobody reads -> exit code
    "search idx Q.npy -k 3": 0,  # a table with ids that the terminal lacks
    "search idx größe.npy": 2,
    "search idx Q.npy --out hits.csv 1>&-": 0,
    "search idx Q.npy 0>&- 1>&- 2>&-": 0,
    "search idx no.npy 2>&-": 2,
    "search idx Q.npy --json 1|": 141,
    "search --help 1|": 141,
    "search idx no.npy 1| 2|": 2,
    "search idx Q.npy 1>/dev/full": 2,
}
# A process for each call, which opens its streams and ends as Python does; the libraries are imported once.
CALLS = """
import contextlib, os, sys
import narwhals, nearkin.jobs.inputs, nearkin.jobs.outputs, rich.progress
with contextlib.suppress(ImportError):
    import pydantic.type_adapter  # which typer uses where it is
from nearkin.cli import main
from nearkin.cli.app import nearkin
nearkin.Index.load("idx").search(nearkin.read_vectors("Q.npy"), 3)
codes = []
for call in os.fsdecode(sys.stdin.buffer.read()).splitlines():
    child = os.fork()
    if not child:
        break
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    sys.exit(print(codes))
sys.argv = ["nearkin"]
for word in call.split():
    number, how = word[:1], word[1:]
    if how == "|":
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, int(number))
    elif how == ">/dev/full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), int(number))
    elif how == ">&-":
        os.close(int(number))
        setattr(sys, ("stdin", "stdout", "stderr")[int(number)], None)
    else:
        sys.argv.append(word)
main()
"""


def test_a_terminal_may_lack_letters_and_streams_may_be_closed(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.save(tmp_path / "Q.npy", X)
    nk.Index.build(X, ids=[f"größe-{i}" for i in range(40)]).save(tmp_path / "idx")
    ascii_alone = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input="\n".join(STREAMS).encode(),
        cwd=tmp_path,
        capture_output=True,
        env=os.environ | ascii_alone | {"PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(SRC)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    assert dict(zip(STREAMS, codes, strict=True)) == STREAMS, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert rb"gr\xf6\xdfe-1" in done.stdout
    assert "größe-" in (tmp_path / "hits.csv").read_text(encoding="utf-8")


def test_what_is_embedded_and_recommended_is_printed_in_ascii(tmp_path: Path) -> None:
    """The work was done, and the command ended with code 2."""
    lines = [f"käufer-{i % 8},größe-{i % 7}" for i in range(40)]
    (tmp_path / "pairs.csv").write_text("\n".join(["käufer,ware", *lines]), encoding="utf-8")
    embed = f"embed {tmp_path}/pairs.csv --left käufer --right ware --dim 2 --loss all-pairs --out {tmp_path}/emb"
    for words in (embed, f"recommend {tmp_path}/emb --all -k 2"):
        result = CliRunner(charset="ascii").invoke(app, words.split())
        assert result.exit_code == 0, result.stderr
        assert rb"k\xe4ufer" in result.stdout_bytes


def test_ctrl_c_is_130_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The command is at work, for seconds more, when the signal comes."""
    X = tmp_path / "X.npy"
    np.save(X, np.random.default_rng(0).normal(size=(60_000, 64)).astype(np.float32))
    process = Program("nearkin", "compress", X, "--bytes", 32, "--method", "givens-steepest", "--out", tmp_path / "idx")
    while cpu_seconds(process.pid) < 0.8:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode in (130, -signal.SIGINT), err  # a shell reports both as 130
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_an_argument_without_an_option_is_named_as_one() -> None:
    line = explained(ValueError("a.csv:left=u has two; type weight='plays' or left='user'"), {"left": "--left"})
    assert line == "nearkin: a.csv:left=u has two; type FILE:weight=plays or --left user"
