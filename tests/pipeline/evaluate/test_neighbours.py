"""Exact neighbours of a file, found in chunks, and batches of queries."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.pipeline.evaluate.neighbours import exact_neighbors, judge_neighbors, search_in_batches


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_exact_neighbors_in_chunks(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    X, Q = rng.normal(size=(120, 6)).astype(np.float32), rng.normal(size=(9, 6)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr("nearkin.data.vectors.CHUNK_BYTES", 50 * 4 * 6)
    seen = []
    found = exact_neighbors(open_vectors(tmp_path / "X.npy"), Q, 70, metric, lambda step, _: seen.append(step))
    scores = {
        "l2": ((Q[:, None] - X) ** 2).sum(-1),
        "ip": -Q @ X.T,
        "cosine": -Q @ (X / np.linalg.norm(X, axis=1)[:, None]).T,
    }
    np.testing.assert_array_equal(found.ids, np.argsort(scores[metric], axis=1)[:, :70])
    assert seen == [50, 100, 120]


def test_batches_are_the_whole_search(rng: np.random.Generator) -> None:
    index = nk.Index.build(rng.normal(size=(50, 4)))
    Q = rng.normal(size=(23, 4))
    seen = []
    scores, ids = search_in_batches(
        index, Q, 3, None, lambda step, record: seen.append((step, record["total"])), rows=10
    )
    np.testing.assert_array_equal(ids, index.search(Q, 3)[1])
    np.testing.assert_array_equal(scores, index.search(Q, 3)[0])
    assert seen == [(10, 23), (20, 23), (23, 23)]


def test_judging_names_its_measures() -> None:
    ids = np.tile(np.arange(20), (2, 1))
    assert judge_neighbors(ids, ids) == {"1-recall@1": 1, "1-recall@10": 1, "10-recall@10": 1}


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@pytest.mark.parametrize("own", [False, True])
def test_rows_at_one_distance_stand_for_each_other(
    tmp_path: Path, rng: np.random.Generator, metric: str, own: bool
) -> None:
    """Every row twice, under ids of its own: the other copies are as right."""
    X = np.repeat(rng.normal(size=(60, 6)).astype(np.float32), 2, axis=0)
    Q = rng.normal(size=(9, 6)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    names = np.array([f"row {i}" for i in range(len(X))]) if own else None
    exact = exact_neighbors(open_vectors(tmp_path / "X.npy"), Q, 9, metric, own=names)
    numbers = exact_neighbors(open_vectors(tmp_path / "X.npy"), Q, 9, metric).ids ^ 1  # the other copy of each
    found = numbers if names is None else names[numbers]
    assert judge_neighbors(found, exact.beside(found), (1, 5, 9)) == dict.fromkeys(
        ("1-recall@1", "1-recall@5", "1-recall@9", "5-recall@5", "9-recall@9"), 1.0
    )
    assert judge_neighbors(found, exact.ids, (1,)) == {"1-recall@1": 0}
