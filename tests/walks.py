"""Walks: how often a reader who follows one call through nearkin opens a file.

    python -m tests.walks             every walk
    python -m tests.walks two-tower   one of them, stop by stop

A walk is the trace of a call: the functions of nearkin that it enters, each once, in the order of first entry. What
stands inside a function (lambdas, comprehensions, inner functions) is read with it, and what `dataclass` makes has no
lines to read. A *stop* is a file that is opened: functions that follow each other in one file are one stop. A *return*
is a stop at a file that was open before, so stops = files + returns.

A walk is counted twice. "all" follows everything. "room" is what the reader of one room follows: the functions of that
room (`embedding/two_tower`, ...), and of every other room those that are called from it, its doors, without what is
behind them. Files that stand beside the rooms (`_check`, `_distributed`, `records`, `contracts`, ...) hold
the words that all rooms share; they are no stops there.
"""

import argparse
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import numpy as np

import nearkin as nk
from nearkin.data.vectors import open_vectors
from nearkin.pipeline.compress import compress_file

SRC = Path(nk.__file__).parent
SHARED = ""  # the room of what stands beside the rooms


class Function(NamedTuple):
    """A function by its file in src/nearkin and its qualified name."""

    file: str
    name: str


class Length(NamedTuple):
    """How long a walk is."""

    functions: int
    stops: int
    files: int
    returns: int


def room_of(file: str) -> str:
    """The folder a file stands in, to two levels; SHARED for a file that stands beside the rooms."""
    return "/".join(file.split("/")[:-1][:2])


def trace(call: Callable[[], object]) -> list[tuple[Function, Function | None]]:
    """Every entry of a function of nearkin while `call()` runs, and the function of nearkin it was entered from."""
    entries: list[tuple[Function, Function | None]] = []
    known: dict[CodeType, Function | None] = {}

    def function_of(code: CodeType) -> Function | None:
        if code not in known:
            path = Path(code.co_filename)
            name = code.co_qualname.split(".<locals>")[0]
            is_function = bool(code.co_flags & inspect.CO_NEWLOCALS) and name != "<lambda>"  # no module, no class body
            inside = path.is_relative_to(SRC) and is_function
            known[code] = Function(path.relative_to(SRC).as_posix(), name) if inside else None
        return known[code]

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or (entered := function_of(frame.f_code)) is None:
            return
        caller = frame.f_back
        while caller is not None and function_of(caller.f_code) is None:
            caller = caller.f_back
        entries.append((entered, None if caller is None else function_of(caller.f_code)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entries


def walk(entries: list[tuple[Function, Function | None]], room: str | None = None) -> list[Function]:
    """The functions of a trace in the order of first entry: all, or those of one room with the doors of the others."""
    found: dict[Function, None] = {}
    for entered, caller in entries:
        here = room_of(entered.file)
        from_room = not found or (caller is not None and room_of(caller.file) == room)  # kernels know no caller
        if room is None or here == room or (here != SHARED and from_room):
            found[entered] = None
    return list(found)


def stops(functions: list[Function]) -> list[list[Function]]:
    """The functions of a walk by the files that are opened for them."""
    return [list(group) for _, group in groupby(functions, key=lambda function: function.file)]


def length(functions: list[Function]) -> Length:
    """The numbers of functions, stops, files and returns."""
    opened, files = len(stops(functions)), len({function.file for function in functions})
    return Length(len(functions), opened, files, opened - files)


@contextmanager
def walks() -> Iterator[dict[str, tuple[str, Callable[[], object]]]]:
    """The walks by name: the room that their reader is in, and the call."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)).astype(np.float32)
    answers = rng.integers(0, 12, size=(200, 3))
    answers = answers[(answers[:, 0] != answers[:, 1]) & (answers[:, 0] != answers[:, 2])]
    answers = answers[answers[:, 1] != answers[:, 2]]
    pairs = nk.Interactions.from_pairs(rng.integers(0, 60, 900), rng.integers(0, 40, 900))
    towers, points = nk.TwoTower(n_components=4, random_state=0), nk.OrdinalEmbedding(random_state=0)
    quantizer = nk.ProductQuantizer(2, n_centroids=16, random_state=0)
    residual = nk.quantization.ResidualQuantizer(4, n_centroids=16, random_state=0)
    index = nk.Index.build(X, nk.ProductQuantizer(2, n_centroids=16, random_state=0))
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        file = open_vectors(f"{folder}/X.npy")
        yield {
            "quantizer": ("quantization", lambda: quantizer.fit(X)),
            "residual": ("quantization", lambda: residual.fit(X)),
            "best": ("quantization", lambda: nk.quantization.best(X, 4, random_state=0)),
            "ordinal": ("embedding/ordinal", lambda: points.fit(answers)),
            "two-tower": ("embedding/two_tower", lambda: towers.fit(pairs)),
            "compress": (
                "pipeline",
                lambda: compress_file(file, quantizer, f"{folder}/out", random_state=0, overwrite=True),
            ),
            "search": ("index", lambda: index.search(X[:3], 5)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="How often a reader of one call opens a file.")
    parser.add_argument("walk", nargs="?", help="one walk, stop by stop; default a table of all")
    parser.add_argument("--all", action="store_true", help="follow everything, not the room alone")
    given = parser.parse_args()
    with walks() as known:
        if given.walk is not None:
            room, call = known[given.walk]
            call()
            for number, stop in enumerate(stops(walk(trace(call), None if given.all else room)), start=1):
                print(f"{number:4}  {stop[0].file:44} {', '.join(function.name for function in stop)}")
            return
        print(f"{'walk':12}{'room: functions stops files returns':>38}{'all: functions stops files returns':>38}")
        for name, (room, call) in known.items():
            call()  # what is compiled or loaded once is not the walk
            entries = trace(call)
            shown = ["".join(f"{n:8}" for n in length(walk(entries, part))) for part in (room, None)]
            print(f"{name:12}{shown[0]:>38}{shown[1]:>38}")


if __name__ == "__main__":
    main()
