"""What every command keeps to: its help, its record, the names of its inputs, and what it may write over."""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, copytree
from typing import NamedTuple

import pytest

import nearkin as nk
from nearkin.cli.app import COMMANDS as LISTED
from nearkin.cli.app import command_of, summary
from tests.cli.conftest import refused, run, run_json
from tests.covering import each

COMMANDS = {name: command_of(name) for name in LISTED}
OUTPUTS = ("out", "checkpoint")
READ = {  # options that name files or folders and are read
    *("among", "exclude", "towers", "truth", "base", "labels", "query_labels", "queries", "query_ids", "qrels", "ids"),
    *("vectors", "texts", "images", "compare", "history", "candidates", "left_ids", "right_features", "new", "old"),
    *("with_", "folder", "folders", "index", "catch", "start"),
}


class Case(NamedTuple):
    """The smallest natural call of a command, with names of the folder `given`; the endings of its output, "" for a
    folder; and keys of its record that docs/promises.md keeps: more may come, none of these may go."""

    words: str
    endings: tuple[str, ...] = ()
    keys: str = ""


CHANGED = "folder seconds threads vectors vectors_before"
CASES = {
    "demo": Case("", ("",)),
    "ask": Case("names.csv", (".csv",)),
    "embed": Case("pairs.csv --dim 4", ("",), "data held_out left loss out pairs quality right threads"),
    "recommend": Case("emb --all", (".csv", ".tsv", ".npz"), "answers columns k out queries"),
    "similar": Case("emb --all", (".csv", ".tsv", ".npz"), "answers columns k out queries"),
    "sweep": Case(
        "X.npy --queries Q.npy --recall 0.5",
        (".html", ".npy", ".csv"),
        "choice choice_with_vectors data k metric query_shift queries queries_are_rows rows_in_file seconds seed "
        "target threads trials",
    ),
    "compress": Case(
        "X.npy --queries Q.npy --bytes 2 --centroids 16",
        ("",),
        "bytes_per_vector compression data dimensions distortion method metric seconds seed threads train trained_on "
        "vectors",
    ),
    "train": Case("pairs.csv --dim 4 --bytes 2 --split none", ("",), "bytes_per_vector loss pairs quality threads"),
    "search": Case(
        "idx Q.npy --query-ids names.csv", (".csv", ".tsv", ".npz"), "hits index k n_probe out oversample queries "
        "seconds threads",
    ),
    "report": Case("idx", (".html", ".npy"), "folder folders report threads"),
    "explore": Case("idx --labels names.csv", (".html",)),
    "rotate": Case("X.npy --for pgvector-bit --queries Q.npy", (".npy",), "chosen gain out rotation vectors"),
    "ids": Case("X.npy --levels 2 --codes 32", ("",), "codes items levels out seconds"),
    "bridge": Case("X.npy --old X.npy", ("",), "chosen kept old out pairs"),
    "export": Case("idx --to lance", ("",)),
    "evaluate": Case(
        "idx Q.npy --base X.npy -k 5",
        keys="1-recall@1 5-recall@5 bytes_per_vector compression distortion index k method n_probe oversample queries "
        "queries_per_second query_file searches seconds threads vectors",
    ),
    "check": Case("idx", keys="bytes damaged files folder format_version kind others threads"),
    "add": Case("idx Q.npy", keys=CHANGED),
    "remove": Case("idx 0 1", keys=CHANGED),
    "update": Case("idx Q.npy --retrain", keys="encoded_from folder vectors"),
    "watch": Case("idx X.npy", keys="again data drift gain k now"),
}  # fmt: skip
WRITERS = {name: case for name, case in CASES.items() if case.endings}


def typed(command: str, folder: Path) -> list[object]:
    return [folder / word if (folder / word).exists() else word for word in CASES[command].words.split()]


