"""Several change one saved index at once, by threads or processes, while somebody reads it.

`python writers.py FOLDER threads|fork|spawn`. Each writer adds rows under ids of its own, takes one out and puts
another in its place; the reader loads all the time. Prints, as JSON, what was lost or seen that cannot be.
"""

import json
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.jobs.change import change_rows
from tests.faults.child import Fault
from tests.processes import Program

WAYS = ("threads", "fork", "spawn")
WRITERS, ROUNDS, D = 3, 2, 4


def row_of(number: int) -> np.ndarray:
    """The row (1, d) of an id: what is near it is itself."""
    return np.random.default_rng(number).normal(size=(1, D)).astype(np.float32)


def names_of(index: nk.Index) -> list[int]:
    return [] if index.ids is None else index.ids.tolist()


def write(folder: Path, writer: int) -> None:
    """Changes, each acknowledged by a line in the writer's own file once it is made."""
    with (folder / f"told-{writer}").open("w") as told:
        for step in range(ROUNDS):
            first = 100 * (writer + 1) + 10 * step
            np.save(
                folder / f"rows-{writer}.npy", np.concatenate([row_of(first), row_of(first + 1), row_of(first + 5000)])
            )
            change_rows(folder / "idx", "add", range(first, first + 3), open_vectors(folder / f"rows-{writer}.npy"))
            change_rows(folder / "idx", "remove", [first + 1])
            np.save(folder / f"row-{writer}.npy", row_of(first + 2))
            change_rows(folder / "idx", "update", [first + 2], open_vectors(folder / f"row-{writer}.npy"))
            told.write(f"{first}\n")
            told.flush()


def read(folder: Path, number: int) -> None:
    """Loads until a file says to stop; what cannot be is written down."""
    wrong: list[str] = []
    while not (folder / "stop").exists():
        index = nk.Index.load(folder / "idx")
        scores, ids = index.search(row_of(1), 1)
        if len(index) != len(set(names_of(index))) or ids.tolist() != [[1]] or scores[0, 0] > 1e-6:
            wrong.append(f"{len(index)} rows, {ids.tolist()}, {scores.tolist()}")
    (folder / f"seen-{number}").write_text(json.dumps(wrong))


def main(folder: Path, way: str) -> None:
    context: Any = None if way == "threads" else multiprocessing.get_context(way)
    make: Callable[..., threading.Thread | BaseProcess] = threading.Thread if context is None else context.Process
    writers = [make(target=write, args=(folder, number)) for number in range(WRITERS)]
    reader = make(target=read, args=(folder, 0))
    for one in (*writers, reader):
        one.start()
    for one in writers:
        one.join()
    (folder / "stop").touch()
    reader.join()
    index = nk.Index.load(folder / "idx")
    print(json.dumps([*_lost(folder, index), *json.loads((folder / "seen-0").read_text())]))


def _lost(folder: Path, index: nk.Index) -> list[str]:
    wrong, known = [], {0, 1, 2}
    for number in range(WRITERS):
        told = [int(line) for line in (folder / f"told-{number}").read_text().split()]
        wrong += [] if len(told) == ROUNDS else [f"writer {number} ended after {told}"]
        known |= {first + i for first in told for i in (0, 2)}
    names = set(names_of(index))
    if names != known:
        wrong.append(f"ids lost {sorted(known - names)}, more {sorted(names - known)}")
    for number in sorted(known):
        scores, ids = index.search(row_of(number), 1)
        if ids[0, 0] != number or scores[0, 0] > 1e-6:
            wrong.append(f"the row of {number} is not its own")
    return wrong + [f"left: {entry.name}" for entry in folder.iterdir() if entry.name.startswith(".")]


def case(number: int, seed: int, folder: Path) -> str:
    """One round; the ways take turns."""
    home = folder / f"together-{os.getpid()}"
    home.mkdir()
    rows = np.concatenate([row_of(i) for i in range(3)])
    nk.Index.build(rows, ids=np.arange(3)).save(home / "idx")
    way = WAYS[number % len(WAYS)]
    program = Program("tests.faults.writers", home, way)
    try:
        printed, errors = program.communicate(300)
    finally:
        shutil.rmtree(home)
    if program.returncode or errors:
        raise Fault(f"{way}: {program.returncode}, {errors[-1500:]}")
    if wrong := json.loads(printed):
        raise Fault(f"{way}: {wrong[:3]}")
    return "same"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
