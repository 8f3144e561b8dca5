"""The demo's claims, on the digits that ship with scikit-learn."""

import re
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest

import nearkin as nk
from nearkin._types import Record
from nearkin.jobs.check import check
from nearkin.jobs.demo import METHODS, RECALL, demo, digits
from nearkin.jobs.report import folder_page
from tests.cli.conftest import run
from tests.covering import each

OF_DEMO = sys.modules["nearkin.jobs.demo"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record], str]:
    """A demo of two sizes in few rounds, its trials, and the command that it names."""
    out = tmp_path_factory.mktemp("demo") / "de mo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OF_DEMO, "BYTES", (2, 4))
        base, labels, queries, theirs = digits()
        some = base[:1000], labels[:1000], queries, theirs
        patch.setattr(OF_DEMO, "digits", lambda: some)
        few = partial(nk.ProductQuantizer, max_iter=8)
        patch.setattr(OF_DEMO, "_quantizer", lambda n, way, seed: few(2 * n, 16, way, random_state=seed))
        made = demo(out=out)
        return out, made["trials"], made["next"][0]


@pytest.fixture(scope="module")
def trials(saved: tuple[Path, list[Record], str]) -> dict[tuple[str, int], Record]:
    return {(trial["method"], trial["bytes"]): trial for trial in saved[1]}


def test_every_method_at_every_size(trials: dict[tuple[str, int], Record]) -> None:
    assert len(trials) == 1 + 2 * len(METHODS)
    assert trials["exact search", 256][RECALL] == 1
    assert all(trial["times_smaller"] == 256 / trial["bytes"] for trial in trials.values())
    for name in METHODS.values():
        assert trials[name, 4][RECALL] > trials[name, 2][RECALL]
    assert not [key for trial in trials.values() for key in trial if " " in key]


@each("n_bytes", [2, 4])
@each("name", ["OPQ", "Givens greedy"])
def test_a_learned_rotation_keeps_more_neighbours_than_none(
    trials: dict[tuple[str, int], Record], n_bytes: int, name: str
) -> None:
    plain, rotated = trials["PQ", n_bytes], trials[name, n_bytes]
    assert rotated[RECALL] > plain[RECALL]
    assert rotated["distortion"] < plain["distortion"]


def test_the_page_is_the_report_of_the_folder(saved: tuple[Path, list[Record], str]) -> None:
    folder = saved[0]
    page = folder_page(folder).html()
    assert page.count("<svg") == 3
    assert all(link.startswith("#") for link in re.findall(r'(?:src|href)="([^"]*)"', page))
    assert "<script" not in page
    assert f">{saved[1][-1][RECALL]:.4g}<" in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_it_ends_with_a_command_that_opens_the_digits(saved: tuple[Path, list[Record], str], tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    out, _, said = saved
    command = shlex.split(said)
    assert command[:2] == ["nearkin", "explore"]
    done = run(*command[1:], "--out", tmp_path / "page.html", "--rows", 20)
    assert done.exit_code == 0, done.output
    assert "rows on the page" in done.output
    assert not check(out)["damaged"]
