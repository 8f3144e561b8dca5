"""The page over HTTP: behind a token, no code of other people, files by number only."""

import io
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from nearkin.web.explore import Explorer, explore_app
from tests.cli.conftest import run
from tests.web.explore.conftest import HOSTILE, N


@pytest.fixture
def client(explorer: Explorer):
    with TestClient(explore_app(explorer, "token")) as made:
        yield made


def test_the_page_and_what_it_asks_for(client: TestClient, explorer: Explorer) -> None:
    about = client.get("/token/about").json()
    assert (about["rows"], about["shown"], about["k"], about["oversamples"]) == (N, N, 5, [2, 8, 32])
    assert [column["name"] for column in about["layouts"]] == ["pca", "neighbours"]
    assert {"error0", "lost0", "error1", "lost1"} <= {column["name"] for column in about["colours"]}
    assert about["columns"] == ["label"]
    assert client.get("/token/values?name=label").json() == [str(n % 3) for n in range(N)]
    assert client.get("/token/values?name=id").json()[1:3] == ["item-1", "item-2"]
    places = np.frombuffer(client.get("/token/column/pca").content, "<f4").reshape(-1, 2)
    np.testing.assert_allclose(places, explorer.columns.layouts["pca"].values, rtol=1e-5)
    assert np.frombuffer(client.get("/token/column/rows").content, "<i4").tolist() == list(range(N))
    answer = client.get("/token/item/7").json()
    assert answer == json.loads(json.dumps(explorer.item(7)))
    assert [found["id"] for found in client.get("/token/find?text=item-33").json()] == ["item-33"]
    rows = client.get("/token/rows?at=7,119").json()
    assert {row: thing["id"] for row, thing in rows.items()} == {"7": "item-7", "119": "item-119"}
    picture = Image.open(io.BytesIO(client.get("/token/picture/7").content))
    assert picture.size == (8, 8)


def test_without_the_token_there_is_nothing(client: TestClient) -> None:
    for path in ("", "about", "column/pca", "item/0", "rows?at=0", "values?name=id", "find?text=a", "picture/0"):
        assert client.get(f"/wrong/{path}").status_code == 404, path
    assert client.get("/").status_code == 404


def test_what_is_not_there(client: TestClient) -> None:
    for path in (
        *(
            "column/nothing",
            "values?name=nothing",
            "column/../about2",
            "picture/../../etc/passwd",
            "picture/%2e%2e%2fX.npy",
        ),
        *("item/seven", "item/-1", "picture/-1", "picture/0.png"),
    ):
        assert client.get(f"/token/{path}").status_code == 404, path
    assert client.get("/token/rows?at=one").status_code == 400
    for path in (f"item/{N}", f"picture/{N}", f"rows?at=0,{N}"):
        said = client.get(f"/token/{path}")
        assert said.status_code == 400, path
        assert f"at most {N - 1}" in said.json()["error"]
    assert client.post("/token/item/0").status_code == 405
    assert client.get("/token/about", headers={"host": "evil.example"}).status_code == 400


def test_every_answer_forbids_foreign_and_inline_code(client: TestClient) -> None:
    for path in ("/token/", "/token/about", "/token/item/0", "/static/explore.js", "/static/map.js", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert not re.search(r"<script>|<style|\bon\w+=|style=", client.get("/token/").text)


def test_names_go_out_as_data_only(client: TestClient) -> None:
    answer = client.get("/token/item/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["about"]["0"]["id"] == HOSTILE


def test_the_command_prints_a_link_that_opens_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []

    def serve(app: Starlette, at: socket.socket, announce: Callable[[dict], None], links: dict) -> None:
        announce(links)
        served.append((app, at.getsockname()))

    monkeypatch.setattr("nearkin.web.serving.run", serve)
    words = "explore", folder / "idx", "--vectors", folder / "X.npy", "--port", 0
    said = run(*words)
    assert said.exit_code == 0, said.output
    ((app, (host, port)),) = served
    assert host == "127.0.0.1"  # this computer only, unless told
    (link,) = re.findall(rf"http://127.0.0.1:{port}(/[\w-]{{20,}}/)", said.stdout)
    began, ended = map(json.loads, run(*words, "--json").stdout.splitlines())
    assert began["link"].startswith("http://127.0.0.1:")
    assert ended["rows"] == began["rows"] == N
    assert ended["indexes"][0]["name"] == "idx"
    with TestClient(app) as client:
        assert client.get(f"{link}about").json()["rows"] == N
        assert client.get("/about").status_code == 404
