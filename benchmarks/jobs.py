"""The one way to measure: jobs of one cell each, whose rows are kept, so that a run may end at any time and go on.

Rows are known by their job's key. They are written after every job, so that nothing is lost with the process.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import commit, limit_threads, save
from benchmarks.options import RESULTS, parser
from benchmarks.stored import read_json

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The fields that name a cell, and what measures it: the other fields of its row, or of several rows."""

    key: Row
    measure: Callable[[], Row | Iterable[Row]]

    def names(self, row: Row) -> bool:
        return self.key.items() <= row.items()

    def rows(self) -> list[Row]:
        found = self.measure()
        return [self.key | row for row in ([found] if isinstance(found, dict) else found)]


def stored(source: str) -> tuple[list[Row], float]:
    """The rows of a JSON, and the CPU minutes that they took: NaN where that was not kept."""
    file = RESULTS / f"{source}.json"
    if not file.exists():
        return [], 0.0
    record = read_json(file)
    return record["results"], record["settings"].get("CPU minutes", math.nan)


def measure(source: str, jobs: Iterable[Job], *, again: bool = False, others: bool = False, **settings: Any) -> None:
    """Do the jobs whose rows results/SOURCE.json lacks, or all `again`; rows that no job names go, or stay as `others`.

    A part of an experiment is marked as unfinished, and not judged.
    """
    jobs = list(jobs)
    rows, spent = ([], 0.0) if again and not others else stored(source)
    rows = [row for row in rows if others or any(job.names(row) for job in jobs)]
    missing = [job for job in jobs if again or not any(job.names(row) for row in rows)]
    for done, job in enumerate(missing, 1):
        began = time.process_time()
        found = [row if others else row | {"commit": commit()} for row in job.rows()]
        rows = [row for row in rows if not job.names(row)] + found
        spent += (time.process_time() - began) / 60
        about = {} if math.isnan(spent) else {"CPU minutes": round(spent, 2)}
        if done < len(missing) and not others:
            about["unfinished"] = len(missing) - done
        save(source, rows, **settings, **about)
        print(source, *(f"{key} {value}," for key, value in job.key.items()), found[0] if found else "-", flush=True)


def command(
    doc: str | None, jobs: Callable[[argparse.Namespace], Iterator[tuple[str, Job]]], settings: Row, words: str = "",
    **choices: Any,
) -> list[str]:  # fmt: skip
    """A subject's main: parse the options, do its jobs of each JSON again; the JSONs that were written.

    `words` names what stands without an option; `choices` are options: a tuple may be given in part, a bool is a
    flag, a number or text a value.
    """
    options = parser(doc)
    if words:
        options.add_argument(words, nargs="*", metavar=words[:-1].upper())
    for name, default in choices.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            options.add_argument(flag, action="store_true")
        elif isinstance(default, tuple):
            named = isinstance(default[0], str)
            options.add_argument(
                flag, nargs="+", type=type(default[0]), choices=default if named else None, default=default
            )
        else:
            options.add_argument(flag, type=type(default), default=default)
    given = options.parse_args()
    limit_threads(given.threads)
    written: dict[str, None] = {}
    for source, job in jobs(given):
        written[source] = None
        measure(source, [job], again=True, others=True, threads=given.threads, data=given.data, **settings)
    return list(written)
