"""`nearkin ids` and `nearkin bridge`: what they write is what the library gives, and what they print is true."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run, run_json


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    old = rng.normal(size=(300, 6)).astype(np.float32)
    np.save(tmp_path / "old.npy", old)
    np.save(tmp_path / "new.npy", (old @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 1).astype(np.float32))
    (tmp_path / "names.txt").write_text("".join(f"Tee {i} ☕\n" for i in range(300)))
    return tmp_path


def test_every_item_gets_an_id_of_its_own(folder: Path) -> None:
    arguments = ("ids", folder / "old.npy", "--levels", 2, "--codes", 32, "--ids", folder / "names.txt")
    record = run_json(*arguments, "--out", folder / "ids")
    lines = [json.loads(line) for line in (folder / "ids" / "ids.jsonl").read_text(encoding="utf-8").splitlines()]
    made = nk.SemanticIds.load(folder / "ids")
    assert [line["ids"] for line in lines] == made.ids_.tolist()
    assert len({line["tokens"] for line in lines}) == record["items"] == 300
    assert lines[7]["item"] == "Tee 7 ☕"
    assert lines[7]["tokens"] == "<a_{}><b_{}>".format(*lines[7]["ids"])
    index = json.loads((folder / "ids" / "index.json").read_text(encoding="utf-8"))
    assert {name: "".join(tokens) for name, tokens in index.items()} == {line["item"]: line["tokens"] for line in lines}
    assert index["Tee 7 ☕"] == ["<a_{}>".format(lines[7]["ids"][0]), "<b_{}>".format(lines[7]["ids"][1])]
    assert record["shared_before"] == made.shared_
    assert run_json("check", folder / "ids")["verified"]
    shown = run(*arguments, "--out", folder / "ids")
    assert shown.exit_code == 0, shown.output
    assert f"{made.shared_:.1%}" in shown.output


def test_queries_of_a_new_encoder_are_mapped(folder: Path) -> None:
    old, new = np.load(folder / "old.npy"), np.load(folder / "new.npy")
    record = run_json("bridge", folder / "old.npy", "--new", folder / "new.npy", "--out", folder / "bridge")
    assert record["chosen"] == "orthogonal"
    assert record["kept"]["orthogonal"] > 0.99
    mapped = folder / "mapped.npy"
    run_json("bridge", folder / "new.npy", "--with", folder / "bridge", "--out", mapped)
    np.testing.assert_array_equal(np.load(mapped), nk.Bridge.load(folder / "bridge").transform(new))
    np.testing.assert_allclose(np.load(mapped), old, atol=1e-3)
    assert run("bridge", folder / "new.npy", "--with", folder / "bridge", "--out", mapped).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bridge", "old.npy"), "type --new FILE to learn a map from pairs"),
        (("bridge", "new.npy", "--with", "old.npy"), "old.npy"),
        (("ids", "old.npy", "--levels", 1, "--codes", 32), "type levels=2"),
        (("ids", "old.npy"), "or type codes=256"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[object, ...], message: str, folder: Path) -> None:
    if message == "or type codes=256":
        arguments = (*arguments, "--codes", 512)
    typed = [folder / str(word) if str(word).endswith(".npy") else word for word in arguments]
    result = run(*typed, "--out", folder / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (folder / "out").exists()
