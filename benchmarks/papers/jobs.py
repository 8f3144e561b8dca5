"""An experiment as jobs: one cell each, whose rows are kept, so that a run may end at any time and be taken up again.

Rows are known by their job's key. They are written after every job, so that nothing is lost with the process; rows that
no job names any more go with the next one.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import commit, save
from benchmarks.options import RESULTS
from benchmarks.stored import read_json

Row = dict[str, Any]
FOREVER = float("inf")


@dataclass(frozen=True)
class Job:
    """The fields that name a cell, and what measures it: the other fields of its row, or of several rows."""

    key: Row
    measure: Callable[[], Row | list[Row]]

    def names(self, row: Row) -> bool:
        return self.key.items() <= row.items()

    def rows(self) -> list[Row]:
        found = self.measure()
        return [self.key | row | {"commit": commit()} for row in (found if isinstance(found, list) else [found])]


@dataclass(frozen=True)
class Experiment:
    """Its jobs for a folder of data and a size, and two sizes: the pages' and one that ends in seconds."""

    jobs: Callable[[Path, Any], Iterable[Job]]
    full: Any
    small: Any


def stored(source: str) -> tuple[list[Row], float]:
    """The rows of a JSON, and the CPU minutes that they took: NaN where that was not kept."""
    file = RESULTS / f"{source}.json"
    if not file.exists():
        return [], 0.0
    record = read_json(file)
    return record["results"], record["settings"].get("CPU minutes", math.nan)


def measure(name: str, jobs: Iterable[Job], data: Path, *, again: bool = False, until: float = FOREVER) -> bool:
    """Do the jobs whose rows results/papers_NAME.json lacks; False where `until` (of time.monotonic) came first."""
    source, jobs = f"papers_{name}", list(jobs)
    kept, spent = ([], 0.0) if again else stored(source)
    rows = [row for row in kept if any(job.names(row) for job in jobs)]
    missing = [job for job in jobs if not any(job.names(row) for row in rows)]
    for done, job in enumerate(missing, 1):
        if time.monotonic() > until:
            return False
        began = time.process_time()
        rows += job.rows()
        spent += (time.process_time() - began) / 60
        settings = {} if math.isnan(spent) else {"CPU minutes": round(spent, 2)}
        if done < len(missing):
            settings["unfinished"] = len(missing) - done  # jobs; a part of an experiment is not judged
        save(source, rows, data=data, **settings)
        print(name, ", ".join(f"{key} {value}" for key, value in job.key.items()), flush=True)
    return True
