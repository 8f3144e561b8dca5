"""Memory that is free goes back to the system: in processes of their own, since it is set for a whole process."""

import subprocess
import sys

import pytest

from tests.cli.conftest import run

HELD = """
import os, sys
import numpy as np
from nearkin.cli.embed import give_back_large_arrays

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

if sys.argv[1] == "given back":
    assert give_back_large_arrays()
for _ in range(3):
    np.ones(3_900_000)  # 31 MB: what glibc has seen freed, it takes from its heap the next time
before = resident()
tables, kept = [], []
for _ in range(10):
    tables.append(np.ones(1_200_000))  # 10 MB each, and a little behind it that stays
    kept.append(np.ones(10_000))
tables.clear()
print((resident() - before) / 1e6)
"""


def megabytes_kept(how: str) -> float:
    """What a process still holds of 96 MB that it has freed."""
    done = subprocess.run([sys.executable, "-c", HELD, how], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and glibc")
def test_large_arrays_are_given_back() -> None:
    if megabytes_kept("as it is") < 50:
        pytest.skip("this C library gives them back by itself")
    assert megabytes_kept("given back") < 10


def test_train_gives_large_arrays_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: `nearkin train gowalla.npz --bytes 32 --dim 256` held 1.56 GB, a fifth of which it did not use."""
    called: list[bool] = []
    monkeypatch.setattr("nearkin.cli.embed.give_back_large_arrays", lambda: called.append(True))
    assert run("train", sys.executable, "--out", "nowhere").exit_code == 2  # it is no table
    assert called == [True]
