"""Small matrices on kinds of CPU: three tasks that no default was tuned on, ours beside POGO's rule and the peers.

    python -m benchmarks orthogonal small
    OPENBLAS_CORETYPE=Prescott ATEN_CPU_CAPABILITY=default python -m benchmarks orthogonal small --kind SSE

Joint diagonalisation of 24 matrices of 48; 64 Procrustes problems of 24 x 24 in one tensor; six layers of 32. Settings
are chosen as in tasks.py on seed 0, once: further kinds take them from results/orthogonal_small.json. Then every method
runs on fresh seeds; the ratio to POGO's rule is taken seed by seed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser, peer_packages
from benchmarks.orthogonal.held_out import diagonalisation
from benchmarks.orthogonal.methods import add_peers
from benchmarks.orthogonal.problems import Problem, many
from benchmarks.orthogonal.tasks import Method, choose, methods, possible, run, time_to
from benchmarks.stored import read_json

TASKS: dict[str, Callable[[int, Path], Problem]] = {
    "diagonalisation, 48": lambda seed, data: diagonalisation(seed, data, d=48, matrices=24),
    "batch of 64, 24": lambda seed, data: many(seed, 64, 24, joined=True),
    "six layers, 32": lambda seed, data: many(seed, 6, 32, joined=False),
}
METHODS = ("riemannian auto", "POGO's rule", "riemannian cayley", "geoopt SGD, euclidean", "geotorch")


def chosen(found: dict[str, Any], name: str, task: Callable[[int], Problem], method: Method, share: float) -> Any:
    """Learning rate and momentum of any kind that was measured before, or of a search now."""
    for kind in found.values():
        if row := kind.get(name, {}).get(method.name):
            return row["lr"], row["momentum"]
    lr, momentum, _ = choose(task, method, share)
    return lr, momentum


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--kind", default="AVX2", help="the name of this kind of CPU in the results")
    options.add_argument("--seeds", type=int, default=5, help="fresh ones")
    options.add_argument("--share", type=float, default=0.4, help="of each task's longest run")
    options.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons")
    arguments = options.parse_args()
    limit_threads(arguments.threads)
    packages = add_peers(peer_packages(arguments.peers))
    share, seeds = (0.1, 1) if arguments.quick else (arguments.share, arguments.seeds)
    name = "orthogonal_small" + ("_quick" if arguments.quick else "")
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] = read_json(file)["results"] if file.exists() else {}
    rows = found.setdefault(arguments.kind, {})
    asked = [method for method in methods(packages) if method.name in arguments.methods.split(";")]
    for label in TASKS:

        def task(seed: int, label: str = label) -> Problem:
            return TASKS[label](seed, arguments.data)

        for method in asked:
            if not possible(method, task(0)):
                continue
            lr, momentum = chosen(found, label, task, method, share)
            run(task(0), method, lr, momentum, 0.01)  # compiles, or reads what was compiled
            times = []
            for seed in range(1, seeds + 1):
                problem = task(seed)
                times.append(time_to(run(problem, method, lr, momentum, problem.seconds), problem.target))
            rows.setdefault(label, {})[method.name] = {"lr": lr, "momentum": momentum, "seconds": times}
            print(arguments.kind, label, method.name, [round(1e3 * t, 1) for t in times], flush=True)
            save(name, found, threads=arguments.threads)


if __name__ == "__main__":
    main()
