"""`python -m tests.faults`: every suite, or those named (`--readers`), and their table in Markdown.

A run that was interrupted goes on: what was done at the same commit is in the file of `--state`. `--seed` gives other
inputs, `--count` their number in each suite.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from tests.faults.campaign import SUITES, Campaign
from tests.faults.child import ROOT
from tests.faults.table import Row, markdown, write_table


def stop_by_signals() -> None:
    """Ctrl-C and `kill` end a run alike, also where a script started it in the background, which ignores Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, help="damaged inputs of each suite; without it, the numbers of the page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="child processes beside each other")
    parser.add_argument("--state", type=Path, default=ROOT / "faults.jsonl", help="file of the parts that are done")
    parser.add_argument("--anew", action="store_true", help="forget what is in that file")
    parser.add_argument("--write", type=Path, help="page whose table the result replaces")
    for name in SUITES:
        parser.add_argument(f"--{name}", action="append_const", dest="suites", const=name, help=f"only {name}")
    options = parser.parse_args()
    stop_by_signals()
    if options.anew:
        options.state.unlink(missing_ok=True)
    campaign = Campaign(options.state, options.seed, options.workers, lambda text: print(text, file=sys.stderr))
    rows: list[Row] = []
    try:
        rows.extend(campaign.run(name, options.count) for name in options.suites or list(SUITES))
    except KeyboardInterrupt:
        print(f"{markdown(rows)}\n\nStopped; the same command goes on from here.")
        return 130
    print(markdown(rows))
    if options.write:
        write_table(options.write, rows)
    for row in rows:
        for fault in row.faults:
            print(f"{row.suite}: {fault}", file=sys.stderr)
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
