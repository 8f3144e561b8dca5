"""`python -m tests.faults --count 100000`: every suite, or those named (`--readers`), and their table in Markdown.

A suite is a function (count, seed) -> `Row` that `SUITES` names.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.faults import api, commands, folders, kills, readers
from tests.faults.table import Row, markdown, write_table

SUITES: dict[str, Callable[[int, int], Row]] = {
    "readers": readers.run,
    "folders": folders.run,
    "signed": folders.run_signed,
    "commands": commands.run,
    "api": api.run,
    "kills": kills.run,
}

COUNTS = {"readers": 1_000_000, "folders": 100_000, "signed": 30_000, "commands": 2_000, "api": 20_000, "kills": 0}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, help="damaged inputs of each suite; without it, the numbers of the page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="page whose table the result replaces")
    for name in SUITES:
        parser.add_argument(f"--{name}", action="append_const", dest="suites", const=name, help=f"only {name}")
    options = parser.parse_args()
    names = options.suites or list(SUITES)
    rows = [SUITES[name](options.count or COUNTS[name], options.seed) for name in names]
    print(markdown(rows))
    if options.write:
        write_table(options.write, rows)
    for row in rows:
        for fault in row.faults:
            print(f"{row.suite}: {fault}", file=sys.stderr)
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
