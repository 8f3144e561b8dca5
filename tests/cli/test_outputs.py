"""What commands write replaces nothing without --overwrite, and never an input: over all commands."""

import subprocess
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, copytree

import numpy as np
import pytest

import nearkin as nk
from nearkin.cli.app import COMMANDS as LISTED
from nearkin.cli.app import command_of
from tests.cli.conftest import refused, run, run_json
from tests.covering import each

COMMANDS = {name: command_of(name) for name in LISTED}
OUTPUTS = ("out", "checkpoint")
READ = {  # options that name files or folders and are read
    *("among", "exclude", "towers", "truth", "base", "labels", "query_labels", "queries", "query_ids", "qrels"),
    *("ids", "vectors"),
    *("texts", "images", "compare", "history", "candidates", "left_ids", "right_features"),
    *("new", "old", "with_", "folder", "folders", "index", "catch", "start"),
}
# command -> (its arguments with names of the folder `given`, the endings of its output: "" for a folder)
CASES = {
    "demo": ("", ("",)),
    "ask": ("names.csv", (".csv",)),
    "embed": ("pairs.csv", ("",)),
    "recommend": ("emb --all", (".csv", ".tsv", ".npz")),
    "similar": ("emb --all", (".csv", ".tsv", ".npz")),
    "sweep": ("X.npy --queries Q.npy", (".html", ".npy", ".csv")),
    "compress": ("X.npy --queries Q.npy --bytes 2", ("",)),
    "train": ("pairs.csv", ("",)),
    "search": ("idx Q.npy --query-ids names.csv", (".csv", ".tsv", ".npz")),
    "report": ("idx", (".html", ".npy")),
    "explore": ("idx --labels names.csv", (".html",)),
    "rotate": ("X.npy --for pgvector-bit --queries Q.npy", (".npy",)),
    "ids": ("X.npy --levels 2 --codes 32", ("",)),
    "bridge": ("X.npy --old X.npy", ("",)),
    "export": ("idx --to lance", ("",)),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("given")
    widths = np.geomspace(4, 0.2, 8)  # else `rotate` finds no rotation to learn
    np.save(folder / "X.npy", (widths * rng.normal(size=(300, 8))).astype(np.float32))
    np.save(folder / "Q.npy", rng.normal(size=(30, 8)).astype(np.float32))
    pairs = "".join(f"u{u},i{i}\n" for u, i in rng.integers(0, 20, (200, 2)))
    (folder / "pairs.csv").write_text("user,item\n" + pairs)
    (folder / "names.csv").write_text("id\n" + "".join(f"n{i}\n" for i in range(30)))
    run_json("compress", folder / "X.npy", "--bytes", 2, "--centroids", 16, "--out", folder / "idx")
    assert run("embed", folder / "pairs.csv", "--dim", 4, "--out", folder / "emb").exit_code == 0
    return folder


def typed(command: str, folder: Path) -> list[object]:
    return [folder / word if (folder / word).exists() else word for word in CASES[command][0].split()]


def test_every_output_of_every_command_is_tried_here() -> None:
    found = {name: [p.name for p in made.params if p.name in OUTPUTS] for name, made in COMMANDS.items()}
    assert {name for name, options in found.items() if options} == set(CASES)
    assert found["compress"] == ["out", "checkpoint"]
    paths = {p.name for made in COMMANDS.values() for p in made.params if p.metavar in ("FILE", "DIR", "DIR|FILE")}
    assert paths <= {*OUTPUTS, *READ}, "a new option: does it read or write?"


def test_every_command_that_writes_overwrites_when_told() -> None:
    told = {name for name, made in COMMANDS.items() if "overwrite" in (p.name for p in made.params)}
    assert told == set(CASES) - {"ask"}  # which goes on with what is there: --resume


@each(("command", "ending"), [(name, end) for name, (_, ends) in CASES.items() for end in ends])
def test_what_exists_stays(command: str, ending: str, given: Path, tmp_path: Path) -> None:
    mine = tmp_path / f"mine{ending}"
    if ending:
        mine.write_bytes(b"a,b\n1,2\n")
        kept = mine
    else:
        mine.mkdir()
        kept = mine / "letter.txt"
        kept.write_bytes(b"dear")
    before = kept.read_bytes()
    for option in ("--out", *(["--checkpoint"] if command == "compress" else [])):
        rest = [] if option == "--out" else ["--out", tmp_path / "idx"]
        result = run(command, *typed(command, given), option, mine, *rest)
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith("nearkin: ")
        if command != "ask" and option == "--out":
            assert "--overwrite to replace it" in result.stderr
        assert kept.read_bytes() == before
    if not ending:
        for out in (mine, kept):
            result = run(command, *typed(command, given), "--out", out, "--overwrite")
            assert result.exit_code == 2
            assert kept.read_bytes() == before


@each("command", CASES)
@each("out", ["", " ", ".", "..", "/"])
def test_an_empty_name_and_the_current_folder_are_no_outputs(
    command: str, out: str, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out "$UNSET"` replaced the current folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    text = "current folder" if out.strip() else "the name to write to"
    for told in ([], [] if command == "ask" else ["--overwrite"]):
        refused(text, command, *typed(command, given), "--out", out, *told)
    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


def test_nothing_saves_over_the_current_folder(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copytree(given / "idx", tmp_path / "idx")
    monkeypatch.chdir(tmp_path / "idx")
    before = sorted((file.name, file.stat().st_ino) for file in Path().iterdir())
    for command in ("add", "update"):
        refused("current folder", command, ".", given / "X.npy", *(["--retrain"] if command == "update" else []))
    refused("current folder", "remove", ".", 3)
    index = nk.Index.load(".")
    for name in ("", ".", "/", "..", Path()):
        with pytest.raises(ValueError, match=r"name to write to|current folder"):
            index.save(name, overwrite=True)
    assert sorted((file.name, file.stat().st_ino) for file in Path().iterdir()) == before


def test_commands_are_printed_as_they_are_typed(given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell reads each line back into the words that were meant, whatever the names: nothing of a name runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("my $(touch PWN)", "-x", "it's `id`", "two\nlines"):
        X, idx, emb = copy(given / "X.npy", f"./{name}.npy"), f"./{name} idx", f"./{name} emb"
        code = ["--bytes", 2, "--centroids", 16]
        said = run("compress", X, *code, "--out", idx).stdout + run("update", idx, X, "--retrain").stdout
        said += run("ids", X, "--levels", 2, "--codes", 32, "--out", f"{idx} ids").stdout
        said += run("embed", given / "pairs.csv", "--dim", 4, "--out", emb).stdout
        lines = [line for line in said.splitlines() if line.startswith("Next: ")]
        assert len(lines) == 4, said
        for line in lines:
            listed = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout
            words = [word.removesuffix(",") for word in listed.decode().split("\0")]
            assert {idx, f"{idx} ids", emb} & set(words), line
    assert not (tmp_path / "PWN").exists()


def test_words_behind_two_dashes_are_no_options(given: Path) -> None:
    for word in ("--quiet", "--log", "--header", "--keep-vectors"):
        refused(f"{word!r} is not among", "similar", given / "emb", "--", word)


@each("command", [name for name, (_, ends) in CASES.items() if "" not in ends])
def test_no_input_is_replaced(command: str, given: Path, tmp_path: Path) -> None:
    """`sweep X.npy --out X.npy` and `rotate X.npy --out X.npy` put their output in the vectors' place."""
    folder = Path(copytree(given, tmp_path / "copy"))
    arguments = typed(command, folder)
    for name in [a for a in arguments if isinstance(a, Path) and a.is_file()]:
        link = tmp_path / f"link{name.suffix}"
        link.symlink_to(name)
        for out in (name, link):
            before = name.read_bytes()
            result = run(command, *arguments, "--out", out, "--overwrite")
            assert result.exit_code == 2, result.output
            assert name.read_bytes() == before
        link.unlink()


def test_a_table_of_answers_that_is_also_read_stays(given: Path, tmp_path: Path) -> None:
    """A file of nearkin's own kind, and yet an input."""
    hits, idx, Q = tmp_path / "hits.csv", given / "idx", given / "Q.npy"
    run_json("search", idx, Q, "--out", hits)
    refused("is an input", "search", idx, Q, "--query-ids", f"{hits}:query", "--out", hits, "--overwrite")


@each(
    ("command", "name"),
    [
        *(("search", "hits.csv"), ("search", "hits.parquet"), ("similar", "like.csv"), ("sweep", "page.html")),
        *(("report", "page.html"), ("explore", "page.html"), ("rotate", "turned.npy"), ("rotate", "turned.parquet")),
    ],
)
def test_overwrite_replaces_a_file(command: str, name: str, given: Path, tmp_path: Path) -> None:
    if command == "explore" and not find_spec("starlette"):
        return
    more = {"explore": ["--rows", "20", "-k", "3"]}.get(command, [])
    arguments = [a for a in typed(command, given) if a not in ("--query-ids", "--labels", given / "names.csv")]
    for content, told in (("", []), ("mine", ["--overwrite"])):  # `mktemp` makes an empty file: nothing is lost
        (tmp_path / name).write_text(content)
        result = run(command, *arguments, *more, "--out", tmp_path / name, *told)
        assert result.exit_code == 0, result.output
    assert (tmp_path / name).stat().st_size > len(content)


def test_a_report_of_the_users_own_stays_and_one_of_nearkin_is_written_again(given: Path, tmp_path: Path) -> None:
    """The default output: FOLDER/report.html."""
    idx = Path(copytree(given / "idx", tmp_path / "idx"))
    (idx / "report.html").write_text("<html>mine</html>")
    assert run("report", idx).exit_code == 2
    assert (idx / "report.html").read_text() == "<html>mine</html>"
    assert run("report", idx, "--overwrite").exit_code == 0
    assert run("report", idx).exit_code == 0
    assert run_json("check", idx)["others"] == []
