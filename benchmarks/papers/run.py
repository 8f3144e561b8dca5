"""Every paper's tables and figures beside ours, each with a verdict and one sentence.

python -m benchmarks.papers                         all, from the JSON in benchmarks/results
python -m benchmarks.papers gcd scq                 some papers
python -m benchmarks.papers --run                   measure first what no other benchmark does (two hours)
python -m benchmarks.papers --run flows_mlp eurodist  some of that
"""

import argparse

from benchmarks.options import add_folders
from benchmarks.papers.record import show
from benchmarks.papers.table import PAPERS


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--run", nargs="*", metavar="EXPERIMENT", help="measure these first; without a name, all")
    add_folders(parser)
    options = parser.parse_args()
    unknown = set(options.papers) - PAPERS.keys()
    if unknown:
        parser.error(f"no paper {', '.join(sorted(unknown))}; there are {', '.join(PAPERS)}")
    if options.run is not None:
        from benchmarks.papers.experiments import RUNS, run  # needs torch, FAISS, gymnasium; reading does not

        unknown = set(options.run) - RUNS.keys()
        if unknown:
            parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(RUNS)}")
        run(options.run or list(RUNS), options.data)
    for name in options.papers or PAPERS:
        show(PAPERS[name].TITLE, PAPERS[name].FIGURES)


if __name__ == "__main__":
    main()
