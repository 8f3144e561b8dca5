"""The demo's claims, on the digits that ship with scikit-learn."""

import re
import shlex
from pathlib import Path

import pytest

from nearkin.pipeline import demo_page, run_demo, save_for_explore
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


def test_it_ends_with_a_command_that_opens_the_digits(demo: Demo, tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    command = shlex.split(save_for_explore(demo, tmp_path / "de mo"))
    assert command[:2] == ["nearkin", "explore"]
    done = run(*command[1:], "--out", tmp_path / "page.html", "--rows", 20)
    assert done.exit_code == 0, done.output
    assert "20 of 1,500 rows" in done.output
