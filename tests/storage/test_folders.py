"""What exists is refused; with `overwrite` a file is replaced, and of a folder what its manifest lists and no more."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin._storage import adding, check_target, read_config, saving_folder
from nearkin.data import comparisons_from_names
from tests.covering import each
from tests.storage.signed import save, state

X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
MODELS: dict[str, Callable[[], object]] = {
    "index": lambda: nk.Index.build(X),
    "hasher": lambda: nk.ITQ(2, random_state=0).fit(X),
    "quantizer": lambda: nk.ProductQuantizer(2, 8, random_state=0).fit(X),
    "towers": lambda: nk.TwoTower(2, random_state=0).fit(nk.Interactions.from_pairs(list("aabb"), list("xyxz"))),
    "ordinal": lambda: nk.OrdinalEmbedding(2, n_init=1, random_state=0).fit(comparisons_from_names([list("abc")])),
}


@each("name", MODELS)
def test_every_save_refuses_what_exists_and_overwrite_replaces_it(name: str, tmp_path: Path) -> None:
    made: object = MODELS[name]()
    (tmp_path / "x").mkdir()  # empty: nothing is lost
    made.save(tmp_path / "x")  # type: ignore[attr-defined]
    save(tmp_path / "y", "old")
    again = MODELS[name]()
    for place in ("x", "y"):
        with pytest.raises(ValueError, match=r"exists; give another name, or overwrite=True"):
            again.save(tmp_path / place)  # type: ignore[attr-defined]
    again.save(tmp_path / "y", overwrite=True)  # type: ignore[attr-defined]
    assert {file.name for file in (tmp_path / "y").iterdir()} == {file.name for file in (tmp_path / "x").iterdir()}


def test_an_index_replaces_its_own_folders(tmp_path: Path) -> None:
    index = nk.Index.build(X)
    index.save(tmp_path / "idx")
    index.add(X).save(tmp_path / "idx")
    loaded = nk.Index.load(tmp_path / "idx")
    loaded.save(tmp_path / "copy")
    loaded.add(X).save(tmp_path / "idx")
    assert len(nk.Index.load(tmp_path / "idx")) == 120
    (tmp_path / "idx" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"idx holds thesis.tex"):
        loaded.save(tmp_path / "idx")


def test_a_folder_of_another_program_is_not_replaced(tmp_path: Path) -> None:
    for name in ("config.json", "manifest.json", "weights.bin"):
        folder = tmp_path / f"with {name}"
        folder.mkdir()
        (folder / name).write_text('{"name": "my site"}')
        for overwrite in (False, True):
            with pytest.raises(ValueError, match=rf"with {name} holds {name}" if overwrite else f"with {name} exists"):
                save(folder, "new", overwrite=overwrite)
        assert (folder / name).read_text() == '{"name": "my site"}'


MINE: dict[str, Callable[[Path], object]] = {
    "thesis.tex": lambda path: path.write_text("mine"),
    ".hidden": lambda path: path.write_text("mine"),
    "deep/.git/HEAD": lambda path: path.write_text("mine"),
    "report.html": lambda path: path.write_text("mine"),
    "evaluation.json": lambda path: path.write_text("{}"),
    "link": lambda path: path.symlink_to("nowhere"),
    "folder": lambda path: path.symlink_to(path.parents[1]),
    "fifo": lambda path: os.mkfifo(path),
}


def test_other_files_in_a_saved_folder_are_named_and_stay(tmp_path: Path) -> None:
    for number, name in enumerate(MINE):
        folder = tmp_path / f"{number}"
        save(folder, "old")
        (folder / name).parent.mkdir(exist_ok=True)
        MINE[name](folder / name)
        with pytest.raises(ValueError, match=rf"{number} holds {name}, which no manifest.json of nearkin lists; move"):
            save(folder, "new")
        assert state(folder) == "old"
        assert os.path.lexists(folder / name)


def test_a_part_of_a_saved_folder_is_changed_only_with_it(tmp_path: Path) -> None:
    with saving_folder(tmp_path / "whole", "store", {}) as fresh:
        save(fresh / "part", "old")
    for name, folder in (("part", True), ("part/config.json", False)):
        with pytest.raises(ValueError, match=rf"{name} is a part of .*whole, which lists its files: load"):
            check_target(tmp_path / "whole" / name, True, folder=folder)
    save(tmp_path / "whole", "new")


def test_what_came_during_the_work_is_not_replaced(tmp_path: Path) -> None:
    def long_work(overwrite: bool) -> None:
        with saving_folder(tmp_path / "x", "lance export", {}, overwrite):
            (tmp_path / "x").mkdir(exist_ok=True)
            (tmp_path / "x" / "thesis.tex").write_text("mine")

    for overwrite, message in ((False, "exists"), (True, "holds thesis.tex")):
        with pytest.raises(ValueError, match=message):
            long_work(overwrite)
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["thesis.tex"]


def test_a_file_that_joins_a_folder_is_listed_and_goes_with_it(tmp_path: Path) -> None:
    save(tmp_path / "x", "old")
    (tmp_path / "x" / "report.html").write_text("mine")
    with pytest.raises(ValueError, match=r"report.html exists"), adding(tmp_path / "x", "report.html"):
        pass
    for overwrite in (True, False):  # once it is nearkin's, it is written again
        with adding(tmp_path / "x", "report.html", overwrite) as fresh:
            fresh.write_text("ours")
    assert json.loads((tmp_path / "x" / "added.json").read_text()) == ["report.html"]
    (tmp_path / "x" / ".DS_Store").touch()  # of a file manager
    save(tmp_path / "x", "new")
    assert sorted(file.name for file in (tmp_path / "x").iterdir()) == ["config.json", "deep", "manifest.json"]


def test_what_joins_a_folder_inside_a_folder_damages_neither(tmp_path: Path) -> None:
    """The demo holds an index, which may be evaluated."""
    for text in ("old", "new"):
        with saving_folder(tmp_path / "demo", "demo", {}, overwrite=True) as folder:
            save(folder / "index", text)
        with adding(tmp_path / "demo" / "index", "evaluation.json") as fresh:
            fresh.write_text("{}")
        read_config(tmp_path / "demo")
    assert state(tmp_path / "demo" / "index") == "new"


def test_files_and_folders_do_not_replace_each_other(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    with pytest.raises(ValueError, match="is a file; give the name of a folder"):
        save(tmp_path / "f", "new")
    save(tmp_path / "x", "old")
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        check_target(tmp_path / "x", True, folder=False)


def test_an_input_is_never_replaced(tmp_path: Path) -> None:
    save(tmp_path / "x", "old")
    (tmp_path / "f.npy").write_text("mine")
    (tmp_path / "link").symlink_to("f.npy")
    for given in ("f.npy", "f.npy:key", "*.npy", "link"):
        for out in ("f.npy", "link"):
            with pytest.raises(ValueError, match="is an input and would be replaced"):
                check_target(tmp_path / out, True, [tmp_path / given], folder=False)
    for given in ("x", "x/config.json", "x/*.json"):
        with pytest.raises(ValueError, match="is an input and would be replaced"):
            check_target(tmp_path / "x", True, [tmp_path / given])
