import os

import numpy as np
import pytest

from nearkin._storage import read_arrays, read_config, regular_file, replacing, saving_folder, write_arrays


def test_files_and_folders_appear_whole(tmp_path):
    with replacing(tmp_path / "deep" / "a.txt") as fresh:
        fresh.write_text("one")
        assert not (tmp_path / "deep" / "a.txt").exists()
    with replacing(tmp_path / "deep" / "a.txt") as fresh:
        fresh.write_text("two")
    assert (tmp_path / "deep" / "a.txt").read_text() == "two"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["a.txt"]


def test_an_error_keeps_the_old(tmp_path):
    with saving_folder(tmp_path / "x", "thing", {"a": 1}):
        pass

    def half_a_save() -> None:
        with saving_folder(tmp_path / "x", "thing", {"a": 2}) as folder:
            (folder / "half").write_text("written")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half_a_save()
    assert read_config(tmp_path / "x", "thing")["a"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_arrays_round_trip_and_damage_is_named(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3)[:, ::-1], "b": np.ones(3, np.float32)}
    write_arrays(tmp_path / "a.safetensors", arrays)
    back = read_arrays(tmp_path / "a.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
    (tmp_path / "a.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="damaged"):
        read_arrays(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="is missing"):
        read_arrays(tmp_path / "b.safetensors")


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "f").write_text("mine")
    with pytest.raises(ValueError, match="is a file"), saving_folder(tmp_path / "f", "thing", {}):
        pass
    assert (tmp_path / "f").read_text() == "mine"


def test_only_ordinary_files_are_opened(tmp_path):
    """A FIFO without a writer blocks its reader for ever; a device such as /dev/zero never ends."""
    (tmp_path / "f").write_text("x")
    assert regular_file(tmp_path / "f") == tmp_path / "f"
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="is a FIFO"):
        regular_file(tmp_path / "fifo")
    with pytest.raises(ValueError, match="is a device"):
        regular_file("/dev/zero")
    with pytest.raises(ValueError, match="is a folder"):
        regular_file(tmp_path)
    for name in ("none", "f/x"):
        with pytest.raises(FileNotFoundError, match="does not exist"):
            regular_file(tmp_path / name)
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(ValueError, match="cannot be the name of a file"):
            regular_file(name)
