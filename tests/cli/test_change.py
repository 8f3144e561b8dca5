"""`nearkin add`, `remove` and `update` on saved indexes, and what lies beside them."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import nearkin as nk
from nearkin import jobs
from nearkin.jobs.inputs import open_given
from nearkin.jobs.run import read_record
from nearkin.jobs.train import train_index
from tests.cli.conftest import load, refused, run, run_json


@pytest.fixture
def folder(files: Path, compressed: Callable[..., Path], tmp_path: Path) -> Path:
    return copytree(compressed("--ids", files / "ids.txt", "--keep-vectors"), tmp_path / "idx")


def test_rows_come_change_and_go(files: Path, folder: Path, tmp_path: Path) -> None:
    new = load(files)["query"][:3]
    np.save(tmp_path / "new.npy", new)
    (tmp_path / "names.txt").write_text("a\nb\nc\n")
    data = f"{files}/data.npz"
    run_json("evaluate", folder, f"{data}:query", "--base", f"{data}:base", "-k", 1)
    made = run_json("add", folder, tmp_path / "new.npy", "--ids", tmp_path / "names.txt")
    assert (made["vectors_before"], made["vectors"]) == (600, 603)
    assert not (folder / "evaluation.json").exists(), "it judged other rows"
    left = read_record(folder, "run.json") or {}
    assert not {"10-recall@10", "recall_interval", "judged_by", "distortion", "variance_kept"} & set(left)

    def nearest() -> list[str]:
        hits = run_json("search", folder, tmp_path / "new.npy", "-k", 1, "--oversample", 50)["hits"]
        return [hit["ids"][0] for hit in hits]

    assert nearest() == ["a", "b", "c"]
    np.save(tmp_path / "swapped.npy", new[[1, 0, 2]])
    run_json("update", folder, tmp_path / "swapped.npy", "--ids", tmp_path / "names.txt")
    assert nearest() == ["b", "a", "c"]
    (tmp_path / "some.txt").write_text("c\nd\n")
    assert run_json("add", folder, "--upsert", "--ids", tmp_path / "some.txt", _two(tmp_path, new))["vectors"] == 604
    assert nearest()[1:] == ["a", "d"]  # "b" and "c" are equal now
    refused = run("add", folder, "--ids", tmp_path / "some.txt", _two(tmp_path, new))
    assert "2 ids are in the index already, the first is 'c'; `update` replaces" in refused.stderr
    hits = run_json("search", folder, tmp_path / "new.npy", "-k", 3, "--among", tmp_path / "some.txt")["hits"]
    assert [sorted(hit["ids"]) for hit in hits] == [["c", "d"]] * 3
    hits = run_json("search", folder, tmp_path / "new.npy", "-k", 9, "--exclude", tmp_path / "some.txt")["hits"]
    assert not {"c", "d"} & {name for hit in hits for name in hit["ids"]}
    assert run_json("remove", folder, "a", "b", "c", "d")["vectors"] == 600
    assert not {"a", "b", "c"} & set(nearest())
    assert not jobs.check(folder)["damaged"]


def _two(folder: Path, new: np.ndarray) -> Path:
    """The first vector for "c", the third for "d"."""
    np.save(folder / "two.npy", new[[0, 2]])
    return folder / "two.npy"


def test_numbers_given_as_text(compressed: Callable[..., Path], tmp_path: Path) -> None:
    folder = copytree(compressed(), tmp_path / "idx")
    assert run_json("remove", folder, "0", "599")["vectors"] == 598
    refused("id '0' is not among the 598 known ids, such as 1, 2", "remove", folder, "0")
    assert len(nk.Index.load(folder)) == 598
    record = run_json("remove", folder, "0", "5", "--unknown", "drop")
    assert (record["vectors"], record["missing"]) == (597, 1)


def test_the_left_side_follows(tmp_path: Path) -> None:
    """Rows that move take the seen pairs with them: nobody is offered what they have."""
    pairs = nk.data.planted_interactions(50, 120, random_state=0).interactions
    pairs = nk.Interactions.from_pairs(pairs.left_ids[pairs.rows], pairs.right_ids[pairs.indices])
    train_index(pairs, tmp_path / "idx", n_bytes=4, dim=8, loss="cosine-softmax", split="none")
    index = nk.Index.load(tmp_path / "idx")
    own = index.ids if index.ids is not None else np.arange(len(index))
    np.save(tmp_path / "row.npy", open_given(tmp_path / "idx").file.read()[:2])
    (tmp_path / "ids.txt").write_text("\n".join(map(str, own[:2])))
    run_json("update", tmp_path / "idx", tmp_path / "row.npy", "--ids", tmp_path / "ids.txt")
    run_json("remove", tmp_path / "idx", str(own[5]))
    answers = jobs.recommend(tmp_path / "idx", all_=True, k=120)["answers"]
    offered = {(entry["left"], name) for entry in answers for name in entry["ids"]}
    known = {(pairs.left_ids[u], pairs.right_ids[i]) for u, i in zip(pairs.rows, pairs.indices, strict=True)}
    assert not known & offered
    assert len(offered) == 50 * 119 - len({pair for pair in known if pair[1] != own[5]})


def test_a_file_is_no_id_of_a_word_that_is_typed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`remove idx gone.txt --unknown drop` removed nothing, and said so by a number only."""
    monkeypatch.chdir(tmp_path)
    known = nk.Index.load(folder).ids[:3].tolist()
    for name in ("gone.txt", known[0]):
        (tmp_path / name).write_text(f"{known[1]}\n", encoding="utf-8")
    for command in ("remove", "similar"):
        for more in ([], ["--unknown", "drop"]):
            refused("'gone.txt' is a file and none of the 600 known ids", command, folder, known[2], "gone.txt", *more)
    assert run_json("remove", folder, known[0])["vectors"] == 599  # an id, whatever files there are
    assert run_json("remove", folder, "--ids", "gone.txt")["vectors"] == 598
