"""What stopped people between a real export and a result: one named test for each (issue 32)."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import nearkin as nk
from nearkin.jobs.embed_comparisons import embed_comparisons
from nearkin.jobs.pairs import embed_pairs
from tests.cli.conftest import run, run_json
from tests.covering import each

pd = pytest.importorskip("pandas")  # not among the lowest versions
ROWS = [("ann", 7, 5.0), ("ann", 9, 2.5), ("bob", 7, 4.0)]
CSV = "user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in ROWS)


def test_vectors_in_lines_of_json_keep_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{i}", "embedding": [i, 0.5]}) + "\n" for i in range(3)))
    vectors = nk.data.open_vectors(path)
    assert vectors.ids().tolist() == ["d0", "d1", "d2"]
    np.testing.assert_array_equal(vectors.read(), [[0, 0.5], [1, 0.5], [2, 0.5]])
    path.write_text('{"id": 1}\n[2]\n')
    with pytest.raises(ValueError, match=r"items\.jsonl cannot be read .*in row 1"):
        nk.data.open_vectors(path)


def test_bfloat16_is_read(tmp_path: Path) -> None:
    X = torch.arange(12.0).reshape(6, 2).bfloat16() / 3
    assert nk.Index.build(X).search(X[:1], k=1)[1].item() == 0
    nk.ProductQuantizer(1, n_centroids=2, random_state=0).fit(X)
    safetensors.torch.save_file({"X": X, "one": X[0].clone()}, tmp_path / "X.safetensors")
    file = nk.data.open_vectors(tmp_path / "X.safetensors:X")
    np.testing.assert_array_equal(file.read(), X.float().numpy())
    np.testing.assert_array_equal(file.take(np.array([1, 4])), X[[1, 4]].float().numpy())
    with pytest.raises(ValueError, match=r"holds 2 arrays; name one of .*X\.safetensors:"):
        nk.read_vectors(tmp_path / "X.safetensors")
    np.save(tmp_path / "X.npy", X.view(torch.int16).numpy().view("V2"))  # as ml_dtypes writes it
    with pytest.raises(ValueError, match=r"X\.npy has dtype .V2; .*np\.array\(X"):
        nk.read_vectors(tmp_path / "X.npy")


def test_the_arrays_of_an_hdf5_file_are_read(tmp_path: Path) -> None:
    """Benchmarks of nearest neighbours come so: train, test, neighbors."""
    h5py = pytest.importorskip("h5py", reason="needs nearkin[hdf5]")
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["train"], file["neighbors"] = X, np.arange(40)[:, None]
    opened = nk.data.open_vectors(tmp_path / "a.hdf5:train")
    np.testing.assert_array_equal(opened.read(), X)
    np.testing.assert_array_equal(opened.take(np.array([3, 30])), X[[3, 30]])
    assert nk.data.read_neighbors(tmp_path / "a.hdf5:neighbors").shape == (40, 1)
    with pytest.raises(ValueError, match="holds 2 arrays; name one of"):
        nk.read_vectors(tmp_path / "a.hdf5")


@each("offset", ["+01:00", "+0100", "Z", ""])
def test_times_with_offsets_are_times(tmp_path: Path, offset: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"user,item,time\n1,1,2024-01-01T01:30:00{offset}\n1,2,2024-01-01T02:30:00.5{offset}\n")
    first = 1704069000 if offset.startswith("+") else 1704072600
    assert nk.read_interactions(path).timestamps.tolist() == [first, first + 3600.5]


def test_weight_zero_is_no_observed_pair(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,count\n1,1,2\n1,2,0\n2,1,1\n")
    pairs = nk.read_interactions(path)
    assert len(pairs) == 2
    assert "1 row of weight 0" in str(pairs.source)


def test_features_are_described_and_gaps_filled(tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item,genre,year,price\n7,drama,1990,2\n9,war|drama,2000,\n8,,2010,4\n")
    (tmp_path / "a.csv").write_text(CSV)
    pairs = nk.read_interactions(tmp_path / "a.csv", right_features=items)
    about = "items.csv, ids in item: genre=drama, genre=war, year, price; 2 missing cells filled"
    assert about in str(pairs.source)
    prices = pairs.right_features.toarray()[:, -1]
    np.testing.assert_allclose(prices[1], 0, atol=1e-6)  # the mean, of columns with mean 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sales, later sales, kinds of the items, and the model of the sales."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    rows = [
        (f"u{u}", f"i{u % 4 * 8 + i}", f"2024-01-{1 + n // 40:02d}")
        for n, (u, i) in enumerate(rng.integers(8, size=(900, 2)))
    ]
    rows = [(f"u{rng.integers(10) * 8 + int(user[1:])}", item, day) for user, item, day in rows]
    lines = [f"{user},{item},{day}\n" for user, item, day in dict.fromkeys(rows)]
    (folder / "sales.csv").write_text("kunde,artikel,tag\n" + "".join(lines[:-100]))
    (folder / "later.csv").write_text("kunde,artikel,tag\n" + "".join(lines[-100:]) + "new,i1,2024-01-23\n")
    (folder / "items.csv").write_text("artikel,kind\n" + "".join(f"i{i},{'abcd'[i // 8]}\n" for i in range(32)))
    columns = {"left": "kunde", "right": "artikel", "timestamp": "tag"}
    embed_pairs(folder / "sales.csv", out=folder / "emb", dim=8, loss="all-pairs", **columns)
    return folder


def test_an_update_prints_whether_the_model_is_still_good(shop: Path, tmp_path: Path) -> None:
    record = embed_pairs(shop / "later.csv", start=shop / "emb", out=tmp_path / "emb", split="time")
    assert list(record["quality"])[:4] == ["two towers before", "two towers", "popularity", "item-kNN"]
    assert record["timestamp"] == "tag", "the column of times is remembered"
    assert "timestamp = tag" in record["understood"]
    assert not any("0 pairs" in note for note in record["notes"])


def test_later_pairs_judge_a_model_by_one_command(shop: Path) -> None:
    record = run_json("evaluate", shop / "emb", shop / "later.csv")
    assert record["quality"]["two_towers"]["recall@20"] > 1.5 * record["quality"]["popularity"]["recall@20"], record
    assert record["notes"][0].endswith("later.csv without a known kunde, the first is 'new'")
    assert run("evaluate", shop / "emb", shop / "sales.csv").stderr.count("give later pairs") == 1


def test_what_was_no_liking_is_none_in_later_pairs(tmp_path: Path) -> None:
    """A model of four stars and more was judged by pairs of half a star, and learned from them at --start."""
    pairs = [(u, i, 5 if u % 3 == i % 3 else 1) for u, i in np.ndindex(12, 9)]
    for name, part in (("first", pairs[::2]), ("later", pairs[1::2])):
        lines = [f"u{user},i{item},{stars}" for user, item, stars in part]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item,stars", *lines]))
    with pytest.raises(ValueError, match="no column with a usual name of weight"):
        embed_pairs(tmp_path / "first.csv", out=tmp_path / "emb", min_weight=4)
    first, later = (f"{tmp_path}/{name}.csv:user,item,rating=stars" for name in ("first", "later"))
    embed_pairs(first, out=tmp_path / "emb", dim=2, loss="all-pairs", split="none", min_weight=4)
    judged = run("evaluate", tmp_path / "emb", later).stdout
    assert "18 pairs of" in judged
    assert "36 rows of weight 0 or below the smallest" in judged
    more = embed_pairs(later, start=tmp_path / "emb", out=tmp_path / "emb2", split="none")
    assert (more["pairs"], more["learned_from"], more["min_weight"]) == (18, 36, 4)


def test_an_index_of_a_folder_is_judged_by_that_folder(shop: Path, tmp_path: Path) -> None:
    run_json("compress", shop / "emb", "--bytes", 2, "--centroids", 16, "--out", tmp_path / "idx")
    left = len(nk.TwoTower.load(shop / "emb").left_ids_)
    judged = run_json("evaluate", tmp_path / "idx", "-k", 10)
    assert judged["queries"] == left
    assert judged["searches"][0]["10-recall@10"] > 0.5


@each("ending", ["parquet", "jsonl"])
def test_ids_may_come_from_another_column(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"pk.{ending}"
    rows = [{"package": f"p{i}", "about": f"does {i}", "embedding": [i / 7, 1.0]} for i in range(30)]
    pd.DataFrame(rows).to_parquet(file) if ending == "parquet" else file.write_text("\n".join(map(json.dumps, rows)))
    assert nk.read_vectors(file).shape == (30, 2), "vectors alone need no ids"
    small = ("compress", file, "--method", "int8", "--out", tmp_path / "idx")
    made = run(*small, "--ids", f"{file}:package")
    assert f"left aside: package, about; ids from {file}:package" in made.stdout
    assert nk.Index.load(tmp_path / "idx").ids[:2].tolist() == ["p0", "p1"]


def test_answers_in_a_pipe_are_whole_and_have_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    names = [f"a-rather-long-name-of-a-thing-that-was-cut-before-its-end-and-still-goes-on-{i:03d}" for i in range(30)]
    nk.Index.build(np.eye(30, dtype=np.float32), ids=names).save(tmp_path / "idx")
    np.save(tmp_path / "Q.npy", np.eye(30, dtype=np.float32)[:2])
    shown = run("search", tmp_path / "idx", tmp_path / "Q.npy", "-k", 2).stdout
    assert names[0] in shown
    assert re.search("distance|similarity", shown)


def survey(path: Path, n_questions: int = 80, raters: str = "anna ben cara dave eve felix") -> Path:
    """Answers about eight colours on a circle, one in twelve wrong; felix reversed the instruction."""
    rng = np.random.default_rng(0)
    names = np.array(["red", "orange", "yellow", "green", "blue", "violet", "pink", "brown"])
    points = np.stack([np.cos(np.arange(8) * 0.8), np.sin(np.arange(8) * 0.8)], axis=1)
    lines = ["rater,ref,left,right,choice"]
    for rater in raters.split():
        for _ in range(n_questions):
            a, b, c = rng.permutation(8)[:3]
            nearer = np.linalg.norm(points[a] - points[b]) < np.linalg.norm(points[a] - points[c])
            first = nearer ^ (rater == "felix") ^ (rng.random() < 1 / 12)
            lines.append(",".join([rater, *names[[a, b, c]], names[b if first else c]]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey(tmp_path_factory.mktemp("survey") / "answers.csv")


@pytest.mark.usefixtures("no_pictures")
def test_a_rater_who_reversed_the_instruction_is_named(answers: Path, tmp_path: Path) -> None:
    """They made a quarter of the answers "contradictions", and the held-out error three times as large."""
    errors = {}
    for how in ("equal", "drop"):  # the journey of colours turns them
        record = embed_comparisons(answers, out=tmp_path / how, raters=how)
        (note,) = [note for note in record["notes"] if "answers the opposite" in note]
        assert note.startswith("felix answers the opposite of the others (")
        assert record["reversed_raters"]["felix"] < 0.2
        assert record["comparisons"] == (400 if how == "drop" else 480)
        errors[how] = record["held_out_error"]
    assert max(errors.values()) < 0.25, errors
    assert record["noise_floor"] == pytest.approx(1 / 12, abs=0.08)


@pytest.mark.usefixtures("no_pictures")
def test_nobody_is_reversed_among_two_or_among_honest_raters(tmp_path: Path) -> None:
    for raters in ("anna ben cara", "anna felix"):
        record = embed_comparisons(survey(tmp_path / "a.csv", 30, raters), out=tmp_path / raters)
        assert record["reversed_raters"] == {}


@pytest.mark.usefixtures("no_pictures")
def test_a_noise_floor_needs_questions_asked_twice(tmp_path: Path) -> None:
    """A floor of .007 was printed for raters who erred from 8 to 92 %."""
    record = embed_comparisons(survey(tmp_path / "a.csv", 12, "anna ben"), out=tmp_path / "map")
    assert record["noise_floor"] is None
    assert any("too few to estimate the noise" in note for note in record["notes"])


@pytest.mark.usefixtures("no_pictures")
def test_a_chosen_dimension_shows_why(answers: Path, tmp_path: Path) -> None:
    """The curve in the terminal, in the figure and in the folder were three."""
    made = run("embed", answers, "--dim", "auto", "--out", tmp_path / "map")
    assert "is the smallest whose error is within one standard error" in made.stdout
    record = json.loads((tmp_path / "map" / "config.json").read_text())["record"]
    curve = nk.OrdinalEmbedding.load(tmp_path / "map").dimension_curve_
    assert record["dimension_curve"] == curve
    assert list(record["curves"]) == ["answers"]
    assert all(f"{error:.4g}" in made.stdout for error in curve["error"])
    assert {"dimension.pdf", "dimension.svg", "map.pdf"} <= {file.name for file in (tmp_path / "map").iterdir()}


def test_a_matrix_moves_from_torchs_parametrization() -> None:
    """The state dicts have other keys; the matrix itself is handed over."""
    torchs, ours = (torch.nn.Linear(4, 4, bias=False) for _ in range(2))
    torch.nn.utils.parametrizations.orthogonal(torchs)
    nk.orthogonal.orthogonal_parametrization(ours)
    ours.weight = torchs.weight
    torch.testing.assert_close(ours.weight, torchs.weight)
