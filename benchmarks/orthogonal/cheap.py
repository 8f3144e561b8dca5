"""Where could cheap steps win? Each step's share of the skew gradient beside its share of the whole step's time.

    python -m benchmarks orthogonal cheap            # d = 512, 2048 and 4096, a minute of one thread

To first order a step of length t lowers the loss by t ||Omega used||^2 / 2. Random components of s axes use
floor(d/s) s (s - 1) / (d (d - 1)) of ||Omega||^2 in the mean (flows, section 3.2). So at steps of one length, and
gradients that cost nothing, a cheap step wins if that share is larger than its share of the time of the cheapest whole
step ("taylor"). Writes results/orthogonal_cheap.json.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.harness import limit_threads, save
from benchmarks.options import parser
from benchmarks.orthogonal.methods import from_gradient
from benchmarks.orthogonal.run import NORM, step_times
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import GivensDescent, RiemannianDescent, StochasticFlow


def sizes(d: int) -> dict[str, int]:
    """Component sizes by name; 2 is a random matching."""
    return {
        "givens random": 2,
        "flow s=8": 8,
        "flow s=64": 64,
        "flow s=d/log d": math.ceil(d / math.log(d)),
        "flow s=d/2": d // 2,
    }


def used(d: int, s: int) -> float:
    """The mean share of ||Omega||^2 within random components of s axes."""
    return d // s * s * (s - 1) / (d * (d - 1))


def measure(d: int, seconds: float) -> dict[str, dict[str, float]]:
    X = haar_orthogonal(d, d, random_state=0)
    G = torch.randn(d, d, generator=torch.Generator().manual_seed(1))
    lr = NORM / (2 * math.sqrt(2 * d))
    builds: dict[str, Callable[[Any], Any]] = {"taylor": lambda p: RiemannianDescent(p, lr, "taylor")}
    for name, s in sizes(d).items():
        builds[name] = lambda p, s=s: StochasticFlow(p, lr, s, scale="none")
    builds["givens random"] = lambda p: GivensDescent(p, lr, "random")
    times = step_times({name: from_gradient(build)(X, G) for name, build in builds.items()}, seconds)
    whole = times["taylor"]
    return {
        name: {"ms": 1e3 * times[name], "time": times[name] / whole, "gradient": used(d, s)}
        for name, s in sizes(d).items()
    } | {"taylor": {"ms": 1e3 * whole, "time": 1.0, "gradient": 1.0}}


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--sizes", default="512,2048,4096")
    asked.add_argument("--seconds", type=float, default=2.0)
    options = asked.parse_args()
    limit_threads(options.threads)
    results = {}
    for d in [64] if options.quick else map(int, options.sizes.split(",")):
        results[str(d)] = rows = measure(d, options.seconds)
        for name, row in rows.items():
            gain = row["gradient"] / row["time"]
            print(
                f"{d:6} {name:18}{row['ms']:10.2f} ms{row['time']:10.4f}{row['gradient']:10.4f}{gain:8.2f}", flush=True
            )
        save("orthogonal_cheap", results, threads=options.threads)


if __name__ == "__main__":
    main()
