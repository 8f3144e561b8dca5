"""Every paper's tables and figures beside ours, each with a verdict and one sentence.

python -m benchmarks.papers                           all, from the JSON in benchmarks/results
python -m benchmarks.papers gcd scq                   some papers
python -m benchmarks.papers --run                     measure what is missing; go on after an end
python -m benchmarks.papers --run --again             measure all of it anew (an hour and a half)
python -m benchmarks.papers --run flows_mlp eurodist  some experiments (the list: a wrong name)
python -m benchmarks.papers --run --small             everything at a toy size, into benchmarks/results/quick (minutes)

Nothing but the data folder is needed. NEARKIN_RESULTS=FOLDER measures into another folder, an empty one all of it. What
the pages quote of other subjects is measured by the commands in the table of docs/papers.md.
"""

import argparse
import os
import sys

from benchmarks.__main__ import start
from benchmarks.options import RESULTS, add_folders
from benchmarks.papers import experiments
from benchmarks.papers.record import show
from benchmarks.papers.table import PAPERS


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--run", nargs="*", metavar="EXPERIMENT", help="measure these first; without a name, all")
    parser.add_argument("--again", action="store_true", help="with --run: what is finished as well")
    parser.add_argument("--small", action="store_true", help="with --run: toy sizes, into benchmarks/results/quick")
    add_folders(parser)
    options = parser.parse_args()
    for what, given, known in (("paper", options.papers, PAPERS), ("experiment", options.run or (), experiments.OWN)):
        unknown = set(given) - known.keys()
        if unknown:
            parser.error(f"no {what} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.run is None and (options.again or options.small):
        parser.error("--again and --small belong to --run")
    return options


def main() -> None:
    options = parse()
    if options.small and "NEARKIN_RESULTS" not in os.environ:  # the pages' figures stay as they are
        sys.exit(start(["papers.run", *sys.argv[1:]], {"NEARKIN_RESULTS": str(RESULTS / "quick")}))
    if options.run is not None:
        experiments.run(options.run or experiments.OWN, options.data, small=options.small, again=options.again)
    if options.small:
        print(f"All of it ran; toy sizes say nothing and are not judged: {RESULTS}")
        return
    for name in options.papers or PAPERS:
        show(PAPERS[name].TITLE, PAPERS[name].FIGURES, RESULTS)
