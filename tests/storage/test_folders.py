"""Which folders are replaced: those that nearkin wrote, and no others."""

import json

import pytest

from nearkin._storage import check_target, read_config, saving_folder

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
