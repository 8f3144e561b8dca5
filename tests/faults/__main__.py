"""`python -m tests.faults`: every suite, or those named (`--readers`), and their table in Markdown.

`--seed` gives other inputs, `--count` their number in each suite.
"""

import argparse
import os
import sys

from tests.faults.campaign import SUITES, run
from tests.faults.table import markdown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, help="damaged inputs of each suite; without it, the numbers of the page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="child processes beside each other")
    for name in SUITES:
        parser.add_argument(f"--{name}", action="append_const", dest="suites", const=name, help=f"only {name}")
    options = parser.parse_args()
    rows = [run(name, options.count, options.seed, options.workers) for name in options.suites or SUITES]
    print(markdown(rows))
    for row in rows:
        for fault in row.faults:
            print(f"{row.suite}: {fault}", file=sys.stderr)
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
