"""The codecs benchmark's own parts: sizes, limits, and a table of rows that were and were not measured."""

import json
import subprocess
import sys

import pytest

from benchmarks.codecs.run import size
from benchmarks.codecs.table import tables
from benchmarks.options import ROOT
from benchmarks.table import Results


def test_bytes_divide_the_columns():
    assert [size(128, bits) for bits in (0.25, 0.5, 4)] == [4, 8, 64]
    assert [size(784, bits) for bits in (0.25, 1)] == [28, 98]


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


def test_rows_are_in_order_and_notes_stand_where_recall_would(tmp_path):
    rows = [
        {"data": "sift", "bits": 1.0, "codec": "slow", "note": "stopped after 5 CPU s"},
        {"data": "sift", "bits": 0.5, "codec": "quick", "bytes": 8, "recall": 0.5, "train_seconds": 1.0},
    ]
    (tmp_path / "codecs_sift.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    (table,) = tables(Results(tmp_path))
    assert [row[2:4] for row in table.rows] == [["quick", "0.5"], ["slow", "stopped after 5 CPU s"]]
