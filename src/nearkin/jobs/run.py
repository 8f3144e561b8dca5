"""One run of a job: its timed steps, and its records in a saved folder: run.json and evaluation.json."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import cast

from nearkin._fields import Fields, Record, StrPath
from nearkin._json import parsed_json
from nearkin._storage import MANIFEST, Manifest, adding, read_config, read_manifest
from nearkin.contracts import Callback, ignore

RUN, EVALUATION, REPORT = "run.json", "evaluation.json", "report.html"
Watch = Callable[[str], AbstractContextManager[Callback]]


_WATCH: ContextVar[Watch] = ContextVar("watch", default=lambda name: nullcontext(ignore))


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Show the progress of the jobs in the block.

    Parameters
    ----------
    watch: `watch(name)` is entered around each step of a job, and yields the callback for it.

    >>> @contextmanager
    ... def watch(name):
    ...     print(name)
    ...     yield lambda step, record: None
    >>> with watched(watch), Steps().step("read"):
    ...     pass
    read
    """
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def threads_used() -> int:
    """Threads of numerical libraries: from the environment, else the cores of this process."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(given) if given.isdecimal() and int(given) else cores


class Steps:
    """Times the named steps of a job in `seconds`, and shows their progress where it is `watched`."""

    def __init__(self) -> None:
        self._watch: Watch = _WATCH.get()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[Callback]:
        """Time the block under `name`; yields its callback."""
        start = time.perf_counter()
        with self._watch(name) as callback:
            yield callback
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def read_record(folder: StrPath, name: str) -> Record | None:
    """Read run.json or evaluation.json of a saved folder; None if there is none, ValueError if it is damaged."""
    read_config(folder)
    file = Path(folder) / name
    try:
        return parsed_json(file.read_bytes()) if file.is_file() else None
    except FileNotFoundError:  # removed since the line above
        return None
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}); delete it or make the index again") from error


def version_of(folder: StrPath) -> tuple[int, int]:
    """A value that changes when the folder is saved again."""
    found = (Path(folder) / "config.json").stat()
    return found.st_ino, found.st_mtime_ns


def save_evaluation(folder: StrPath, record: Fields, judged: tuple[int, int]) -> None:
    """Write evaluation.json into an index's folder; ValueError unless its `version_of` is still the `judged` one."""
    with adding(Path(folder), EVALUATION) as fresh:
        if version_of(folder) != judged:
            raise ValueError(f"{folder} was changed while it was evaluated; evaluate it again")
        write_record(fresh, record)


def write_record(path: Path, record: Fields) -> None:
    text = json.dumps(
        record, indent=2, allow_nan=False, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v)
    )
    path.write_text(text + "\n", encoding="utf-8")


def bytes_on_disk(folder: StrPath) -> int:
    """Bytes of the files that a save wrote: codes, codebooks, ids, kept vectors; not of reports added later."""
    manifest = cast(Manifest, read_manifest(Path(folder)))
    return sum(entry.bytes for entry in manifest.files.values()) + (Path(folder) / MANIFEST).stat().st_size
