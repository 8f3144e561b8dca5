"""One change at a time: a lock on a folder that is replaced while others wait for it."""

import threading
from pathlib import Path

import pytest

from nearkin._storage import atomic, changing, saving_folder


def save(path: Path, text: str) -> None:
    with saving_folder(path, "lance export", {}, overwrite=True) as folder:
        (folder / "data").write_text(text)


def test_changes_of_many_threads_all_count(tmp_path: Path) -> None:
    save(tmp_path / "idx", "0")

    def count() -> None:
        for _ in range(5):
            with changing(tmp_path / "idx"):
                number = int((tmp_path / "idx" / "data").read_text())
                save(tmp_path / "idx", str(number + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "idx" / "data").read_text() == "20"
    assert [entry.name for entry in tmp_path.iterdir()] == ["idx"]


def test_an_error_frees_the_folder_and_it_may_be_held_again(tmp_path: Path) -> None:
    save(tmp_path / "idx", "0")
    with pytest.raises(KeyError), changing(tmp_path / "idx"):
        raise KeyError
    with changing(tmp_path / "idx"):
        pass


def test_a_folder_between_two_renames_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The save begins once the folder has been missed."""
    recover, missed = atomic.recover, threading.Event()

    def recovered(path: Path) -> None:
        missed.set()
        recover(path)

    monkeypatch.setattr(atomic, "_LOOKS", 10_000)  # the other thread may have to wait for a core
    monkeypatch.setattr(atomic, "recover", recovered)
    thread = threading.Thread(target=lambda: missed.wait() and save(tmp_path / "idx", "0"))
    thread.start()
    with changing(tmp_path / "idx"):
        assert missed.is_set()
    thread.join()


def test_no_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin._storage.atomic._LOOKS", 2)
    with pytest.raises(FileNotFoundError, match="does not exist"), changing(tmp_path / "idx"):
        pass
