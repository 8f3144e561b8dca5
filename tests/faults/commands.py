"""Damaged files and folders through the command line: exit 0, 1 of `check`, or 2 with one line and nothing left."""

import os
import random
import shutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import nearkin as nk
from nearkin.cli.app import app
from tests.faults import folders, readers
from tests.faults.child import Fault
from tests.faults.mutate import damaged

VECTORS, TRUTH, PAIRS, ANSWERS = nk.read_vectors, nk.data.read_neighbors, nk.read_interactions, nk.read_comparisons
Reader = Callable[..., Any]
SMALL = ("--centroids", "4", "--method", "none")
COMMANDS: list[tuple[Reader | None, tuple[str, ...]]] = [  # what FILE is; None: the index is damaged, not FILE
    (VECTORS, ("compress", "FILE", "--out", "OUT", "--bytes", "1", *SMALL)),
    (VECTORS, ("compress", "FILE", "--out", "OUT", "--bytes", "1", *SMALL, "--checkpoint", "WORK", "--keep-vectors")),
    (VECTORS, ("search", "IDX", "FILE", "-k", "3")),
    (VECTORS, ("search", "IDX", "FILE", "-k", "3", "--out", "HITS")),
    (VECTORS, ("evaluate", "IDX", "FILE", "--truth", "GOOD_TRUTH")),
    (TRUTH, ("evaluate", "IDX", "GOOD", "--truth", "FILE")),
    (PAIRS, ("embed", "FILE", "--left", "user", "--right", "item", "--out", "OUT", "--dim", "2")),
    (ANSWERS, ("embed", "FILE", "--out", "OUT", "--dim", "2")),
    (nk.data.read_column, ("compress", "GOOD", "--ids", "FILE", "--out", "OUT", "--bytes", "1", *SMALL)),
    (None, ("search", "IDX", "GOOD", "-k", "3")),
    (None, ("check", "IDX")),
    (None, ("report", "IDX", "--out", "PAGE")),
]


def prepare(folder: Path) -> None:
    """Make the good files, and let numba compile what it compiles at first use: that takes 8 seconds."""
    _places(str(folder / f"commands-{os.getpid()}"))
    files = readers.originals()
    for reader, words in COMMANDS:
        if words[0] == "embed":
            ending, data, _ = next(file for file in files if file[2] is reader)
            (folder / f"warm{ending}").write_bytes(data)
            places = {"FILE": str(folder / f"warm{ending}"), "OUT": str(folder / f"warm{ending}-out")}
            CliRunner().invoke(app, [places.get(word, word) for word in words], catch_exceptions=False)


def case(number: int, seed: int, folder: Path) -> str:
    """One command on one damaged file."""
    rng = random.Random(seed * 1_000_003 + number)
    home = folder / f"commands-{os.getpid()}"
    places = _places(str(home))
    reader, words = rng.choice(COMMANDS)
    work = home / "work"
    work.mkdir()
    try:
        if reader is None:
            _damage_index(Path(places["IDX"]), work / "idx", rng)
            places = places | {"IDX": str(work / "idx")}
        else:
            places = places | {"FILE": str(_damaged_file(reader, work, rng))}
        places |= {"OUT": str(work / "out"), "WORK": str(work / "parts"), "HITS": str(work / "hits.csv")}
        return _judge([places.get(word, word) for word in words], work, places | {"PAGE": str(work / "page.html")})
    finally:
        shutil.rmtree(work)


def _judge(words: list[str], work: Path, places: dict[str, str]) -> str:
    words = [places.get(word, word) for word in words]
    before = {entry.name for entry in work.iterdir()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has far rows")  # as damage makes them
        result = CliRunner().invoke(app, words, prog_name="nearkin")
    left = {entry.name for entry in work.iterdir()} - before
    told = f"nearkin {' '.join(words)}: exit {result.exit_code}, {result.stderr[-200:]!r}"
    if not isinstance(result.exception, SystemExit | None) or "Traceback" in result.output:
        raise Fault(f"{told}, {result.exception!r}")
    if result.exit_code == 0:
        return "other"
    lines = [line for line in result.stderr.splitlines() if line.startswith("nearkin: ")]
    most = len(lines) if words[0] == "check" else 1  # which names every damaged file
    wanted = (1, 2) if words[0] == "check" else (2,)  # 1: it is damaged, the answer to the question
    last = result.stderr.splitlines()[-len(lines) :]
    if result.exit_code not in wanted or not 1 <= len(lines) <= most or last != lines or "a fault of" in lines[0]:
        raise Fault(told)
    if left - {"parts", ".out.parts"}:  # from which compress goes on
        raise Fault(f"{told}, left {sorted(left)}")
    raise ValueError(lines[0])


def _damaged_file(reader: Reader, work: Path, rng: random.Random) -> Path:
    files = readers.originals()
    ending, data, _ = rng.choice([f for f in files if f[2] is reader])
    path = work / f"file{ending}"
    path.write_bytes(damaged(data, [other for _, other, _ in files], rng) if rng.random() < 0.9 else data)
    return path


def _damage_index(whole: Path, path: Path, rng: random.Random) -> None:
    files = {file.relative_to(whole).as_posix(): file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    for name, data in folders.damage(files, files, rng).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


@cache
def _places(home: str) -> dict[str, str]:
    """A good file of queries, their neighbours, and an index of vectors as wide as those of `readers.originals`."""
    path = Path(home)
    path.mkdir()
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.save(path / "good.npy", X[:12])
    np.save(path / "truth.npy", np.tile(np.arange(10), (12, 1)))
    quantizer = nk.ProductQuantizer(2, 8, rotation=None, max_iter=1, random_state=0)
    nk.Index.build(X, quantizer, keep_vectors=True).save(path / "idx")
    return {"GOOD": str(path / "good.npy"), "GOOD_TRUTH": str(path / "truth.npy"), "IDX": str(path / "idx")}
