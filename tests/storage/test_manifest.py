"""A saved folder that is not what was saved is refused, whatever was changed."""

import json
import shutil
import threading

import numpy as np
import pytest

import nearkin as nk
from nearkin._storage import read_config, read_manifest, saving_folder, verification, write_arrays
from tests.covering import each

X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)


def build(seed: int = 0) -> nk.Index:
    quantizer = nk.ProductQuantizer(2, 16, rotation=None, max_iter=1, random_state=seed)
    return nk.Index.build(X, quantizer, ids=[f"row {i}" for i in range(400)], keep_vectors=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    build().save(folder / "idx")
    build(1).save(folder / "other")
    return folder


def answers(path) -> tuple:
    """All answers of an index, also by its kept vectors."""
    index = nk.Index.load(path)
    return tuple(part.tolist() for part in (*index.search(X[:5], 3), *index.search(X, 400, oversample=1)))


@each("name", ["index.faiss", "arrays.safetensors", "vectors.npy", "quantizer", "config.json"])
def test_what_is_of_another_folder_or_missing_is_refused(saved, tmp_path, name):
    other = saved / "other"
    if name in ("arrays.safetensors", "vectors.npy", "config.json"):  # equal in both: other ids, vectors and metric
        other = shutil.copytree(other, tmp_path / "other")
        write_arrays(other / "arrays.safetensors", {"row_ids": np.arange(400)})
        np.save(other / "vectors.npy", X + 1)
        config = json.loads((other / "config.json").read_text())
        (other / "config.json").write_text(json.dumps(config | {"metric": "ip"}))
    folder = shutil.copytree(saved / "idx", tmp_path / "idx")
    shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    with pytest.raises(ValueError, match=r"is missing|has no config.json"):
        answers(folder)
    copy = shutil.copytree if (other / name).is_dir() else shutil.copy
    copy(other / name, folder / name)
    with pytest.raises(ValueError, match=r"lists|by config.json"):
        answers(folder)


def test_a_file_that_was_not_saved_is_refused(saved, tmp_path):
    index = build()
    index.kept = None
    index.save(tmp_path / "idx")
    np.save(tmp_path / "idx" / "vectors.npy", X)
    with pytest.raises(ValueError, match=r"vectors.npy is not in manifest.json"):
        nk.Index.load(tmp_path / "idx")


def test_without_verification_lengths_are_compared_and_contents_are_not(saved, tmp_path):
    folder = shutil.copytree(saved / "idx", tmp_path / "idx")
    whole = (folder / "vectors.npy").read_bytes()
    (folder / "vectors.npy").write_bytes(whole[:-1] + b"\1")
    nk.Index.load(folder, verify=False).search(X, 400, oversample=1)
    with verification(False):
        nk.Index.load(folder).search(X, 400, oversample=1)
    (folder / "vectors.npy").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="length"):
        nk.Index.load(folder, verify=False)


def test_a_manifest_that_contradicts_itself_is_refused(tmp_path):
    with saving_folder(tmp_path / "x", "thing", {}):
        pass
    file = tmp_path / "x" / "manifest.json"
    record = json.loads(file.read_text())
    entry, outside = record["files"]["config.json"], ("../x", "/etc/passwd", "a/../../x", "a//x", "./x", "", "a\0")
    for change in ({"files": 3}, *({"files": {name: entry}} for name in outside)):
        file.write_text(json.dumps(record | change))
        for read in (read_config, read_manifest):
            with pytest.raises(ValueError, match="cannot be read"):
                read(tmp_path / "x")


def test_a_load_during_saves_is_of_one_version(tmp_path):
    """Before, 4 to 5 % of loads during a save were torn or failed."""
    versions = [build(0), build(1)]
    expected = [index.search(X[:5], 3)[0].tolist() for index in versions]
    versions[0].save(tmp_path / "idx")
    stop = threading.Event()

    def save() -> None:
        while not stop.is_set():
            for index in versions:
                index.save(tmp_path / "idx", overwrite=True)

    writer = threading.Thread(target=save)
    writer.start()
    try:
        for _ in range(60):
            assert nk.Index.load(tmp_path / "idx").search(X[:5], 3)[0].tolist() in expected
    finally:
        stop.set()
        writer.join()
