"""nearkin beside its peers: run benchmarks; write the tables of the pages from their JSON.

    python -m benchmarks                          every subject, quick (make bench)
    python -m benchmarks --full                   the long ones (make bench FULL=1); hours
    python -m benchmarks two_tower --seeds 1      one subject by its own options (two_tower --help lists them)
    python -m benchmarks orthogonal tasks --help  one part of a subject: a module of its folder
    python -m benchmarks --pages                  write the tables of README.md and docs/ from benchmarks/results

With --quick a subject writes benchmarks/results/quick, as a quick pass does with all of them; everything else writes
benchmarks/results, which README and docs quote. Peers are taken from .peers (make peers); one that is not installed is
a row that says so.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.options import ROOT, add_folders
from benchmarks.pages import write_pages, write_report
from benchmarks.subjects import SUBJECTS
from benchmarks.table import RESULTS


def main() -> int:
    words = sys.argv[1:]
    if words and words[0] in SUBJECTS:
        return start(SUBJECTS[words[0]].command(words[1:]), elsewhere(RESULTS / "quick") if "--quick" in words else {})
    options = parse()
    if options.pages:
        write_pages(RESULTS)
        return 0
    folder = RESULTS if options.full else RESULTS / "quick"
    failed = run(options, {} if options.full else elsewhere(folder))
    print(f"Report: {write_report(folder)}")
    for command in failed:
        print(f"Failed: {command}")
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """The options of a pass."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subject", nargs="?", choices=SUBJECTS, help="has its own options; without one, all are run")
    parser.add_argument("--full", action="store_true", help="the long pass, whose figures README and docs quote")
    add_folders(parser)
    parser.add_argument("--pages", action="store_true", help="run nothing, write the tables of README and docs")
    return parser.parse_args()


def elsewhere(folder: Path) -> dict[str, str]:
    """The variable that sends results to a folder, which is made: a quick pass leaves the committed ones alone."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    return {"NEARKIN_RESULTS": str(folder)}


def run(options: argparse.Namespace, variables: dict[str, str]) -> list[str]:
    """Run the commands of all subjects; return those that failed."""
    places, failed = ["--data", str(options.data), "--peers", str(options.peers)], []
    for subject in SUBJECTS.values():
        for command in subject.full if options.full else subject.quick:
            print(f"\n== {subject.name} {command}", flush=True)
            began = time.perf_counter()
            if start([*subject.command(command.split()), *places], variables):
                failed.append(f"{subject.name} {command}".strip())
            print(f"== {time.perf_counter() - began:.0f} s", flush=True)
    return failed


def start(command: list[str], variables: dict[str, str]) -> int:
    """Run a module of the benchmarks in a process of its own, one thread unless it asks for more; its exit status."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.part", *command], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
