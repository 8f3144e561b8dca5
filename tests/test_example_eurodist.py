"""The example runs as a user would run it, on its made-up distances and on a table of one's own."""

import csv
import runpy
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[1] / "examples" / "eurodist.py"


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_on_made_up_distances(monkeypatch, tmp_path, capsys):
    run(monkeypatch, "--out", tmp_path / "map.png")
    lines = capsys.readouterr().out.splitlines()
    wrong = {line.split()[0]: float(line.split()[5].rstrip(",")) for line in lines[:4]}
    assert set(wrong) == {"gnmds", "ckl", "ste", "t-ste"}
    assert max(wrong.values()) < 0.12, wrong
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_a_table_of_distances_is_read(tmp_path):
    made = runpy.run_path(str(SCRIPT))
    names, distances = made["invent_distances"](4)
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["", *names], *([name, *row] for name, row in zip(names, distances, strict=True))])
    found = made["read_distances"](tmp_path / "d.csv")
    assert found[0] == names
    np.testing.assert_allclose(found[1], distances)
