"""Whole journeys through the command line, on files as people have them: headers, names, times, semicolons."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run, run_json

pytestmark = pytest.mark.usefixtures("few_rounds", "few_draws")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def done(*args: object) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_searcher(rng: np.random.Generator) -> None:
    """Vectors with names to an index, judged, searched, changed, compared, turned for another."""
    centres = rng.normal(size=(8, 12)) * 3
    X = (centres[rng.integers(8, size=1200)] + rng.normal(size=(1200, 12))).astype(np.float32)
    np.save("X.npy", X[:1100])
    np.save("Q.npy", X[1100:1120])
    np.save("more.npy", X[1120:1122])
    Path("names.csv").write_text("name\n" + "".join(f"doc {i}\n" for i in range(1100)))
    Path("new_names.csv").write_text("name\nnew a\nnew b\n")
    Path("asked.csv").write_text("question\n" + "".join(f"q{i}\n" for i in range(20)))
    small = ("--bytes", 3, "--centroids", 16, "--ids", "names.csv", "--keep-vectors", "--json")
    done("compress", "X.npy", *small, "--out", "idx")
    done("compress", "X.npy", *small, "--method", "none", "--out", "plain")
    for index in ("idx", "plain"):
        options = ("--base", "X.npy", "-k", 10, "--oversample", 4)
        judged = run_json("evaluate", index, "Q.npy", *options)
        assert judged["searches"][0]["10-recall@10"] <= judged["10-recall@10"]
    options = ("-k", 10, "--oversample", 4, "--query-ids", "asked.csv", "--out", "hits.csv")
    done("search", "plain", "Q.npy", *options)
    hits = rows_of("hits.csv")
    exact = np.argsort(((X[1100:1120, None] - X[None, :1100]) ** 2).sum(-1), axis=1)[:, :10]
    truth = {(f"q{q}", f"doc {i}") for q in range(20) for i in exact[q]}
    share = len(truth & {(hit["query"], hit["id"]) for hit in hits}) / 200
    assert share == pytest.approx(judged["10-recall@10"])
    done("report", "idx", "plain", "--out", "both.html")
    done("add", "idx", "more.npy", "--ids", "new_names.csv")
    done("remove", "idx", "doc 0", "doc 1")
    found = run_json("search", "idx", "more.npy", "-k", 1, "--oversample", 100)["hits"]
    assert [hit["ids"] for hit in found] == [["new a"], ["new b"]]
    assert run_json("check", "idx")["verified"]
    done("rotate", "X.npy", "--for", "qdrant-binary", "--out", "X_rot.npy")
    done("rotate", "Q.npy", "--with", "X_rot.rotation", "--out", "Q_rot.npy")


def test_the_recommender(rng: np.random.Generator) -> None:
    """Listens with times to recommendations for everybody, tomorrow's listens, a newcomer, a code of the artists."""
    user = rng.integers(50, size=1000)
    artist = user % 5 * 10 + rng.integers(10, size=1000)
    lines = [f"u{a};Artist {b};2024-01-{1 + i // 40:02d}" for i, (a, b) in enumerate(zip(user, artist, strict=True))]
    Path("listens.csv").write_text("\n".join(["user_id;artist;timestamp", *lines]) + "\n")
    shown = done("embed", "listens.csv", "--dim", 8, "--split", "time", "--tables", "parquet", "--out", "emb")
    assert "popularity" in shown
    assert "user_id" in shown
    done("recommend", "emb", "--all", "-k", 5, "--out", "recs.csv")
    seen = {tuple(line.split(";")[:2]) for line in lines}
    recs = rows_of("recs.csv")
    assert {row["user_id"] for row in recs} == {f"u{i}" for i in range(50)}
    assert not seen & {(row["user_id"], row["artist"]) for row in recs}
    assert "Artist" in done("similar", "emb", "Artist 3")
    Path("today.csv").write_text("user_id;artist;timestamp\nu0;Artist 1;2024-02-01\nnewbie;Artist 2;2024-02-01\n")
    assert run_json("embed", "today.csv", "--start", "emb", "--out", "emb")["left"] == 51
    Path("stock.csv").write_text("artist\nArtist 1\nArtist 2\n")
    some = run_json("recommend", "emb", "u0", "--candidates", "stock.csv", "--with-seen")["answers"][0]["ids"]
    assert set(some) == {"Artist 1", "Artist 2"}
    Path("guest.csv").write_text("user_id;artist\nguest;Artist 30\nguest;Artist 31\n")
    guest = run_json("recommend", "emb", "--history", "guest.csv", "-k", 4)["answers"][0]
    assert {int(name.split()[1]) // 10 for name in guest["ids"]} == {3}
    done("compress", "emb", "--bytes", 4, "--centroids", 16, "--out", "idx")
    done("search", "idx", "emb", "-k", 5, "--out", "hits.csv")
    assert {hit["query"] for hit in rows_of("hits.csv")} == {f"u{i}" for i in range(50)} | {"newbie"}
    done("report", "emb")
    assert "artist" in Path("emb/report.html").read_text()


def test_the_psychologist(rng: np.random.Generator) -> None:
    """Answers with response times to a map, its table, the next questions, and what is like what."""
    points = rng.normal(size=(12, 2))
    names = [f"tone {i}" for i in range(12)]
    lines = []
    for _ in range(700):
        anchor, left, right = rng.permutation(12)[:3]
        nearer = np.linalg.norm(points[anchor] - points[left]) < np.linalg.norm(points[anchor] - points[right])
        choice = "left" if nearer else "right"
        lines.append(f"{names[anchor]};{names[left]};{names[right]};{choice};{rng.integers(400, 2000)}")
    Path("answers.csv").write_text("\n".join(["ref;left;right;response;rt", *lines]) + "\n")
    made: dict[str, Any] = run_json("embed", "answers.csv", "--next-queries", 5, "--tables", "parquet", "--out", "map")
    assert made["signals"] == "comparisons"
    assert made["held_out_error"] < 0.15
    table = rows_of("map/coordinates.csv")
    assert {row["object"] for row in table} == set(names)
    assert Path("map/coordinates.parquet").is_file()
    assert len(rows_of("map/questions.csv")) == 5
    likes = run_json("similar", "map", "tone 0", "-k", 3)["answers"][0]
    assert set(likes["ids"]) <= set(names)
    done("report", "map")
    assert "<svg" in Path("map/report.html").read_text()
    done("compress", "map", "--method", "int8", "--out", "idx")
    assert run_json("search", "idx", "map", "-k", 1)["hits"][0]["ids"] == [table[0]["object"]]


def test_the_operator(rng: np.random.Generator) -> None:
    """Every record names its threads, a log has a line for each step, errors are one line, folders can be checked."""
    np.save("X.npy", rng.normal(size=(500, 8)).astype(np.float32))
    result = run("--verbose", "compress", "X.npy", "--bytes", 4, "--centroids", 16, "--out", "idx", "--json")
    assert json.loads(result.stdout)["seconds"]
    assert " train: " in result.stderr
    for command in (
        ("search", "idx", "X.npy", "-k", 1),
        ("evaluate", "idx", "X.npy", "--base", "X.npy"),
        ("check", "idx"),
    ):
        assert run_json(*command)["threads"] >= 1
    wrong = run("search", "idx", "nothing.npy")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    model = nk.Index.load("idx")
    assert len(model) == 500
