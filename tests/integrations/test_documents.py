"""What the stores of all three libraries share: when a quantizer is trained, what is kept, what comes back."""

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin.integrations import documents as stores
from nearkin.integrations.documents import Documents, listed
from tests.covering import each

ENOUGH = 300
PLACES = {"in a batch": ENOUGH, "in parts": 101, "the last alone": ENOUGH - 1}


@pytest.fixture(autouse=True)
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes are trained at 10,000 vectors; here at fewer."""
    monkeypatch.setattr(stores, "ENOUGH", ENOUGH)


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)


def names(n: int, first: int = 0) -> list[str]:
    return [str(i) for i in range(first, first + n)]


def put(documents: Documents, X: np.ndarray, first: int = 0, size: int = 2**20) -> None:
    for at in range(0, len(X), size):
        part = X[at : at + size]
        documents.put(names(len(part), first + at), [{}] * len(part), list(part))


def recall(documents: Documents, X: np.ndarray, k: int = 10) -> float:
    """Of documents named by their rows."""
    exact = nk.Index.build(X, ids=names(len(X)), metric=documents.metric).search(X[:50], k)[1]
    found = [documents.nearest(x, k)[0] for x in X[:50]]
    return float(np.mean([len(set(one) & set(other)) / k for one, other in zip(found, exact, strict=True)]))


@pytest.mark.parametrize("size", PLACES.values(), ids=PLACES)
def test_a_first_batch_of_few_documents_trains_nothing(size: int) -> None:
    """Before, codes were trained on the first batch, however small."""
    X = rows(ENOUGH + 60)
    documents, at_once = Documents(2), Documents(2)
    put(documents, X[:5])
    put(documents, X[5 : ENOUGH - 1], 5, size)
    assert repr(documents).startswith(f"{ENOUGH - 1} documents, exact until {ENOUGH}, then 2 bytes each, Index(299 ")
    assert recall(documents, X[: ENOUGH - 1]) == 1
    put(documents, X[ENOUGH - 1 :], ENOUGH - 1, 100)
    put(at_once, X)
    assert documents.index.bytes_per_vector <= 3
    assert sorted(documents.index.row_ids.tolist()) == sorted(names(len(X)))
    assert recall(documents, X) > recall(at_once, X) - 0.1


def test_kept_vectors_rescore_and_stay() -> None:
    X = rows(ENOUGH)
    plain, rescored = Documents(1), Documents(1, keep_vectors="float16", oversample=20)
    for documents in (plain, rescored):
        put(documents, X)
    assert recall(rescored, X) > recall(plain, X) + 0.05
    assert rescored.index.kept.dtype == np.float16
    exact = Documents(None, keep_vectors=True, oversample=2)  # exact search has its vectors
    put(exact, X[:20])
    assert exact.nearest(X[3], 1)[0] == ["3"]


def test_what_is_removed_does_not_count_and_an_empty_store_starts_again() -> None:
    X, documents = rows(ENOUGH), Documents(2)
    put(documents, X[:-1])
    documents.remove(names(9))
    put(documents, X[-9:], ENOUGH - 9)
    assert documents.index.quantizer is None
    put(documents, X[:9])
    assert documents.index.quantizer is not None
    documents.put(["0"], [{}], [None])  # its vector goes
    assert "0" not in documents.index
    documents.remove(names(ENOUGH))
    put(documents, rows(3, 1)[:, :5])
    assert documents.index.quantizer is None
    assert documents.nearest(rows(3, 1)[2, :5], 1)[0] == ["2"]


@pytest.mark.parametrize("quantizer", [None, 2])
def test_settings_come_back_with_few_documents_and_with_many(quantizer: Any, tmp_path: Path) -> None:
    X, documents = rows(ENOUGH + 50), Documents(quantizer, "ip", "float16", 2.0)
    for before, after in ((0, 0), (0, 10), (10, ENOUGH + 50)):
        put(documents, X[before:after], before)
        documents.save(tmp_path / "store", "library", overwrite=True)
        documents = Documents.load(tmp_path / "store", "library")
        assert (documents.metric, documents.keep_vectors, documents.oversample) == ("ip", "float16", 2.0)
    assert (documents.index.quantizer is None) == (quantizer is None)
    assert len(documents.nearest(X[3], 5)[0]) == 5


def test_a_fitted_quantizer_is_used_from_the_first(tmp_path: Path) -> None:
    X = rows(300)
    fitted = nk.ProductQuantizer(4, 16, random_state=0).fit(X)
    documents = Documents(fitted, "l2")
    documents.save(tmp_path / "store", "library")
    documents = Documents.load(tmp_path / "store", "library")
    put(documents, X[:2])
    documents.remove(names(2))
    put(documents, rows(ENOUGH + 5, 3))
    np.testing.assert_array_equal(documents.index.quantizer.codebooks_, fitted.codebooks_)


WRONG: dict[str, tuple[Any, ...]] = {
    "quantizer": (nk.ITQ(8), nk.ProductQuantizer, nk.ProductQuantizer(2), "16", 0, True), "metric": ("hamming",),
    "oversample": (4, 0.5), "n_probes": (3,), "keep_vectors": ("int9",),
}  # fmt: skip


@each(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_wrong_settings_are_refused_before_any_document(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        Documents(**{name: value})


def test_a_wrong_batch_changes_nothing_where_it_would_train() -> None:
    documents = Documents(2)
    put(documents, rows(ENOUGH - 1))
    for vector, match in ((np.ones(7), "columns"), (np.full(8, np.nan), "NaN"), (np.zeros(8), "'new'. is all zeros")):
        with pytest.raises(ValueError, match=match):
            documents.put(["new"], [{}], [vector])
    with pytest.raises(ValueError, match="of the query is all zeros"):
        documents.nearest(np.zeros(8), 3)
    assert (len(documents.records), len(documents.index)) == (ENOUGH - 1, ENOUGH - 1)


def test_minus_one_is_no_id() -> None:
    for ids in ([3, -1], np.array([-1])):
        with pytest.raises(ValueError, match="-1"):
            listed(ids)
    assert listed(["-1", 3, ""]) == ["-1", "3", ""]


def test_a_copy_during_changes_is_of_one_moment() -> None:
    made, done, X = Documents(), threading.Event(), np.eye(40, dtype=np.float32)

    def changing() -> None:
        try:
            for i in range(60):
                made.put([str(i % 40)], [{"text": "a"}], X[i % 40 : i % 40 + 1])
                made.remove([str((i + 7) % 40)])
        finally:
            done.set()

    thread = threading.Thread(target=changing)
    thread.start()
    while not done.is_set():
        for copied in (copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))):
            other = copied(made)
            if other.index is not None:
                assert set(other.index.row_ids.tolist()) == other.records.keys()
            other.put(["new"], [{"text": "b"}], X[:1])
    thread.join()
    assert "new" not in made.records
    assert "new" not in made.index
