"""`nearkin embed`: which of the two signals a table holds, and what comes out."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run, run_json

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pairs.csv of 60 readers who take books of their own group of six, answers.csv about 30 points of a plane."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    reader = rng.integers(60, size=900)
    book = reader % 6 * 8 + rng.integers(8, size=900)
    rows = "\n".join(f"r{a},b{b}" for a, b in zip(reader, book, strict=True))
    (folder / "pairs.csv").write_text(f"user,book\n{rows}\n")
    (folder / "renamed.csv").write_text(f"who,what\n{rows}\n")
    points, asked = rng.normal(size=(30, 2)), rng.permuted(np.tile(np.arange(30), (900, 1)), axis=1)[:, :3]
    distance = ((points[asked[:, :1]] - points[asked[:, 1:]]) ** 2).sum(-1)
    turned = distance[:, 0] > distance[:, 1]
    asked[turned] = asked[turned][:, [0, 2, 1]]
    (folder / "answers.csv").write_text("\n".join(["anchor,near,far", *(",".join(map(str, row)) for row in asked)]))
    return folder


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("pairs.csv", ()),
        ("renamed.csv", ("--left", "who", "--right", "what")),
    ],
)
def test_pairs_give_vectors_of_both_sides(tables: Path, tmp_path: Path, table: str, options: tuple[str, ...]) -> None:
    record = run_json("embed", tables / table, "--dim", 8, "--out", tmp_path / "emb", *options)
    assert (record["left"], record["right"], record["dim"]) == (60, 48, 8)
    model = nk.TwoTower.load(tmp_path / "emb")
    ids = model.recommend(["r0"], k=8, exclude_seen=False)[1]
    group = {f"b{i}" for i in range(8)}
    assert len(group & set(ids.ravel().tolist())) >= 7, ids


@pytest.mark.usefixtures("no_pictures")
def test_comparisons_give_a_map(tables: Path, tmp_path: Path) -> None:
    result = run("embed", tables / "answers.csv", "--out", tmp_path / "map")
    assert result.exit_code == 0, result.output
    assert "held out error" in result.stdout
    assert (tmp_path / "map" / "map.png").is_file()
    assert nk.OrdinalEmbedding.load(tmp_path / "map").embedding_.shape == (30, 2)


@pytest.mark.usefixtures("no_pictures")
def test_a_table_is_read_as_told_and_the_reading_is_printed(tmp_path: Path) -> None:
    """`ref,left,right,response,rt` became a recommender; two readings of a response stop."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(9)[:3].tolist() for _ in range(80)]
    path = tmp_path / "answers.csv"
    path.write_text("ref,left,right,response,rt\n" + "".join(f"c{i},c{j},c{k},left,300\n" for i, j, k in rows))
    result = run("embed", path, "--out", tmp_path / "map", "--overwrite")
    assert result.exit_code == 0, result.output
    assert f"c{rows[0][0]} is nearer to c{rows[0][1]} than to c{rows[0][2]}" in " ".join(result.stdout.split())
    path.write_text(
        "a::b::c::choice\n" + "".join(f"c{i}::c{j}::c{k}::{1 + n % 3}\n" for n, (i, j, k) in enumerate(rows))
    )
    options = ("--form", "odd-one-out", "--delimiter", "::")
    assert run("embed", path, "--overwrite", "--out", tmp_path / "map", *options).exit_code == 0
