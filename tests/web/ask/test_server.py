"""The survey over HTTP: who may do what, what the pages may load, and that nothing of an item becomes code."""

import re
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from starlette.testclient import TestClient

from nearkin.web.ask import Plan, Survey, ask_app
from nearkin.web.ask.plan import shipped
from tests.web.ask.conftest import OpenSurvey

HOSTILE = '<script>alert("x")</script>'
NAMES = ["a", "b", HOSTILE, "d"]


@pytest.fixture
def survey(open_survey: OpenSurvey) -> Survey:
    words = shipped("en") | {"consent": "I agree"}
    made = open_survey(Plan(active=False, repeat_share=0.0, words=words, goal=5), NAMES)
    made.tokens = "token", "admin"
    return made


@pytest.fixture
def client(survey: Survey) -> Iterator[TestClient]:
    with TestClient(ask_app(survey), raise_server_exceptions=True) as made:
        yield made


def join(client: TestClient, name: str = "anna") -> str:
    return client.post("/token/api/join", json={"name": name, "agreed": True}).json()["key"]


def test_a_taken_name_gives_nobody_elses_key(client: TestClient, survey: Survey) -> None:
    """Who typed a taken name at the public link got that person's secret key, and two Marias became one."""
    keys = [join(client, name) for name in ("maria", "maria", "  maria ", "", "")]
    assert len(set(keys)) == 5
    assert [rater.name for rater in survey.raters.values()] == ["maria", "maria 2", "maria 3", "rater 1", "rater 2"]
    assert survey.invited("maria").key == keys[0]  # the experimenter's own list of links stays as it is
    state = client.get("/admin/results/state").text
    assert not any(key in state for key in keys)


def test_without_the_token_there_is_nothing(client: TestClient) -> None:
    for path in (
        "/",
        "/wrong/",
        "/token/results/",
        "/token/results/state",
        "/admin/",
        "/admin/api/about",
        "/wrong/media/0",
    ):
        assert client.get(path).status_code == 404, path
    assert client.post("/wrong/api/join", json={}).status_code == 404
    assert client.get("/admin/results/state").json()["answers"] == 0


def test_every_answer_forbids_foreign_and_inline_code(client: TestClient) -> None:
    for path in ("/token/", "/token/api/about", "/static/ask.js", "/nowhere", "/admin/results/"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    for page in ("/token/", "/admin/results/"):
        assert not re.search(r"<script>|<style|\bon\w+=|style=", client.get(page).text)


def test_other_hosts_long_bodies_and_strange_paths_are_refused(client: TestClient) -> None:
    assert client.get("/token/", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/token/api/join", json={"name": "x" * 70_000}).status_code == 413
    chunks = iter([b"x" * 1000] * 70)  # a body of undeclared length
    assert client.post("/token/api/join", content=chunks).status_code == 413
    assert client.post("/token/api/join", content=b"name=x").status_code == 415
    for body in (["x"], *({"parameters": given, "agreed": True} for given in ([], {"a": 1}, {"a": "x" * 201}))):
        assert client.post("/token/api/join", json=body).status_code == 400, body
    for path in (
        "/static/../serving.py",
        "/static/%2e%2e%2fserving.py",
        "/static/nothing.js",
        "/token/media/../1",
        "/token/media/99",
    ):
        assert client.get(path).status_code == 404, path


def test_texts_of_items_go_out_as_data_only(client: TestClient) -> None:
    key = join(client, HOSTILE)
    seen = set()
    for _ in range(12):
        shown = client.get(f"/token/api/r/{key}/question")
        assert shown.headers["content-type"] == "application/json"
        seen |= {item["text"] for item in shown.json()["items"]}
        client.post(f"/token/api/r/{key}/answer", json={"question": shown.json()["question"], "choice": 0})
    assert HOSTILE in seen
    state = client.get("/admin/results/state")
    assert state.json()["raters"][0]["name"] == HOSTILE
    told = client.get("/admin/results/votes").json()
    assert told["names"] == NAMES
    assert len(told["answers"]) == 12


LONG = b"9" * 400
WRONG = {  # bodies that are no answer to question 0
    "nested": b"[" * 60_000,
    "a long choice": b'{"question": 0, "choice": ' + LONG + b"}",
    "a long question": b'{"question": ' + LONG + b', "choice": 0}',
    "NaN": b'{"question": 0, "choice": 0, "seconds": NaN}',
    "text": b'{"question": 0, "choice": 0, "seconds": "1"}',
    "a list": b'{"question": 0, "choice": [[]]}',
    "syntax": b"{]",
    "bytes": b"\xff\xfe",
    "choice is 9": b'{"question": 0, "choice": 9}',
}


def test_what_cannot_be_an_answer_is_400_and_one_sentence(client: TestClient) -> None:
    """Brackets nested 60,000 deep and a number of 400 digits ended in a 500 and a traceback."""
    key, as_json = join(client), {"content-type": "application/json"}
    client.get(f"/token/api/r/{key}/question")
    for name, body in WRONG.items():
        said = client.post(f"/token/api/r/{key}/answer", content=body, headers=as_json)
        assert said.status_code == 400, name
        assert len(said.json()["error"]) < 200, name
        assert "choice is" not in name or name in said.json()["error"]
    long = b'{"question": 0, "choice": 0, "seconds": ' + LONG + b"}"  # a number, if a large one: it counts as a day
    assert client.post(f"/token/api/r/{key}/answer", content=long, headers=as_json).status_code == 200
    named = client.post("/token/api/join", content=b'{"name": [1]}', headers=as_json)
    assert (named.status_code, named.json()["error"]) == (400, "name must be text")
    assert client.get("/token/api/r/nobody/question").status_code == 400


def test_a_full_disk_is_said_and_the_question_stays_open(client: TestClient, survey: Survey) -> None:
    key = join(client)
    shown = client.get(f"/token/api/r/{key}/question").json()
    answer = {"question": shown["question"], "choice": 0}
    with patch.object(survey.journal, "append", side_effect=OSError(28, "No space left on device", "x")):
        said = client.post(f"/token/api/r/{key}/answer", json=answer)
    assert said.status_code == 503
    assert "No space left on device" in said.json()["error"]
    assert client.get(f"/token/api/r/{key}/question").json()["question"] == shown["question"]
    assert client.post(f"/token/api/r/{key}/answer", json=answer).json()["answered"] == 1
