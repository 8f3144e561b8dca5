"""`python -m tests.faults --count 100000`: every suite, or those named (`--readers`), and their table in Markdown.

A suite is a function (count, seed) -> `Row` that `SUITES` names.
"""

import argparse
import sys
from collections.abc import Callable

from tests.faults import commands, folders, readers
from tests.faults.table import Row, markdown

SUITES: dict[str, Callable[[int, int], Row]] = {
    "readers": readers.run,
    "folders": folders.run,
    "signed": folders.run_signed,
    "commands": commands.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="damaged inputs of each suite")
    parser.add_argument("--seed", type=int, default=0)
    for name in SUITES:
        parser.add_argument(f"--{name}", action="append_const", dest="suites", const=name, help=f"only {name}")
    options = parser.parse_args()
    rows = [SUITES[name](options.count, options.seed) for name in options.suites or SUITES]
    print(markdown(rows))
    for row in rows:
        for fault in row.faults:
            print(f"{row.suite}: {fault}", file=sys.stderr)
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
