"""The five jobs of examples/journeys, command by command, on small files as people have them."""

import csv
import gzip
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run
from tests.journeys.test_stumbling_blocks import survey

pd = pytest.importorskip("pandas")  # not among the lowest versions
SCRIPTS = Path(__file__).parents[2] / "examples" / "journeys"
pytestmark = pytest.mark.usefixtures("few_fits", "few_draws")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def done(*command: str) -> str:
    result = run(*command)
    verdicts = (0, 1) if command[0] == "watch" else (0,)  # 1: a drift, which a hundred new rows may show by chance
    assert result.exit_code in verdicts, f"nearkin {shlex.join(command)}\n{result.output}"
    return result.stdout


def journey(name: str, *more: str) -> list[str]:
    """Run the script's commands, `more` added to the first; what each prints."""
    lines = (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("nearkin ")]
    assert 1 <= len(commands) <= 5
    assert all(line.startswith(("nearkin ", "#")) for line in lines), "commands alone, no Python"
    commands[0] += more
    return [done(*command) for command in commands]


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def vectors(rng: np.random.Generator, n: int, centres: np.ndarray) -> np.ndarray:
    return (centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, centres.shape[1]))).astype(np.float32)


def test_packages(rng: np.random.Generator) -> None:
    centres = rng.normal(size=(8, 32)) * 2
    X, Q = vectors(rng, 900, centres), vectors(rng, 40, centres)
    names, about = [f"package-{i}" for i in range(900)], [f"does thing {i}" for i in range(900)]
    pd.DataFrame({"package": names, "description": about, "embedding": list(X)}).to_parquet("packages.parquet")
    pd.DataFrame({"question": [f"question {i}" for i in range(40)], "embedding": list(Q)}).to_parquet(
        "questions.parquet"
    )
    shown = journey("packages")
    assert "nearkin compress packages.parquet" in shown[0]
    X, Q = (Y / np.linalg.norm(Y, axis=1, keepdims=True) for Y in (X, Q))
    exact = np.argsort(-Q @ X.T, axis=1)[:, :10]
    truth = {(f"question {q}", f"package-{i}") for q in range(40) for i in exact[q]}
    kept = len(truth & {(hit["query"], hit["id"]) for hit in rows_of("hits.csv")}) / 400
    assert f"{kept:.4g}" in shown[2], "what evaluate prints is what search gives"
    assert Path("packages/report.html").is_file()


def test_ratings(rng: np.random.Generator) -> None:
    user, movie = rng.integers(60, size=2400), rng.integers(40, size=2400)
    likes = user % 4 == movie % 4
    stars = np.clip(np.where(likes, 4.5, 2) + rng.integers(-1, 2, 2400) / 2, 0.5, 5)
    times = [f"2024-01-{1 + n // 100:02d}T12:00:00+01:00" for n in range(2400)]
    lines = [f"u{u},m{m},{s},{t}\n" for u, m, s, t in zip(user, movie, stars, times, strict=True)]
    head = "user,movie,rating,time\n"
    Path("ratings.csv.gz").write_bytes(gzip.compress((head + "".join(lines[:2000])).encode()))
    Path("later.csv").write_text(
        head + "".join(line for line, liked in zip(lines[2000:], likes[2000:], strict=True) if liked)
    )
    Path("movies.csv").write_text("movie,genre,year\n" + "".join(f"m{m},g{m % 4},{1990 + m}\n" for m in range(41)))
    Path("guests.csv").write_text(head + "".join(f"guest,{m},5,2024-03-01\n" for m in ("m0", "m4", "m8", "unheard")))
    shown = journey("ratings", "--loss", "all-pairs", "--dim", "8")
    assert "two towers without features" in shown[0]
    measures = [line.split() for line in shown[1].splitlines() if line.split()[:1] in (["two"], ["popularity"])]
    assert float(measures[0][2]) > 1.3 * float(measures[1][1]), shown[1]
    seen = {tuple(line.split(",")[:2]) for line, s in zip(lines[:2000], stars, strict=False) if s >= 4}
    recs = rows_of("recs.csv")
    assert not seen & {(row["user"], row["movie"]) for row in recs}
    assert sum(int(row["movie"][1:]) % 4 == 0 for row in rows_of("guests_recs.csv")) >= 6


