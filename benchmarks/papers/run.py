"""Every paper's tables and figures beside ours, each with a verdict and one sentence.

python -m benchmarks.papers                           all, from the JSON in benchmarks/results
python -m benchmarks.papers gcd scq                   some papers
python -m benchmarks.papers --run                     measure all of it first, the other benchmarks' part too (a night)
python -m benchmarks.papers --run --own               only what no other benchmark does (two hours)
python -m benchmarks.papers --run flows_mlp eurodist  measure some experiments first (the list: a wrong name)
"""

import argparse
from pathlib import Path

from benchmarks.__main__ import start
from benchmarks.options import add_folders
from benchmarks.papers.record import show
from benchmarks.papers.table import PAPERS
from benchmarks.subjects import SUBJECTS

OTHERS = (  # commands of other benchmarks whose JSON the pages quote as well
    "quantization --parts convergence",
    "quantization rotation",
    "end_to_end --sets ml100k --parts rotations",
    "hashing --part table",
    "hashing --part scale",
    "ordinal --table1 --music",
    "two_tower --sets ml100k",
    "two_tower --sets gowalla --seconds 40",
    "two_tower --scaling",
    "orthogonal flops",
)


def run_others(data: Path) -> None:
    """Run what other benchmarks measure for the papers' pages, each in a process of its own."""
    for command in OTHERS:
        subject, *words = command.split()
        print(f"== {command}", flush=True)
        start([*SUBJECTS[subject].command(words), "--data", str(data)])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument(
        "--run", nargs="*", metavar="EXPERIMENT", help="measure these first; without a name, all, in other subjects too"
    )
    parser.add_argument("--own", action="store_true", help="with --run: not the other subjects' part")
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
        if not options.run and not options.own:
            run_others(options.data)
        run(options.run or list(RUNS), options.data)
    for name in options.papers or PAPERS:
        show(PAPERS[name].TITLE, PAPERS[name].FIGURES)


if __name__ == "__main__":
    main()
