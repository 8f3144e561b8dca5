"""Several writers and a reader of one saved index at once, by threads and by processes: see `together`."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

import nearkin as nk
from tests.faults import together
from tests.faults.child import Fault
from tests.processes import Program

WAYS = ("threads", "fork", "spawn")


def case(number: int, seed: int, folder: Path) -> str:
    """One round; the ways take turns."""
    home = folder / f"together-{os.getpid()}"
    home.mkdir()
    rows = np.concatenate([together.row_of(i) for i in range(3)])
    nk.Index.build(rows, ids=np.arange(3)).save(home / "idx")
    way = WAYS[number % len(WAYS)]
    program = Program("tests.faults.together", home, way)
    try:
        printed, errors = program.communicate(300)
    finally:
        shutil.rmtree(home)
    if program.returncode or errors:
        raise Fault(f"{way}: {program.returncode}, {errors[-1500:]}")
    if wrong := json.loads(printed):
        raise Fault(f"{way}: {wrong[:3]}")
    return "same"
