"""Judging by exact neighbours, found in chunks, and by labels against scikit-learn."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.jobs.evaluate import exact_neighbors, judge_by_label
from nearkin.metrics.neighbours import ExactNeighbours
from tests.covering import each

OF_JOB = sys.modules["nearkin.jobs.evaluate"]


@each("metric", ["l2", "ip", "cosine"])
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


@each("metric", ["l2", "ip", "cosine"])
@each("own", [False, True])
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
    cuts = [(1, 1), (1, 5), (1, 9), (5, 5), (9, 9)]
    assert all((values == 1).all() for values in exact.recalls(found, cuts).values())
    assert not ExactNeighbours.given(exact.ids).recalls(found, cuts[:1])[1, 1].any()


NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Rows, queries and their labels; one query's label no row has."""
    y, yq = rng.integers(0, 3, 200), rng.integers(0, 3, 30)
    centres = rng.normal(size=(3, 8)) * 2
    X, Q = centres[y] + rng.normal(size=(200, 8)), centres[yq] + rng.normal(size=(30, 8))
    return X.astype(np.float32), Q.astype(np.float32), NAMES[y], np.append(NAMES[yq][:-1], "dog")


def mean_ap(scores: np.ndarray, y: np.ndarray, yq: np.ndarray) -> float:
    return float(
        np.mean([average_precision_score(y == q, s) if q in y else 0.0 for s, q in zip(scores, yq, strict=True)])
    )


@each("ids", [None, np.arange(200)[::-1] + 7, np.array([f"row {i}" for i in range(200)])])
def test_exact_ranking(data: tuple[np.ndarray, ...], ids: np.ndarray | None, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Q, y, yq = data
    monkeypatch.setattr(OF_JOB, "_RANKED", 7 * 200)  # batches of seven queries
    seen = []
    index = nk.Index.build(X, ids=ids)
    record = judge_by_label(index, Q, y, yq, lambda step, _: seen.append(step))
    distances = ((Q[:, None] - X) ** 2).sum(-1)
    assert record["mAP"] == pytest.approx(mean_ap(-distances, y, yq))
    assert record["precision@1"] == pytest.approx(np.mean(y[distances.argmin(axis=1)] == yq))
    assert seen == [7, 14, 21, 28, 30]


def test_rows_of_several_labels(data: tuple[np.ndarray, ...], rng: np.random.Generator) -> None:
    """An answer is right if it shares a label with the query; rows of one label each are judged as classes are."""
    X, Q, y, yq = data
    exact, bits = nk.Index.build(X), nk.Index.build(X, nk.ITQ(n_bits=8, random_state=0), metric="hamming")
    one_hot, asked = (names[:, None] == [*NAMES, "dog"] for names in (y, yq))
    for index in (exact, bits):
        assert judge_by_label(index, Q, one_hot, asked) == judge_by_label(index, Q, y, yq)
    one_hot |= rng.random(one_hot.shape) < 0.2
    shared = asked.astype(int) @ one_hot.T > 0
    scores = -((Q[:, None] - X) ** 2).sum(-1)
    expected = np.mean([average_precision_score(right, s) for right, s in zip(shared, scores, strict=True)])
    assert judge_by_label(exact, Q, one_hot, asked)["mAP"] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"query_labels has shape .* give both alike"):
        judge_by_label(exact, Q, one_hot, yq)


def test_bits_share_ties(data: tuple[np.ndarray, ...], rng: np.random.Generator) -> None:
    X, Q, y, yq = data
    hasher = nk.ITQ(n_bits=8, random_state=0).fit(X)
    record = judge_by_label(nk.Index.build(X, hasher, metric="hamming"), Q, y, yq)
    codes, asked = hasher.encode(X), hasher.encode(Q)
    distances = np.bitwise_count(asked[:, None] ^ codes).sum(-1)
    tied = []  # expected precision over random tie-breaking, by simulation
    for _ in range(300):
        ranking = np.argsort(distances + rng.random(distances.shape), axis=1)
        tied.append(nk.metrics.average_precision(y[ranking] == yq[:, None]).mean())
    spread = 4 * np.std(tied) / np.sqrt(len(tied))
    assert abs(record["mAP"] - np.mean(tied)) < spread, (record["mAP"], np.mean(tied), spread)


def test_beyond_a_full_ranking_the_measure_says_so(
    data: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Q, y, yq = data
    monkeypatch.setattr(OF_JOB, "_FULL_RANKING", 199)
    record = judge_by_label(nk.Index.build(X), Q, y, yq)
    assert set(record) == {"precision@1", "mAP@1"}


def test_measures_of_a_ranking_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query whose label one row has, another whose label no row has; and the first two answers of five alone."""
    y, Q, yq = np.array(["a", "b"]), np.zeros((2, 1), np.float32), np.array(["a", "c"])
    rows = nk.Index.build(np.arange(2, dtype=np.float32)[:, None])
    assert judge_by_label(rows, Q, y, yq) == {"precision@1": 0.5, "mAP": 0.5}
    monkeypatch.setattr(OF_JOB, "_FULL_RANKING", 200)
    monkeypatch.setattr(nk.Index, "search", lambda *_: (np.array([[0, 1, 2]] * 2), np.array([[0, 1, 2], [3, 4, 2]])))
    rows = nk.Index.build(np.arange(201, dtype=np.float32)[:, None])
    record = judge_by_label(rows, Q, np.array(["a", "b", "a", "b", "a", *196 * "d"]), yq)
    assert record == {"precision@1": 0.5, "mAP@2": 0.25}