def keys(record: object) -> Iterator[str]:
    """The keys of a record and of those in it."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        yield str(key)
        yield from keys(value) if isinstance(value, dict | list) else ()


def test_every_command_and_output_is_tried_here() -> None:
    assert set(CASES) == set(COMMANDS)
    found = {name: [p.name for p in made.params if p.name in OUTPUTS] for name, made in COMMANDS.items()}
    assert {name for name, options in found.items() if options} == set(WRITERS)
    assert found["compress"] == ["out", "checkpoint"]
    paths = {p.name for made in COMMANDS.values() for p in made.params if p.metavar in ("FILE", "DIR", "DIR|FILE")}
    assert paths <= {*OUTPUTS, *READ}, "a new option: does it read or write?"
    told = {name for name, made in COMMANDS.items() if "overwrite" in (p.name for p in made.params)}
    assert told == set(WRITERS) - {"ask"}  # which goes on with what is there: --resume


@each("command", COMMANDS)
def test_help_has_examples_and_names_the_type_of_every_value(command: str) -> None:
    made, shown = COMMANDS[command], " ".join(run(command, "--help").stdout.split())
    options = [one for one in made.params if one.param_type_name == "option"]
    assert len(options) <= 16, [one.opts[0] for one in options]
    assert all(one.help for one in options)
    assert "--json" in shown
    assert not re.search(r"<(bool|float|int|list|str)", shown)
    assert 1 <= len(re.findall(rf"^- (?:nearkin|torchrun .* nearkin) {command}", made.help, re.MULTILINE)) <= 4
    assert "Parameters" not in made.help
    assert summary(command) in " ".join(run("--help").stdout.split()) or len(summary(command)) > 60


def test_arguments_of_one_name_have_one_text_or_two() -> None:
    """An argument means the same in each job; the type of its value is one."""
    texts, types = defaultdict(set), defaultdict(set)
    for one in (one for made in COMMANDS.values() for one in made.params):
        texts[one.name].add(one.help)
        types[one.name].add(one.metavar)
    own = "out queries vectors index ids metric codes levels recall names query_ids form left n_bytes loss"
    assert {name for name, found in texts.items() if len(found) > 2} <= set(own.split())
    several = "n_probe dim out names queries vectors"
    assert {name for name, found in types.items() if len(found) > 1} <= set(several.split())


@each("command", [name for name, case in CASES.items() if case.keys])
def test_the_record_is_one_line_of_json_and_a_page_for_people(command: str, given: Path, tmp_path: Path) -> None:
    folder = Path(copytree(given, tmp_path / "copy"))
    endings = [] if command in ("recommend", "similar", "search", "sweep", "report") else CASES[command].endings
    out = ["--out", tmp_path / f"out{endings[0]}"] if endings else []
    made = run(command, *typed(command, folder), *out, "--json")
    assert made.exit_code in (0, 1 if command == "watch" else 0), made.output
    assert made.stdout.count("\n") == 1
    record = json.loads(made.stdout)
    assert set(CASES[command].keys.split()) <= set(record)
    assert not [key for key in keys(record) if " " in key]
    folder = Path(copytree(given, tmp_path / "again"))
    shown = run(command, *typed(command, folder), *out, *(["--overwrite"] if out else []))
    assert shown.exit_code == made.exit_code
    assert not re.search(r"[{}]|\bNone\b|nan\b", shown.stdout), shown.stdout


@each("command", [name for name in CASES if name != "demo"])
def test_a_missing_input_and_an_unknown_option_are_one_line(command: str, given: Path, tmp_path: Path) -> None:
    words = typed(command, given)
    out = ["--out", tmp_path / f"out{CASES[command].endings[0]}"] if CASES[command].endings else []
    for place in [place for place, word in enumerate(words) if isinstance(word, Path)]:
        refused("does not exist", command, *words[:place], tmp_path / "gone.npy", *words[place + 1 :], *out)
    refused("No such option", command, *words, "--what", *out)
    assert not list(tmp_path.iterdir())


@each(("command", "ending"), [(name, end) for name, case in WRITERS.items() for end in case.endings])
def test_what_exists_stays(command: str, ending: str, given: Path, tmp_path: Path) -> None:
    mine = tmp_path / f"mine{ending}"
    if not ending:
        mine.mkdir()
    kept = mine if ending else mine / "letter.txt"
    kept.write_bytes(b"a,b\n1,2\n")
    text = "exists" if command == "ask" else "--overwrite to replace it"
    refused(text, command, *typed(command, given), "--out", mine)
    if command == "compress":
        refused("nearkin: ", command, *typed(command, given), "--checkpoint", mine, "--out", tmp_path / "idx")
    for out in () if ending else (mine, kept):
        refused("nearkin: ", command, *typed(command, given), "--out", out, "--overwrite")
    assert kept.read_bytes() == b"a,b\n1,2\n"


@each("command", WRITERS)
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
    for words in (("add", ".", given / "X.npy"), ("update", ".", given / "X.npy", "--retrain"), ("remove", ".", 3)):
        refused("current folder", *words)
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


@each("command", [name for name, case in WRITERS.items() if "" not in case.endings])
def test_no_input_is_replaced(command: str, given: Path, tmp_path: Path) -> None:
    """`sweep X.npy --out X.npy` and `rotate X.npy --out X.npy` put their output in the vectors' place."""
    folder = Path(copytree(given, tmp_path / "copy"))
    arguments = typed(command, folder)
    for name in [a for a in arguments if isinstance(a, Path) and a.is_file()]:
        link = tmp_path / f"link{name.suffix}"
        link.symlink_to(name)
        before = name.read_bytes()
        for out in (name, link):
            refused("nearkin: ", command, *arguments, "--out", out, "--overwrite")
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
