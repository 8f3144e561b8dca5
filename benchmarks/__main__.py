"""nearkin beside its peers: run benchmarks, then draw the report and the tables of the pages from their JSON.

    python -m benchmarks                    every benchmark, quick (make bench)
    python -m benchmarks --full             the long ones (make bench FULL=1); hours
    python -m benchmarks hashing ordinal    some of them
    python -m benchmarks --report           nothing is run: the report alone, from the JSON that is there
    python -m benchmarks --pages            write the tables of README.md and docs/ from benchmarks/results

A quick pass writes benchmarks/results/quick, a full one benchmarks/results, which is what README and docs quote. Peers
are taken from .peers (make peers); one that is not installed is a row that says so.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.pages import write_pages
from benchmarks.report import write_report
from benchmarks.suite import SUITE, Benchmark
from benchmarks.table import RESULTS

ROOT = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(b.name for b in SUITE))
    parser.add_argument("--full", action="store_true", help="the long pass, whose figures README and docs quote")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the real data")
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers", help="environment of benchmarks/peers.txt")
    parser.add_argument("--report", action="store_true", help="run nothing, draw the report")
    parser.add_argument("--pages", action="store_true", help="run nothing, write the tables of README and docs")
    options = parser.parse_args()
    unknown = set(options.names) - {b.name for b in SUITE}
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(b.name for b in SUITE)}")
    if options.pages:
        write_pages(RESULTS)
        return 0
    folder = RESULTS if options.full else RESULTS / "quick"
    failed = []
    if not options.report:
        for benchmark in SUITE:
            if not options.names or benchmark.name in options.names:
                failed += run(benchmark, options, folder)
    print(f"Report: {write_report(folder)}")
    for command in failed:
        print(f"Failed: {command}")
    return 1 if failed else 0


def run(benchmark: Benchmark, options: argparse.Namespace, folder: Path) -> list[str]:
    """Run the commands of one benchmark; return those that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    if not options.full:
        environment["NEARKIN_RESULTS"] = str(folder)
        (folder / "figures").mkdir(exist_ok=True)
    failed = []
    for template in benchmark.full if options.full else benchmark.quick:
        command = complete(template, options)
        print(f"\n== {benchmark.name}: {command}", flush=True)
        start = time.perf_counter()
        script, *arguments = shlex.split(command)
        done = subprocess.run(
            [sys.executable, f"benchmarks/{script}.py", *arguments], cwd=ROOT, env=environment, check=False
        )
        print(f"== {time.perf_counter() - start:.0f} s", flush=True)
        if done.returncode:
            failed.append(command)
    return failed


def complete(template: str, options: argparse.Namespace) -> str:
    """The command with its places filled in, without the peers' part where they are not installed."""
    python = options.peers / "bin" / "python"
    if not python.exists():
        template = template.partition(" --peer")[0]
    packages = next(iter(sorted(options.peers.glob("lib/python3*/site-packages"))), "")
    return template.format(data=shlex.quote(str(options.data)), python=python, packages=packages)


if __name__ == "__main__":
    sys.exit(main())
