"""Several writers and a reader of one saved index at once, by threads and by processes: see `together`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import nearkin as nk
from tests.faults import together
from tests.faults.child import ROOT, Fault

PROGRAM = Path(__file__).with_name("together.py")
WAYS = ("threads", "fork", "spawn")


def case(number: int, seed: int, folder: Path) -> str:
    """One round; the ways take turns."""
    home = folder / f"together-{os.getpid()}"
    home.mkdir()
    rows = np.concatenate([together.row_of(i) for i in range(3)])
    nk.Index.build(rows, ids=np.arange(3)).save(home / "idx")
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    words = [sys.executable, str(PROGRAM), str(home), WAYS[number % len(WAYS)]]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=300, env=os.environ | {"PYTHONPATH": path}
        )
    finally:
        shutil.rmtree(home)
    if done.returncode or done.stderr:
        raise Fault(f"{words[-1]}: {done.returncode}, {done.stderr[-1500:]}")
    if wrong := json.loads(done.stdout):
        raise Fault(f"{words[-1]}: {wrong[:3]}")
    return "same"
