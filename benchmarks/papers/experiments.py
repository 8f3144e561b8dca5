"""What no other benchmark measures: every experiment by its name."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from benchmarks.harness import limit_threads
from benchmarks.jobs import Experiment, measure
from benchmarks.papers.made import OWN


def experiment(name: str) -> Experiment:
    """Made by one module of this folder, in its sizes FULL and SMALL."""
    module = import_module(f"benchmarks.papers.{OWN[name][0]}")
    return Experiment(getattr(module, OWN[name][1]), module.FULL, module.SMALL)


def run_own(names: Iterable[str], data: Path, *, small: bool, again: bool, until: float) -> bool:
    """Run the named experiments, each into results/papers_NAME.json; whether all were done before `until`."""
    limit_threads(1)
    for name in names:
        print(f"== {name}", flush=True)
        made = experiment(name)
        jobs = made.jobs(data, made.small if small else made.full)
        if not measure(f"papers_{name}", jobs, again=again, until=until, data=data):
            return False
    return True
