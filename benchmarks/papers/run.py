"""The papers' experiments, measured; docs/papers_figures has every table and figure beside ours, with a verdict.

python -m benchmarks papers                     measure what is missing; go on after an end
python -m benchmarks papers --again             measure all of it anew (an hour and a half)
python -m benchmarks papers flows_mlp eurodist  some experiments (the list: a wrong name)
python -m benchmarks papers --quick             everything at a toy size, into benchmarks/results/quick (minutes)

Nothing but the data folder is needed. What the pages quote of other subjects is measured by the commands in the table
of docs/papers.md.
"""

from benchmarks.harness import limit_threads
from benchmarks.jobs import measure
from benchmarks.options import parser
from benchmarks.papers.experiments import OWN, experiment


def main() -> None:
    options = parser(__doc__)
    options.add_argument("experiments", nargs="*", default=list(OWN), metavar="EXPERIMENT")
    options.add_argument("--again", action="store_true", help="what is finished as well")
    given = options.parse_args()
    if unknown := set(given.experiments) - OWN.keys():
        options.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(OWN)}")
    limit_threads(given.threads)
    for name in given.experiments:
        print(f"== {name}", flush=True)
        made = experiment(name)
        jobs = made.jobs(given.data, made.small if given.quick else made.full)
        measure(f"papers_{name}", jobs, again=given.again, data=given.data)
