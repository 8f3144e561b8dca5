"""One change at a time: a lock on a folder that is replaced while others wait for it."""

import os
import threading
from pathlib import Path

import pytest

from nearkin._storage import atomic, changing
from tests.covering import each
from tests.storage.signed import save, state


def test_changes_of_many_threads_all_count(tmp_path: Path) -> None:
    save(tmp_path / "idx", "0")

    def count() -> None:
        for _ in range(5):
            with changing(tmp_path / "idx"):
                number = int(state(tmp_path / "idx"))
                save(tmp_path / "idx", str(number + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state(tmp_path / "idx") == "20"
    assert [entry.name for entry in tmp_path.iterdir()] == ["idx"]


def test_an_error_frees_the_folder_and_it_may_be_held_again(tmp_path: Path) -> None:
    save(tmp_path / "idx", "0")
    with pytest.raises(KeyError), changing(tmp_path / "idx"):
        raise KeyError
    with changing(tmp_path / "idx"):
        pass


@each("reads", ["changing", "read_config"])
def test_a_folder_between_two_renames_is_waited_for(
    reads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The save goes on once the folder has been missed."""
    save(tmp_path / "idx", "0")
    replace, looked, between, missed = os.replace, atomic.sweep, threading.Event(), threading.Event()

    def slowly(fresh: Path, path: Path) -> None:
        between.set()
        missed.wait(60)
        replace(fresh, path)

    def looks(folder: Path, name: str) -> None:
        looked(folder, name)
        if between.is_set():
            missed.set()

    monkeypatch.setattr(atomic, "_LOOKS", 10_000)  # the other thread may have to wait for a core
    monkeypatch.setattr(atomic, "sweep", looks)
    monkeypatch.setattr(os, "replace", slowly)
    thread = threading.Thread(target=lambda: save(tmp_path / "idx", "1"))
    thread.start()
    between.wait(60)
    if reads == "changing":
        with changing(tmp_path / "idx"):
            assert missed.is_set()
    else:
        assert state(tmp_path / "idx") == "1"
    thread.join()


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"), changing(tmp_path / "idx"):
        pass
