"""Which folders are replaced: those that nearkin wrote, and no others."""

import json
import os

import pytest

from nearkin._storage import check_target, read_config, saving_folder
from nearkin.report.page import Page

FOREIGN = {
    "a model folder of another library": {"architectures": ["BertModel"], "hidden_size": 384},
    "another program's kind": {"kind": "web site", "format_version": 1},
    "no version": {"kind": "lance export"},
    "a newer version": {"kind": "lance export", "format_version": 99},
    "no object": [1, 2],
}


@pytest.mark.parametrize("config", FOREIGN.values(), ids=list(FOREIGN))
def test_a_folder_that_is_not_ours_is_not_replaced(tmp_path, config):
    """Before, any folder with a config.json was deleted."""
    mine = tmp_path / "model"
    mine.mkdir()
    (mine / "config.json").write_text(json.dumps(config))
    (mine / "weights.bin").write_text("mine")
    with pytest.raises(ValueError, match="model"):
        check_target(mine)
    with pytest.raises(ValueError, match="model"), saving_folder(mine, "lance export", {}):
        pass
    assert (mine / "weights.bin").read_text() == "mine"


def test_what_came_during_the_work_is_not_replaced(tmp_path):
    def long_work() -> None:
        with saving_folder(tmp_path / "x", "lance export", {}):
            (tmp_path / "x").mkdir()
            (tmp_path / "x" / "thesis.tex").write_text("mine")

    with pytest.raises(ValueError, match="other content"):
        long_work()
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["thesis.tex"]


def test_ours_and_empty_folders_are_replaced(tmp_path):
    (tmp_path / "x").mkdir()
    for kind in ("two-tower-checkpoint", "lance export"):
        with saving_folder(tmp_path / "x", kind, {}):
            pass
        assert read_config(tmp_path / "x")["kind"] == kind


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "f").write_text("mine")
    with pytest.raises(ValueError, match="is a file"), saving_folder(tmp_path / "f", "thing", {}):
        pass
    assert (tmp_path / "f").read_text() == "mine"


def test_a_save_removes_only_what_nearkin_put_there(tmp_path):
    """A user's hidden files, empty folders and own report.html went with the old folder."""
    folder = tmp_path / "idx"
    with saving_folder(folder, "index", {"metric": "l2", "n_features": 2, "n_rows": 3}) as fresh:
        (fresh / "old.npy").write_text("ours")
        (fresh / "quantizer").mkdir()
        (fresh / "quantizer" / "old").write_text("ours")
    mine = (".notes", ".git/HEAD", ".git/objects/ab/cd", "quantizer/.hidden", "report.html")
    for name in mine:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    for name in ("plans", ".git/empty"):
        (folder / name).mkdir()
    (folder / ".link").symlink_to("nowhere")
    os.mkfifo(folder / ".fifo")
    (folder / "evaluation.json").write_text("{}")  # ours, of the old rows
    for _ in range(2):
        with saving_folder(folder, "index", {"metric": "ip", "n_features": 2, "n_rows": 3}) as fresh:
            (fresh / "new.npy").write_text("ours")
        assert read_config(folder)["metric"] == "ip"
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert found == {"config.json", "manifest.json", "new.npy", *mine}
        assert all((folder / name).read_text() == "mine" for name in mine)
        assert (folder / "plans").is_dir()
        assert (folder / ".git" / "empty").is_dir()
        assert os.readlink(folder / ".link") == "nowhere"
        assert (folder / ".fifo").is_fifo()
    Page("of nearkin").write(folder / "report.html")
    (folder / ".notes").write_text("changed")
    with saving_folder(folder, "index", {"metric": "l2", "n_features": 2, "n_rows": 3}):
        pass
    assert not (folder / "report.html").exists()
    assert (folder / ".notes").read_text() == "changed"


def test_users_files_are_copied_where_the_disk_has_no_links(tmp_path, monkeypatch):
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for _ in range(2):
        with saving_folder(tmp_path / "x", "lance export", {}):
            pass
        (tmp_path / "x" / ".mine").write_text("mine")
    with saving_folder(tmp_path / "x", "lance export", {}):
        pass
    assert (tmp_path / "x" / ".mine").read_text() == "mine"
