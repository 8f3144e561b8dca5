"""nearkin beside its peers: run benchmarks, then draw the report and the tables of the pages from their JSON.

    python -m benchmarks                          every subject, quick (make bench)
    python -m benchmarks --full                   the long ones (make bench FULL=1); hours
    python -m benchmarks hashing ordinal          some subjects; with --full, their long ones
    python -m benchmarks two_tower --seeds 1      one subject by its own options (two_tower --help lists them)
    python -m benchmarks orthogonal tasks --help  one part of a subject: a module of its folder
    python -m benchmarks --report                 nothing is run: the report alone, from the JSON that is there
    python -m benchmarks --pages                  write the tables of README.md and docs/ from benchmarks/results

A quick pass writes benchmarks/results/quick, and so does a subject with --quick among its own options. A full pass, and
a subject by its own options without it, write benchmarks/results, which README and docs quote. Peers are taken from
.peers (make peers); one that is not installed is a row that says so.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.options import ROOT, add_folders
from benchmarks.pages import write_pages
from benchmarks.report import write_report
from benchmarks.subjects import SUBJECTS, Subject
from benchmarks.table import RESULTS

PASS = ("--full", "--quick", "--data", "--peers", "--report", "--pages")  # options of a pass over subjects


def main() -> int:
    words = sys.argv[1:]
    if asks_one_subject(words):
        return start(SUBJECTS[words[0]].command(words[1:]), elsewhere(RESULTS / "quick") if "--quick" in words else {})
    options = parse()
    if options.pages:
        write_pages(RESULTS)
        return 0
    folder = RESULTS if options.full else RESULTS / "quick"
    failed = []
    if not options.report:
        for name, subject in SUBJECTS.items():
            if not options.names or name in options.names:
                failed += run(subject, options, folder)
    print(f"Report: {write_report(folder)}")
    for command in failed:
        print(f"Failed: {command}")
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """The options of a pass."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--full", action="store_true", help="the long pass, whose figures README and docs quote")
    parser.add_argument("--quick", action="store_true", help="the short pass, which is the default")
    add_folders(parser)
    parser.add_argument("--report", action="store_true", help="run nothing, draw the report")
    parser.add_argument("--pages", action="store_true", help="run nothing, write the tables of README and docs")
    options = parser.parse_args()
    if options.full and options.quick:
        parser.error("--full and --quick exclude each other")
    unknown = set(options.names) - SUBJECTS.keys()
    if unknown:
        parser.error(f"no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    return options


def asks_one_subject(words: list[str]) -> bool:
    """Whether a subject's name is followed by a word that is no subject, or by an option that a pass does not have."""
    if len(words) < 2 or words[0] not in SUBJECTS:
        return False
    flags = [word.partition("=")[0] for word in words[1:] if word.startswith("-")]
    own = not words[1].startswith("-") and words[1] not in SUBJECTS  # a part, or what a subject is asked for
    return own or any(flag not in PASS for flag in flags)


def elsewhere(folder: Path) -> dict[str, str]:
    """The variable that sends results to a folder, which is made: a quick pass leaves the committed ones alone."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    return {"NEARKIN_RESULTS": str(folder)}


def run(subject: Subject, options: argparse.Namespace, folder: Path) -> list[str]:
    """Run the commands of one subject; return those that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {} if options.full else elsewhere(folder)
    failed = []
    for command in subject.full if options.full else subject.quick:
        print(f"\n== {subject.name} {command}", flush=True)
        began = time.perf_counter()
        places = ["--data", str(options.data), "--peers", str(options.peers)]
        if start([*subject.command(command.split()), *places], variables):
            failed.append(f"{subject.name} {command}".strip())
        print(f"== {time.perf_counter() - began:.0f} s", flush=True)
    return failed


def start(command: list[str], variables: dict[str, str] | None = None) -> int:
    """Run a module of the benchmarks in a process of its own, one thread unless it asks for more; its exit status."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", **(variables or {})}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.part", *command], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
