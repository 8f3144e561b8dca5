"""`nearkin watch` and `update --retrain`: a drift is called where there is one, and new codes serve the new rows."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.update import update
from nearkin.jobs.watch import watch
from nearkin.metrics import knn_recall
from tests.cli.conftest import run, run_json

OF = np.random.default_rng(0)
USUAL, OTHER = [3, 3, 3, 1, 1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 3, 3, 3]  # spread of the columns
OLD, SAME, NEW = ((OF.standard_normal((900, 8)) * spread).astype(np.float32) for spread in (USUAL, USUAL, OTHER))


def quantizer(n_lists: int = 0) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(4, 16, "procrustes", "pca", n_lists=n_lists, max_iter=4, random_state=0)


def saved(folder: Path, X: np.ndarray) -> Path:
    np.save(folder.with_name("new.npy"), X)
    return folder.with_name("new.npy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ids = [f"r{i}" for i in range(len(OLD))]
    nk.Index.build(OLD, quantizer(), ids=ids, keep_vectors=True).save(tmp_path / "idx")
    np.save(tmp_path / "new.npy", NEW)
    return tmp_path / "idx"


def test_a_drift_is_called_where_there_is_one(folder: Path) -> None:
    same, moved = watch(folder, saved(folder, SAME)), watch(folder, saved(folder, NEW), k=1)
    assert moved["k"] == 1
    assert moved["drift"]
    assert moved["gain"]["mean"] == pytest.approx(moved["again"]["mean"] - moved["now"]["mean"])
    assert not same["drift"]
    assert same["now"]["low"] < same["now"]["mean"] < same["now"]["high"]
    result = run("watch", folder, folder.with_name("new.npy"), "--json")
    assert (result.exit_code, json.loads(result.stdout)["drift"]) == (1, True)
    assert f"nearkin update {folder}" in run("watch", folder, folder.with_name("new.npy")).stderr


@pytest.mark.parametrize(("keeps", "metric", "n_lists"), [(True, "cosine", 0), (False, "l2", 8)])
def test_new_codes_serve_the_new_rows(folder: Path, keeps: bool, metric: str, n_lists: int) -> None:
    how = {"metric": metric, "n_probe": 3 if n_lists else None}
    index = nk.Index.build(OLD, quantizer(n_lists), ids=np.arange(900) + 5, keep_vectors=keeps, **how)
    index.save(folder, overwrite=True)
    run("update", folder, folder.with_name("new.npy"), "--retrain")
    fresh = nk.Index.load(folder)
    np.testing.assert_array_equal(fresh.ids, index.ids)
    assert (fresh.kept is not None, fresh.n_probe, len(fresh)) == (keeps, index.n_probe, 900)
    found = [nk.Index.build(NEW, each.quantizer, **how).search(NEW[:200], 10)[1] for each in (index, fresh)]
    kept = [knn_recall(ids, NEW, NEW[:200], metric=metric) for ids in found]
    assert kept[1] > kept[0] + 0.05
    if keeps:
        np.testing.assert_array_equal(fresh.search(OLD[:50], 1, oversample=900)[1][:, 0], np.arange(50) + 5)


def test_recoded_rows_are_those_of_a_new_index() -> None:
    index = nk.Index.build(OLD, quantizer())
    index.remove([3, 7])
    left, other = np.delete(OLD, [3, 7], axis=0), quantizer().fit(NEW)
    index.search(left[:2], 3)
    scores, ids = index.recode(other, left).search(left[:20], 5)
    expected = nk.Index.build(left, other, ids=np.delete(np.arange(900), [3, 7])).search(left[:20], 5)
    np.testing.assert_array_equal(ids, expected[1])
    np.testing.assert_allclose(scores, expected[0], rtol=1e-5)
    assert index.add(OLD[:1]).search(OLD[:1], 1)[1].shape == (1, 1)
    with pytest.raises(ValueError, match="X has 3 vectors and the index 899"):
        index.recode(other, OLD[:3])


def test_what_cannot_be_judged_or_learned_again_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="has 99 vectors; give at least 100"):
        watch(folder, saved(folder, NEW[:99]))
    with pytest.raises(ValueError, match=r"new\.npy has 5 columns, and the index 8"):
        update(folder, saved(folder, NEW[:, :5]), retrain=True)
    nk.Index.build(OLD).save(folder, overwrite=True)
    with pytest.raises(ValueError, match="the index holds exact vectors"):
        watch(folder, saved(folder, NEW))
    nk.Index.build(OLD, nk.ITQ(8, random_state=0), metric="hamming").save(folder, overwrite=True)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(ValueError, match="the index holds bits"):
        update(folder, saved(folder, NEW), retrain=True)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_refreshed_index_has_a_report(tmp_path: Path) -> None:
    """Its record has no distortion of the new codes; the folder was called damaged."""
    np.save(tmp_path / "old.npy", OLD)
    np.save(tmp_path / "new.npy", NEW)
    run_json("compress", tmp_path / "old.npy", "--method", "product", "--bytes", 2, "--out", tmp_path / "idx")
    run_json("update", tmp_path / "idx", tmp_path / "new.npy", "--retrain")
    assert run("report", tmp_path / "idx").exit_code == 0
    assert "distortion" not in (tmp_path / "idx/report.html").read_text()
