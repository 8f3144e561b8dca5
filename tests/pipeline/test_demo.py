"""The demo's claims, on the digits that ship with scikit-learn."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from nearkin.pipeline import check_folder, demo_page, run_demo, save_demo
from nearkin.pipeline.demo import METHODS, Demo
from tests.cli.conftest import run


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo(0, n_bytes=(2, 4))


def test_every_method_at_every_size(demo: Demo) -> None:
    assert len(demo.trials) == 1 + 2 * len(METHODS)
    assert demo.trials[0].recall == 1
    assert all(trial.compression == 256 / trial.n_bytes for trial in demo.trials)


@pytest.mark.parametrize("n_bytes", [2, 4])
def test_a_learned_rotation_keeps_more_neighbours_than_none(demo: Demo, n_bytes: int) -> None:
    plain = demo.trial("PQ", n_bytes)
    for name in ("OPQ", "Givens greedy"):
        turned = demo.trial(name, n_bytes)
        assert turned.recall > plain.recall, f"recall of {name} {turned.recall}, of PQ {plain.recall}"
        assert turned.distortion < plain.distortion, f"{name} {turned.distortion}, PQ {plain.distortion}"


def test_more_bytes_are_better(demo: Demo) -> None:
    for name in METHODS.values():
        assert demo.trial(name, 4).recall > demo.trial(name, 2).recall


def test_the_page_stands_alone(demo: Demo) -> None:
    page = demo_page(demo).html()
    assert page.count("<svg") == 4
    assert page.count("<img") == 10 * (1 + 2 * 10)  # ten queries, ten exact and ten coded neighbours each
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in links)
    assert "<script" not in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_it_ends_with_a_command_that_opens_the_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette")
    monkeypatch.setattr("nearkin.pipeline.demo.BYTES", (4,))
    out = tmp_path / "de mo"
    command = shlex.split(save_demo(out)[1])
    assert command[:2] == ["nearkin", "explore"]
    done = run(*command[1:], "--out", tmp_path / "page.html", "--rows", 20)
    assert done.exit_code == 0, done.output
    assert "20 of 1,500 rows" in done.output
    assert check_folder(out)["verified"]
    save_demo(out)
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine/labels.npy", np.arange(3))
    with pytest.raises(ValueError, match="folder with other content"):
        save_demo(tmp_path / "mine")
    assert np.load(tmp_path / "mine/labels.npy").tolist() == [0, 1, 2], "A6: the user's labels were replaced"
