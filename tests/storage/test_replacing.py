"""A save that is interrupted at any moment leaves the old folder or the new one, and nothing beside it for long."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin._storage import recover, replacing
from nearkin.jobs.change import change_rows
from tests.covering import each
from tests.storage.signed import save, state

CALLS = ("rename", "replace", "fsync", "rmdir", "unlink")


def test_files_and_folders_appear_whole(tmp_path):
    with replacing(tmp_path / "deep" / "a.txt") as fresh:
        fresh.write_text("one")
        assert not (tmp_path / "deep" / "a.txt").exists()
    with replacing(tmp_path / "deep" / "a.txt") as fresh:
        fresh.write_text("two")
    assert (tmp_path / "deep" / "a.txt").read_text() == "two"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["a.txt"]


@each("after", [False, True])
def test_ctrl_c_at_any_moment_leaves_old_or_new(tmp_path, monkeypatch, after):
    """Before, Ctrl-C in the first rename lost old and new."""
    n, interrupted = -1, True
    while interrupted:
        n, interrupted, count, path = n + 1, False, iter(range(1000)), tmp_path / f"{n}" / "idx"
        save(path, "old")
        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, interrupting(getattr(os, name), count, n, after))
            try:
                save(path, "new")
            except KeyboardInterrupt:
                interrupted = True
        assert state(path) in ("old", "new")
        save(path, "again")
        assert [entry.name for entry in path.parent.iterdir()] == ["idx"]
    assert n > 8
    assert state(path) == "again"


def interrupting(call, count, n, after):
    def run(*args, **options):
        if next(count) != n:
            return call(*args, **options)
        if after:
            call(*args, **options)
        raise KeyboardInterrupt

    return run


def test_a_living_writer_is_left_alone(tmp_path):
    with replacing(tmp_path / "idx") as fresh:
        fresh.mkdir()
        recover(tmp_path / "idx")
        save(tmp_path / "idx", "of another")
        assert fresh.is_dir()
        (fresh / "data").write_text("mine")
    assert [entry.name for entry in tmp_path.iterdir()] == ["idx"]
    assert (tmp_path / "idx" / "data").read_text() == "mine"


def test_folders_that_only_look_alike_are_not_swept(tmp_path):
    mine = tmp_path / ".idx.archived"
    mine.mkdir()
    (mine / "old").write_text("mine")
    save(tmp_path / "idx", "new")
    assert (mine / "old").read_text() == "mine"


def test_a_link_goes_on_pointing_to_its_place(tmp_path):
    save(tmp_path / "disk" / "idx", "old")
    (tmp_path / "idx").symlink_to(tmp_path / "disk" / "idx")
    save(tmp_path / "idx", "new")
    assert (tmp_path / "idx").is_symlink()
    assert state(tmp_path / "disk" / "idx") == "new"


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="neither a file nor a folder"), replacing(tmp_path / "pipe"):
        pass


def test_a_save_inside_a_save_that_was_killed_is_swept(tmp_path):
    """Before, what `compress` left when it was killed while it saved (the whole index) lay there for good."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom nearkin._storage import replacing\n"
        "with replacing(Path(sys.argv[1])) as fresh:\n    fresh.mkdir()\n"
        "    with replacing(fresh) as inner:\n        inner.mkdir()\n        os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=True)
    assert len(list(tmp_path.iterdir())) == 1
    with replacing(tmp_path / "out") as fresh:
        fresh.mkdir()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_workspace_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Another process that looks after killed writers takes an empty workspace for one of theirs."""
    make, made = tempfile.mkdtemp, []

    def swept(**options):
        made.append(make(**options))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    with replacing(tmp_path / "new") as fresh:
        fresh.write_text("1")
    assert (tmp_path / "new").read_text() == "1"
    assert len(made) == 2


def rights(path: Path) -> dict[str, tuple[int, int, int]]:
    found = {"": path, **{str(place.relative_to(path)): place for place in path.rglob("*")}}
    return {name: ((now := place.stat()).st_mode & 0o7777, now.st_uid, now.st_gid) for name, place in found.items()}


@each("mode", [0o2775, 0o700, 0o750, 0o777])
def test_what_is_replaced_keeps_its_mode_owner_and_group(mode: int, tmp_path: Path) -> None:
    """A folder of a team became one of the last person who changed it."""
    owner, group = (12345, 23456) if os.geteuid() == 0 else (os.geteuid(), os.getgroups()[-1])
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    index = nk.Index.build(X, nk.ProductQuantizer(2, 8, max_iter=1, random_state=0))
    index.save(tmp_path / "idx")
    for place in (tmp_path / "idx", *(tmp_path / "idx").rglob("*")):
        os.chown(place, owner, group)
        place.chmod(mode if place.is_dir() else mode & 0o666)
    (tmp_path / "idx" / "config.json").chmod(0o640)
    before = rights(tmp_path / "idx")
    np.save(tmp_path / "more.npy", X)
    index.save(tmp_path / "idx")
    change_rows(tmp_path / "idx", "update", np.arange(60), nk.data.open_vectors(tmp_path / "more.npy"))
    assert rights(tmp_path / "idx") == before
    nk.Index.build(X, index.quantizer, np.arange(60), keep_vectors=True).save(tmp_path / "idx", overwrite=True)
    after = rights(tmp_path / "idx")  # with a new file
    assert after == before | {"vectors.npy": (mode & 0o666, owner, group)}


def test_rights_that_cannot_be_kept_go_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "idx", "old")
    (tmp_path / "idx").chmod(0o2775)
    plain = os.stat

    def of_others(place: Path, **options: bool) -> os.stat_result:
        found = plain(place, **options)
        if Path(place) != tmp_path / "idx" and "data" not in str(place):
            return found
        return os.stat_result([*found[:4], found.st_uid + 1, found.st_gid + ("data" not in str(place)), *found[6:]])

    def refused(place: Path, owner: int, group: int) -> None:
        if owner != -1 or "data" not in str(place):
            raise PermissionError

    monkeypatch.setattr(os, "stat", of_others)
    monkeypatch.setattr(os, "chown", refused)
    with pytest.warns(UserWarning, match="idx changes its owner or group"):
        save(tmp_path / "idx", "new")
    monkeypatch.undo()
    assert state(tmp_path / "idx") == "new"
    assert rights(tmp_path / "idx")[""][0] == 0o705
    assert rights(tmp_path / "idx")["deep/data"][0] & 0o660 == 0o640


def test_a_workspace_that_cannot_be_removed_is_named_and_swept_later(tmp_path, monkeypatch) -> None:
    """The old folder stayed beside the new one for good, without a word and without the lock that marks it."""
    save(tmp_path / "idx", "old")
    monkeypatch.setattr("shutil.rmtree", lambda *given, **options: None)
    with pytest.warns(UserWarning, match=r"\.idx\..* cannot be removed"):
        save(tmp_path / "idx", "new")
    assert state(tmp_path / "idx") == "new"
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.undo()
    save(tmp_path / "idx", "newer")
    assert [entry.name for entry in tmp_path.iterdir()] == ["idx"]
