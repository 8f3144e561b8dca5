"""`nearkin rotate`: what it prints is words."""

from pathlib import Path

import numpy as np
import pytest

from nearkin.cli.export import in_words
from tests.cli.conftest import run, run_json
from tests.covering import each


@each(
    ("name", "words"),
    [
        ("none", "no rotation"),
        ("trained from none", "trained from no rotation"),
        ("pca", "principal axes"),
    ],
)
def test_the_name_of_a_rotation_is_said_in_words(name: str, words: str) -> None:
    assert in_words(name) == words


@pytest.mark.parametrize(("engine", "clear"), [("pgvector-bit", True), ("lucene-int8", False)])
def test_a_gain_whose_interval_includes_0_is_a_tie(tmp_path: Path, engine: str, clear: bool) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(1500, 16)) @ (rng.normal(size=(16, 16)) * np.geomspace(5, 0.1, 16)))
    made = run_json("rotate", tmp_path / "X.npy", "--for", engine, "--out", tmp_path / "a.npy")
    low, high = made["gain_interval"]
    assert low <= made["gain"] <= high
    printed = run("rotate", tmp_path / "X.npy", "--for", engine, "--out", tmp_path / "b.npy").stdout
    assert (low > 0, "a tie" in printed) == (clear, not clear), printed
