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


def test_on_a_table_of_distances(monkeypatch, tmp_path, capsys):
    points = np.random.default_rng(0).normal(size=(8, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    names = [f"city {n}" for n in range(8)]
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["", *names], *([name, *row] for name, row in zip(names, distances, strict=True))])
    run(monkeypatch, tmp_path / "d.csv", "--answers", "100", "--out", tmp_path / "map.png")
    assert "from 100 answers" in capsys.readouterr().out