def test_shop(rng: np.random.Generator) -> None:
    def day(name: str, n: int, date: str) -> None:
        user, item = rng.integers(80, size=n), rng.integers(8, size=n)
        rows = [(f"k{u}", f"a{u % 5 * 8 + i}") for u, i in zip(user, item, strict=True)]
        rows = [
            {"customer": k, "product": a, "bought": f"{date} {9 + n % 9:02d}:00:00"} for n, (k, a) in enumerate(rows)
        ]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    day("log.jsonl", 1200, "2024-01-13")
    day("today.jsonl", 200, "2024-01-14")
    day("tomorrow.jsonl", 200, "2024-01-15")
    with Path("today.jsonl").open("a") as file:
        file.write(json.dumps({"customer": "new", "product": "brand-new", "bought": "2024-01-14 20:00:00"}) + "\n")
    Path("sold_out.txt").write_text("a3\ngone-long-ago\n")
    Path("in_stock.txt").write_text("\n".join([*(f"a{i}" for i in range(20)), "brand-new", "not-yet-sold"]))
    roles = ("--left", "customer", "--right", "product", "--timestamp", "bought")
    done("embed", "log.jsonl", *roles, "--loss", "all-pairs", "--dim", "8", "--out", "shop")
    done("compress", "shop", "--method", "int8", "--out", "idx")
    shown = journey("shop")
    assert "two towers before" in shown[0]
    assert "timestamp = bought" in shown[0]
    index = nk.Index.load("idx")
    assert len(index) == 40, "40 items, one sold out, one new"
    assert {"brand-new"} <= set(index.ids.tolist())
    assert "a3" not in index.ids.tolist()
    assert {row["product"] for row in rows_of("recs.csv")} <= {*(f"a{i}" for i in range(20)), "brand-new"}
    assert "popularity" in shown[4]


@pytest.mark.usefixtures("no_pictures")
def test_colours(tmp_path: Path) -> None:
    answers = survey(tmp_path / "answers.csv")
    lines = answers.read_text().splitlines()
    answers.write_text("\n".join([*lines, "anna,red,blue,green,"]) + "\n")
    shown = journey("colours")
    assert "1 row with a missing cell left out" in shown[0]
    assert "felix answers the opposite of the others" in shown[0]
    record = json.loads(Path("map/config.json").read_text())["record"]
    assert record["held_out_error"] < 0.25
    assert len(rows_of("map/questions.csv")) == 11  # of 168 questions about eight colours, 157 were asked
    assert {"orange", "brown"} & set(shown[1].split()), "the neighbours of red on the circle"
    assert {"map.pdf", "dimension.pdf", "report.html"} <= {file.name for file in Path("map").iterdir()}


def test_shards(rng: np.random.Generator) -> None:
    centres = rng.normal(size=(8, 16)) * 2
    X = vectors(rng, 900, centres).astype(np.float16)
    Path("parts").mkdir()
    for number, (first, stop) in enumerate([(0, 300), (300, 800)]):
        part = {"id": [f"v{i}" for i in range(first, stop)], "vector": list(X[first:stop])}
        pd.DataFrame(part).to_parquet(f"parts/{number}.parquet")
    pd.DataFrame({"id": [f"v{i}" for i in range(790, 900)], "vector": list(X[790:])}).to_parquet("new.parquet")
    shown = journey("shards", "--centroids", "16")
    assert "800" in shown[0]
    assert len(nk.Index.load("idx")) == 900
    assert nk.Index.load("idx").ids[-1] == "v899"
