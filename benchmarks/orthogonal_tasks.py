"""Loss against wall time: how long every method and every peer takes to one target, on four tasks.

    python benchmarks/orthogonal_tasks.py --quick
    python benchmarks/orthogonal_tasks.py --tasks procrustes,pca,mlp,conv --data ../shared/data

Each method's step length is chosen on seed 0 from a grid of powers of two, and momentum from 0 and 0.9 where it has
one; then it runs on fresh seeds, and the median time to the target counts. The clock covers gradient and step and stops
while the full loss is measured; it counts the process' seconds on one thread, which no busy neighbour lengthens. A
point off the manifold (by more than 1e-2) ends the run. Writes results/orthogonal_tasks.json and a figure.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from orthogonal_methods import LandingRule, Parametrized, PogoRule, add_peers, geoopt_sgd, torch_orthogonal
from orthogonal_problems import TASKS, Problem
from torch import Tensor, nn

from nearkin.linalg.procrustes import orthogonality_error
from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow

FEASIBLE = 1e-2  # a point counts if ||X^T X - I||_F / sqrt(k) is at most this; all but Landing are far below it
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Method:
    name: str
    build: Callable[[list[nn.Parameter], float, float], torch.optim.Optimizer]  # (params, lr, momentum)
    ours: bool = True
    parametrized: Callable | None = None


def methods(packages: list[str]) -> list[Method]:
    found = [
        Method(f"riemannian {name}", lambda p, lr, m, name=name: RiemannianDescent(p, lr, name, momentum=m))
        for name in ("taylor", "newton-schulz", "qr", "exp")
    ]
    found += [
        Method(
            f"givens {selection}, {k} matchings",
            lambda p, lr, m, s=selection, k=k: GivensDescent(p, lr, s, n_matchings=k, momentum=m),
        )
        for selection, k in (("random", 1), ("random", 8), ("greedy", 1), ("greedy", 8))
    ]
    found += [
        Method(f"flow s={s}", lambda p, lr, m, s=s: StochasticFlow(p, lr, s, scale="none", momentum=m))
        for s in (8, 32, "d/log d")
    ]
    found += [
        Method("POGO's rule", lambda p, lr, m: PogoRule(p, lr, m), ours=False),
        Method("Landing", lambda p, lr, m: LandingRule(p, lr), ours=False),
        Method("torch parametrization", lambda p, lr, m: None, ours=False, parametrized=torch_orthogonal("cayley")),
    ]
    if "geoopt" in packages:
        found.append(Method("geoopt SGD, euclidean", lambda p, lr, m: geoopt_sgd(p, lr, m), ours=False))
    return found


def run(problem: Problem, method: Method, lr: float, momentum: float, seconds: float) -> list[tuple[float, float]]:
    """Train for `seconds` on the clock; return [(time, full loss)], ending early at the target or at divergence."""
    torch.manual_seed(problem.seed)
    if method.parametrized is not None:
        peers = [Parametrized(X, method.parametrized, lr, momentum) for X in problem.starts]
        optimizers = [peer.optimizer for peer in peers]

        def weights() -> list[Tensor]:
            return [peer.weight for peer in peers]
    else:
        params = [nn.Parameter(X.clone()) for X in problem.starts]
        optimizers = [method.build(params, lr, momentum)]

        def weights() -> list[Tensor]:
            return params

    others = problem.other_parameters()
    if others:
        optimizers.append(torch.optim.SGD(others, lr=problem.other_lr, momentum=0.9))
    curve, spent, step = [], 0.0, 0
    while spent < seconds:
        start = time.process_time()
        for _ in range(problem.check_every):
            for optimizer in optimizers:
                optimizer.zero_grad()
            problem.batch_loss(weights()).backward()
            try:
                for optimizer in optimizers:
                    optimizer.step()
            except ValueError:  # a diverged run: the gradient is not finite
                return curve
            step += 1
        spent += time.process_time() - start
        with torch.no_grad():
            if max(orthogonality_error(weight) for weight in weights()) > FEASIBLE:
                return curve  # off the manifold: whatever the loss is, it does not count
            loss = problem.full_loss(weights())
        curve.append((spent, loss))
        if loss <= problem.target or not loss < 1e6:
            break
    return curve


def time_to(curve: list[tuple[float, float]], target: float) -> float:
    return next((spent for spent, loss in curve if loss <= target), float("inf"))


def score(curve: list[tuple[float, float]], target: float) -> tuple[float, float]:
    """Order runs by the time to the target, and those that never reach it by their last loss."""
    return time_to(curve, target), curve[-1][1] if curve and curve[-1][1] == curve[-1][1] else float("inf")


def compete(task: Callable[[int], Problem], found: list[Method], seconds: float, seeds: int) -> dict[str, dict]:
    rows = {}
    for method in found:
        problem = task(0)
        if method.name == "torch parametrization" and any(X.shape[0] > 512 for X in problem.starts):
            continue  # its map of a (1024, 64) matrix takes 160 ms
        best, limit = None, seconds
        for momentum in (0.0, 0.9):
            for exponent in range(problem.lr_low, problem.lr_high + 1):
                lr = 2.0**exponent * (1 - momentum)
                result = score(run(task(0), method, lr, momentum, limit), problem.target)
                if best is None or result < best[0]:
                    best = (result, lr, momentum)
                    limit = min(limit, 1.5 * result[0])
            if method.name in ("Landing",):
                break
        _, lr, momentum = best  # type: ignore[misc]
        curves = [run(task(seed), method, lr, momentum, seconds) for seed in range(1, seeds + 1)]
        times = [time_to(curve, problem.target) for curve in curves]
        rows[method.name] = {
            "ours": method.ours,
            "lr": lr,
            "momentum": momentum,
            "seconds": statistics.median(times),
            "all": times,
            "last_loss": statistics.median(curve[-1][1] if curve else float("nan") for curve in curves),
            "curve": curves[0],
        }
        row = rows[method.name]
        print(f"  {method.name:28}{row['seconds'] * 1e3:10.1f} ms  loss {row['last_loss']:.4g}", flush=True)
    return rows


def table(name: str, rows: dict[str, dict], target: float) -> str:
    pogo = rows["POGO's rule"]["seconds"]
    lines = [f"\n{name}, target {target:.4g}{'':12}{'ms':>10}{'x POGO':>8}{'lr':>10}{'momentum':>9}{'loss':>10}"]
    for method, row in sorted(rows.items(), key=lambda item: (item[1]["seconds"], item[1]["last_loss"])):
        ratio = f"{pogo / row['seconds']:.2f}" if row["seconds"] < float("inf") else "-"
        settings = f"{row['lr']:10.4g}{row['momentum']:9.1f}{row['last_loss']:10.4g}"
        lines.append(f"{method:34}{row['seconds'] * 1e3:10.1f}{ratio:>8}{settings}")
    return "\n".join(lines)


def draw(results: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(results), figsize=(4.2 * len(results), 3.6), layout="constrained", squeeze=False
    )
    for axes, (name, record) in zip(panels[0], results.items(), strict=True):
        for method, row in record["methods"].items():
            if row["curve"]:
                axes.loglog(*zip(*row["curve"], strict=True), label=method, lw=1, ls="-" if row["ours"] else "--")
        axes.axhline(record["target"], color="k", lw=0.5)
        axes.set(xlabel="seconds", title=name)
    panels[0][0].set_ylabel("loss")
    panels[0][-1].legend(fontsize=5)
    figure.savefig(path, dpi=130)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="procrustes,pca,mlp,conv")
    parser.add_argument("--quick", action="store_true", help="one fresh seed, a third of the time")
    parser.add_argument("--methods", help="only those whose name holds one of these words, comma separated")
    parser.add_argument("--seconds", type=float, default=1.5, help="per run, at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="a site-packages folder that holds geoopt")
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of mnist.npz; digits without it"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    packages = add_peers(arguments.peers)
    seconds, seeds = (arguments.seconds / 3, 1) if arguments.quick else (arguments.seconds, arguments.seeds)
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "orthogonal_tasks.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    found = methods(packages)
    if arguments.methods:
        found = [m for m in found if any(word in m.name for word in arguments.methods.split(","))]
    for name in arguments.tasks.split(","):
        rows = compete(lambda seed, name=name: TASKS[name](seed, arguments.data), found, seconds, seeds)
        target = TASKS[name](0, arguments.data).target
        print(table(name, rows, target), flush=True)
        results[name] = {"target": target, "threads": 1, "methods": rows}
        file.write_text(json.dumps(results, indent=1))
    draw(results, arguments.out / "orthogonal_tasks.png")


if __name__ == "__main__":
    main()
