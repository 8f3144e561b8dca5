"""The codecs benchmark's own parts: sizes, limits, and a table of rows that were and were not measured."""

import json
import subprocess
import sys

import pytest

from benchmarks.codecs import fastest
from benchmarks.codecs.table import tables
from benchmarks.options import ROOT
from benchmarks.table import Results


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processor time, and processes by fork")
def test_what_takes_too_long_is_a_row_that_says_so():
    code = """
from benchmarks.codecs.limits import within

def endless():
    yield {"codec": "first"}
    while True:
        pass

print([*within(1, endless), *within(5, lambda: iter([{"recall": 1.0}]))])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([{"codec": "first"}, {"note": "stopped after 1 CPU s"}, {"recall": 1.0}])


def test_plain_calls_and_the_best_of_faiss_share_a_row(tmp_path):
    rows = [
        {"data": "sentences", "bits": 0.5, "codec": name, "bytes": 8, "recall": recall, "train_seconds": 1.0} | more
        for name, recall, more in (
            ("FAISS OPQ, identity", 0.5, {"at_length": 0.56}), ("FAISS RQ, beam 5", 0.55, {"at_length": 0.54}),
            ("ours, ProductQuantizer", 0.9, {}), ("ours, best: residual", 0.57, {}), ("ours, compress: axes", 0.58, {}),
        )
    ]  # fmt: skip
    rows.append({"data": "sentences", "bits": 1.0, "codec": "FAISS LSQ", "note": "stopped after 5 CPU s"})
    (tmp_path / "codecs_sentences.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    best, _ = tables(Results(tmp_path))
    ours = ["sentences", "8", "0.9", "1", "0.5", "1", "axes", "0.58", "1", "residual", "0.57", "1"]
    assert best.rows == [[*ours, "RQ, beam 5", "0.55", "1", "0.56", "+2.0 points", "-", "-"]]


def test_the_fastest_at_a_recall_is_compared_within_equal_bytes(tmp_path):
    def row(codec: str, *points: tuple[list[int], float, float, int]) -> dict[str, object]:
        names = "effort", "recall", "per_second", "bytes"
        return {"codec": codec, "threads": 2, "points": [dict(zip(names, point, strict=True)) for point in points]}

    rows = [
        row("ours, 8 bytes", ([1, 0], 0.4, 400.0, 8), ([2, 0], 0.6, 100.0, 8), ([1, 3], 0.45, 5.0, 136)),
        row("FAISS PQ16x4fs", ([0, 0], 0.5, 100.0, 8), ([0, 3], 0.95, 30.0, 136)),
        {"codec": "usearch int8", "note": "not installed"},
    ]
    (tmp_path / "codecs_speed_6.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    found = {(line[2], line[3]): line[4:] for line in fastest.table(Results(tmp_path)).rows}
    assert found["16", "ours"] == ["400", "200", "100", *["-"] * 6]  # between two points by their logarithms
    assert found["16", "FAISS's codes"] == ["100", "100", *["-"] * 7]
    assert found["16", "ours / the best other"][:4] == ["4", "2", "alone", "-"]
    assert found["160", "FAISS's codes"][2:] == ["30", "30", "30", "30", "30", "-", "-"]
    assert ("160", "usearch, bytes") not in found
