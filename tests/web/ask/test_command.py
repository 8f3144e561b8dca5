"""`nearkin ask` as a process: its records, its files, and how it ends."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import refused, run
from tests.processes import Program


@pytest.fixture
def things(tmp_path: Path) -> Path:
    path = tmp_path / "things.csv"
    path.write_text("id\nred\ngreen\nblue\ngrey\n", encoding="utf-8")
    return path


@contextmanager
def asking(things: Path, *options: str) -> Iterator[tuple[Program, dict]]:
    """A running `nearkin ask ... --json`, and its first record."""
    words = ["ask", str(things), "--out", str(things.with_name("answers.csv")), "--port", "0", "--json", *options]
    process = Program("nearkin", *words)
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.close()


def call(link: str, path: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{link}{path}", data, {"Content-Type": "application/json"})) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_a_signal_ends_it_in_order_with_its_counts(things: Path, number: signal.Signals) -> None:
    """SIGTERM ended it with -15, before the files were closed."""
    with asking(things, "--names", "anna") as (process, began):
        assert (began["items"], began["answers"], began["raters"]) == (4, 0, 1)
        link = began["links"]["raters"]
        key = began["links"]["named"]["anna"].rpartition("/")[2]
        assert call(link, f"api/r/{key}/question") == {"begin": True}
        call(link, "api/join", {"key": key, "agreed": True})
        question = call(link, f"api/r/{key}/question")
        call(link, f"api/r/{key}/answer", {"question": question["question"], "choice": 0, "seconds": 1})
        process.send_signal(number)
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        assert errors == ""
        ended = json.loads(out)
    assert (ended["answers"], ended["raters"]) == (1, 1)
    assert (ended["error"], ended["left_out"], ended["max_wrong"]) == (None, [], None)
    assert Path(ended["out"]).read_text(encoding="utf-8").count("\n") == 2
    assert Path(ended["journal"]).is_file()


def test_what_stands_at_out_is_neither_replaced_nor_taken_up_unasked(things: Path) -> None:
    out = things.with_name("answers.csv")
    for name in ("answers.csv", "answers.csv.journal"):
        there = things.with_name(name)
        there.write_text("anchor,near,far\nred,green,blue\n")
        refused(f"{name} exists; --resume", "ask", things, "--out", out, "--port", 0)
        there.unlink()
    out.write_text("anchor,near,far\nred,green,blue\n")
    refused("put the journal back", "ask", things, "--out", out, "--port", 0, "--resume")
    assert out.read_text() == "anchor,near,far\nred,green,blue\n"


def test_a_second_server_on_one_file_or_one_port_is_refused(things: Path) -> None:
    """Both took answers. For a port, the server's own message and exit code 3 came, after the links."""
    with asking(things) as (_, began):
        second = run("ask", things, "--out", things.with_name("answers.csv"), "--port", 0, "--resume")
        port = began["links"]["raters"].split(":")[2].split("/")[0]
        said = run("ask", things, "--out", things.with_name("other.csv"), "--port", port)
    assert second.exit_code == said.exit_code == 2
    assert "in use by another `nearkin ask`" in second.stderr
    assert "give another port" in said.stderr
    assert not things.with_name("other.csv").exists()


RULES = "[rules]\nmax_wrong = 0\npractice = 1\nmin_seconds = 0.5\nbreak_every = 20\n"


def test_the_rules_of_a_study_reach_the_page(things: Path) -> None:
    """Texts, fields, practice, breaks, the least time, the rule for catch questions, and the bound on answers."""
    study, known = things.with_name("study.toml"), things.with_name("known.csv")
    study.write_text(
        'lang = "fr"\nconsent = "Oui."\n[[fields]]\nname = "age"\nnumber = true\n' + RULES, encoding="utf-8"
    )
    known.write_text("anchor,near,far\nred,green,blue\n")
    options = ["--study", study, "--catch", known, "--goal", 3, "--finish", "C0DE", "--names", "anna"]
    with asking(things, *map(str, options)) as (_, began):
        link, key = began["links"]["raters"], began["links"]["named"]["anna"].rpartition("/")[2]
        about = call(link, "api/about")
        assert (about["words"]["lang"], about["words"]["consent"]) == ("fr", "Oui.")
        assert (about["fields"], about["goal"]) == ([{"name": "age", "number": True}], 3)
        assert (about["break_every"], about["min_seconds"]) == (20, 0.5)
        assert call(link, f"api/r/{key}/question") == {"begin": True}
        call(link, "api/join", {"key": key, "agreed": True, "fields": {"age": "30"}})
        assert call(link, f"api/r/{key}/question")["practice"]
        state = json.loads(urlopen(began["links"]["results"] + "state").read())
        assert (state["left_out"], state["max_wrong"]) == ([], 0)
    refused(
        "there are no catch questions; give catch too",
        "ask",
        things,
        "--out",
        things.with_name("b.csv"),
        "--port",
        0,
        "--study",
        study,
    )
