"""Every paper's tables and figures beside ours, each with a verdict and one sentence.

python -m benchmarks.papers                           all, from the JSON in benchmarks/results
python -m benchmarks.papers gcd scq                   some papers
python -m benchmarks.papers --run                     measure what is missing, the other benchmarks' part too
python -m benchmarks.papers --run --minutes 30        the same, for half an hour; the same command goes on from there
python -m benchmarks.papers --run --again             measure all of it anew (a night)
python -m benchmarks.papers --run --own               only what no other benchmark does (three hours)
python -m benchmarks.papers --run flows_mlp eurodist  some experiments (the list: a wrong name)
python -m benchmarks.papers --run --small             everything at a toy size, into benchmarks/results/quick (minutes)

Nothing but the data folder is needed. NEARKIN_RESULTS=FOLDER measures into another folder, an empty one all of it.
"""

import argparse
import os
import sys
import time

from benchmarks.__main__ import start
from benchmarks.options import RESULTS, add_folders
from benchmarks.papers.others import run_others
from benchmarks.papers.record import show
from benchmarks.papers.table import PAPERS


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument(
        "--run", nargs="*", metavar="EXPERIMENT", help="measure these first; without a name, all, in other subjects too"
    )
    parser.add_argument("--own", action="store_true", help="with --run: not the other subjects' part")
    parser.add_argument("--again", action="store_true", help="with --run: what is finished as well")
    parser.add_argument("--small", action="store_true", help="with --run: toy sizes, into benchmarks/results/quick")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="with --run: begin nothing after so many")
    add_folders(parser)
    options = parser.parse_args()
    unknown = set(options.papers) - PAPERS.keys()
    if unknown:
        parser.error(f"no paper {', '.join(sorted(unknown))}; there are {', '.join(PAPERS)}")
    if options.run is None and (options.own or options.again or options.small):
        parser.error("--own, --again and --small belong to --run")
    return options


def run(options: argparse.Namespace) -> bool:
    """Measure what is asked for; whether all of it is done."""
    from benchmarks.papers.experiments import OWN, run_own  # needs torch, FAISS, gymnasium; reading does not

    unknown = set(options.run) - OWN.keys()
    if unknown:
        raise SystemExit(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(OWN)}")
    until, names = time.monotonic() + 60 * options.minutes, options.run or list(OWN)
    done = run_own(names, options.data, small=options.small, again=options.again, until=until)
    if done and not options.run and not options.own:
        done = run_others(options.data, small=options.small, again=options.again, until=until)
    return done


def main() -> None:
    options = parse()
    if options.small and "NEARKIN_RESULTS" not in os.environ:  # the pages' figures stay as they are
        sys.exit(start(["papers.run", *sys.argv[1:]], {"NEARKIN_RESULTS": str(RESULTS / "quick")}))
    done = options.run is None or run(options)
    if options.small:
        print(f"{'All' if done else 'Not all'} of it ran; toy sizes say nothing and are not judged: {RESULTS}")
    for name in () if options.small else options.papers or PAPERS:
        show(PAPERS[name].TITLE, PAPERS[name].FIGURES, RESULTS)
    if not done:
        sys.exit("Not all is measured; the same command goes on from here.")
