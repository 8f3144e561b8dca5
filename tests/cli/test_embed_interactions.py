"""The work of `nearkin embed` on pairs: what it writes can be loaded, what it reports is true."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.cli.embed_interactions import embed_interactions


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pairs = nk.data.planted_interactions(80, 50, random_state=0).interactions
    lines = [f"u{i},{j}" for i, j in zip(pairs.rows, pairs.indices, strict=True)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["who,what", *lines]) + "\n")
    return path


def test_a_table_becomes_a_saved_model(table: Path, tmp_path: Path) -> None:
    steps = []
    record = embed_interactions(
        table, left="who", right="what", out=tmp_path / "emb", dim=8, callback=lambda step, r: steps.append((step, r))
    )
    model = nk.TwoTower.load(tmp_path / "emb")
    assert (record["left"], record["right"], record["dim"], record["solver"]) == (80, 50, 8, "als")
    assert 0 < record["ndcg@100"] < 1
    assert steps
    assert model.left_embeddings_.shape == (80, 8)
    assert len(model.seen_) == record["pairs"], "the saved model was fitted on all pairs"
    assert model.recommend(["u3"], k=4)[1].shape == (1, 4)


def test_a_split_in_the_table_is_kept(table: Path, tmp_path: Path) -> None:
    pairs = nk.read_interactions(table, left="who", right="what")
    part = np.random.default_rng(0).choice([0, 0, 0, 0, 1, 2], len(pairs))
    np.savez(tmp_path / "p.npz", user=pairs.rows, item=pairs.indices, split=part.astype(np.uint8))
    record = embed_interactions(tmp_path / "p.npz", out=tmp_path / "emb", dim=8)
    assert len(nk.TwoTower.load(tmp_path / "emb").seen_) == (part == 0).sum()
    assert "recall@20" in record
