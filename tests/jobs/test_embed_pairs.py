"""The work of `nearkin embed` on pairs: what it writes can be loaded, what it reports is true."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin.embedding.two_tower.fitting import matched
from nearkin.jobs.pairs import embed_pairs, judge_baselines, means
from nearkin.jobs.run import watched
from nearkin.jobs.train import train as train
from nearkin.records import Interactions
from tests.cli.conftest import run_json
from tests.covering import each


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pairs = nk.data.planted_interactions(80, 50, random_state=0).interactions
    lines = [f"u{i},{j}" for i, j in zip(pairs.rows, pairs.indices, strict=True)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["who,what", *lines]) + "\n")
    return path


def test_a_table_becomes_a_saved_model(table: Path, tmp_path: Path) -> None:
    steps = []
    with watched(lambda name: nullcontext(lambda step, record: steps.append(name))):
        record = embed_pairs(table, left="who", right="what", out=tmp_path / "emb", dim=8)
    model = nk.TwoTower.load(tmp_path / "emb")
    assert (record["left"], record["right"], record["dim"], record["solver"]) == (80, 50, 8, "als")
    assert 0 < record["ndcg@100"] < 1
    assert {"train", "train on all"} <= set(steps)
    assert model.left_embeddings_.shape == (80, 8)
    assert len(model.seen_) == record["pairs"], "the saved model was fitted on all pairs"
    assert model.recommend(["u3"], k=4)[1].shape == (1, 4)


def test_a_split_in_the_table_is_kept(table: Path, tmp_path: Path) -> None:
    pairs = nk.read_interactions(table, left="who", right="what")
    part = np.random.default_rng(0).choice([0, 0, 0, 0, 1, 2], len(pairs))
    columns = {"split": part.astype(np.uint8), "weight": np.where(np.arange(len(part)) < 9, 1e6, 1.0)}
    np.savez(tmp_path / "p.npz", user=pairs.rows, item=pairs.indices, **columns)
    record = embed_pairs(tmp_path / "p.npz", out=tmp_path / "emb", dim=8)
    assert any("1 % of the pairs hold 100.0% of the weight" in note for note in record["notes"])
    assert len(nk.TwoTower.load(tmp_path / "emb").seen_) == (part == 0).sum()
    assert "recall@20" in record


def test_later_pairs_are_read_in_the_columns_that_the_folder_knows(table: Path, tmp_path: Path) -> None:
    """They had to be named again; a table with other names is understood as a first one would be."""
    embed_pairs(table, left="who", right="what", out=tmp_path / "emb", dim=8)
    later, usual = tmp_path / "later.csv", tmp_path / "usual.csv"
    later.write_text("what,when,who\n7,1,u3\n9,2,new\n")
    usual.write_text("user,item\nu3,7\nanother,9\n")
    record = embed_pairs(later, start=tmp_path / "emb", out=tmp_path / "emb2")
    assert (record["left"], record["right"], record["pairs"]) == (81, 50, 2)
    assert "who" in record["understood"]
    assert embed_pairs(usual, start=tmp_path / "emb", out=tmp_path / "emb3")["left"] == 81
    usual.write_text(table.read_text().partition("\n")[2])
    embed_pairs(usual, header=False, left="0", right="1", out=tmp_path / "emb4", dim=8, split="none")
    assert embed_pairs(usual, header=False, start=tmp_path / "emb4", out=tmp_path / "emb5")["left"] == 80


def test_a_user_without_a_history_is_no_failure_of_the_rival() -> None:
    """Half of the users of a split by time were new, and item-kNN had no list for them; a shop shows what sells."""
    train = nk.data.planted_interactions(40, 30, random_state=0).interactions
    new = Interactions.from_pairs([40] * 5, np.arange(5), left_ids=np.arange(41), right_ids=train.right_ids)
    known = replace(train, indptr=np.append(train.indptr, train.indptr[-1]), left_ids=np.arange(41))
    quality = means(judge_baselines(known, new, (20,), ("recall",)))
    assert all(own == quality["popularity"] for own in quality.values())
    assert quality["popularity"]["recall@20"] > 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users who take items of their kind; ten items of each kind have features and no pair. A model of both."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    kinds = np.arange(60) % 2
    (folder / "items.csv").write_text("item,kind\n" + "".join(f"i{i},k{kind}\n" for i, kind in enumerate(kinds)))

    def write(name: str, first: int, stop: int, count: int, kind: int = 0) -> None:
        items = np.arange(first, stop)
        rows = [(u, i) for u in range(80) for i in rng.permutation(items[kinds[items] == (u + kind) % 2])[:count]]
        (folder / name).write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in rows))

    write("pairs.csv", 0, 40, 8)
    write("new.csv", 40, 60, 3)
    write("mixed.csv", 30, 50, 6)
    features = "--right-features", folder / "items.csv", "--dim", 4
    record = run_json("embed", folder / "pairs.csv", *features, "--out", folder / "emb")
    (folder / "embed.json").write_text(json.dumps(record))
    return folder


def measures(record: dict) -> dict[str, float]:
    return {name.replace("_", " "): values["ndcg@20"] for name, values in record["quality"].items()}


def test_items_without_a_pair_lie_near_those_of_their_kind(shop: Path) -> None:
    model = nk.TwoTower.load(shop / "emb")
    assert len(model.right_ids_) == 60
    items = dict(zip(model.right_ids_.tolist(), model.right_embeddings_, strict=True))
    users = dict(zip(model.left_ids_.tolist(), model.left_embeddings_, strict=True))
    for user, own, other in (("u0", "i40", "i41"), ("u1", "i41", "i40")):
        assert users[user] @ items[own] > users[user] @ items[other]


def test_items_that_only_one_ranking_knows_are_in_none_that_are_compared(shop: Path, tmp_path: Path) -> None:
    """Items without a pair took places in the ranking by features alone, which lost .03 by it."""
    record = json.loads((shop / "embed.json").read_text())
    seldom = tmp_path / "items.csv"  # without the features of the 20 items that have no pair
    seldom.write_text("\n".join((shop / "items.csv").read_text().splitlines()[:41]) + "\n")
    alone = run_json("embed", shop / "pairs.csv", "--right-features", seldom, "--dim", 4, "--out", tmp_path / "e")
    for name, value in measures(alone).items():
        assert measures(record)[name] == pytest.approx(value, abs=0.02), name


def test_items_that_only_one_ranking_can_rank_are_no_gain(shop: Path) -> None:
    """Popularity was 0 on items that nobody has taken yet, and the towers led by all that they found."""
    new = run_json("evaluate", shop / "emb", shop / "new.csv")
    assert [*measures(new)] == ["two towers"]
    assert new["differences"] == {}
    assert "not compared, of ids without a pair of training; two towers rank them by features" in new["notes"][0]
    mixed = run_json("evaluate", shop / "emb", shop / "mixed.csv")
    assert [*measures(mixed)] == ["two towers", "popularity", "item-kNN", "graph filter", "sparse EASE"]
    model, later = nk.TwoTower.load(shop / "emb"), nk.read_interactions(shop / "mixed.csv")
    old = later.select(np.isin(later.right_ids[later.indices], [f"i{i}" for i in range(40)]))
    test = matched(old, model.left_ids_, model.right_ids_)
    sold = np.isin(model.right_ids_, [f"i{i}" for i in range(40)])
    P, Q = model.left_embeddings_, model.right_embeddings_
    wanted = nk.metrics.ranking_metrics(P, Q, test, seen=model.seen_, k=20, candidates=sold)["ndcg@20"]
    assert measures(mixed)["two towers"] == pytest.approx(wanted)
    assert mixed["held_out"]["pairs"] < len(old)  # without those that were seen


@each("how", ["features", "later", "further", "index"])
def test_rankings_of_one_table_have_the_same_items_users_and_seen_pairs(
    how: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was trained further had more items to confuse than the one before, and other pairs left out."""
    asked: list[list[list]] = []

    def noted(of: Callable[..., dict[str, np.ndarray]]) -> Callable[..., dict[str, np.ndarray]]:
        def told(*given: Interactions, **how: Any) -> dict[str, np.ndarray]:
            if how["candidates"] is not None:
                parts = [(p.rows.tolist(), p.indices.tolist()) for p in (given[-1], how["seen"])]
                asked.append([*parts, np.asarray(how["candidates"]).tolist()])
            return of(*given, **how)

        return told

    modules = sys.modules["nearkin.jobs.pairs"], sys.modules["nearkin.jobs.train"]
    for module, name in [(module, name) for module in modules for name in ("ranking_metrics", "list_metrics")]:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, noted(getattr(module, name)))
    features, out = ("--right-features", shop / "items.csv"), ("--out", tmp_path / "out")
    record = {
        "features": lambda: run_json("embed", shop / "pairs.csv", *features, "--dim", 4, *out),
        "later": lambda: run_json("evaluate", shop / "emb", shop / "mixed.csv"),
        "further": lambda: run_json("embed", shop / "mixed.csv", "--start", shop / "emb", *out),
        "index": lambda: run_json("train", shop / "pairs.csv", "--dim", 4, "--bytes", 2, *out),
    }[how]()
    assert len(asked) == len(record["quality"]) > 2
    assert all(one == asked[0] for one in asked)
    if how in ("later", "further"):
        assert any("not compared, of ids without a pair of training" in note for note in record["notes"])
