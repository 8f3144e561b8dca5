"""Loading while another process saves, and folders whose content cannot be what it says."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin._storage import replacing_folder
from nearkin._storage.manifest import write_manifest
from nearkin.data import comparisons_from_names
from nearkin.embedding.ordinal import estimator as ordinal_storage
from nearkin.embedding.two_tower import estimator as tower_storage
from nearkin.jobs import inputs
from nearkin.jobs.inputs import open_sides
from nearkin.jobs.train import train_index
from tests.covering import each


def ordinal(seed: int) -> nk.OrdinalEmbedding:
    rows = comparisons_from_names([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]][: 2 + seed])
    return nk.OrdinalEmbedding(2, max_iter=2, n_init=1, random_state=seed).fit(rows)


def towers(seed: int) -> nk.TwoTower:
    pairs = nk.Interactions.from_pairs([f"u{i}" for i in range(8)], [f"i{i % (3 + seed)}" for i in range(8)])
    return nk.TwoTower(2, random_state=seed).fit(pairs)


@each(
    ("make", "storage", "reader"), [(ordinal, ordinal_storage, "read_arrays"), (towers, tower_storage, "read_towers")]
)
def test_a_load_during_a_save_is_of_one_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, storage: Any, reader: str
) -> None:
    """Before, config.json could be of the old model and the arrays of the new one."""
    old, new = make(0), make(1)
    old.save(tmp_path / "model")
    read, saves = getattr(storage, reader), [new]

    def replaced_first(path: Path) -> Any:
        if saves:
            saves.pop().save(tmp_path / "model", overwrite=True)
        return read(path)

    monkeypatch.setattr(storage, reader, replaced_first)
    loaded = type(old).load(tmp_path / "model")
    state = {name: value for name, value in vars(loaded).items() if isinstance(value, np.ndarray)}
    assert not saves
    assert state
    assert all(np.array_equal(value, vars(new)[name]) for name, value in state.items())
    assert loaded.get_params()["random_state"] == 1


def test_both_sides_of_a_folder_are_of_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The left side of the old and the index of the new would recommend without an error."""
    table = nk.Interactions.from_pairs([f"u{i % 60}" for i in range(400)], [f"i{i * i % 41}" for i in range(400)])
    for seed, name in enumerate(("idx", "new")):
        options = {"n_bytes": 2, "dim": 4, "loss": "all-pairs", "split": "none", "random_state": seed}
        train_index(table, tmp_path / name, **options)
    saves, read = [tmp_path / "new"], inputs.read_arrays

    def replaced_then(path: Path) -> dict[str, np.ndarray]:
        found = read(path)
        if saves:
            with replacing_folder(tmp_path / "idx", overwrite=True) as fresh:
                shutil.copytree(saves.pop(), fresh)
        return found

    monkeypatch.setattr(inputs, "read_arrays", replaced_then)
    found, expected = (open_sides(tmp_path / name) for name in ("idx", "new"))
    assert not saves
    np.testing.assert_array_equal(found.left, expected.left)
    np.testing.assert_array_equal(found.right_vectors(), expected.right_vectors())


def test_text_that_is_no_text_in_arrays_is_the_folders_damage(tmp_path: Path) -> None:
    """Before, a UnicodeDecodeError that named no folder."""
    towers(0).save(tmp_path / "model")
    file = tmp_path / "model" / "pairs.safetensors"
    file.write_bytes(file.read_bytes().replace(b"u0u1", b"\xff0u1"))
    write_manifest(tmp_path / "model", "two-tower")
    with pytest.raises(ValueError, match=r"model cannot be read \(UnicodeDecodeError"):
        nk.TwoTower.load(tmp_path / "model")
