"""Cost of one step from a given gradient: every method and every peer in one run, in turn (A B A B), one thread or two.

    python -m benchmarks orthogonal run --quick
    python -m benchmarks orthogonal --sizes 64x64,512x512,2048x2048,1024x64,4096x64 --threads 1
    OPENBLAS_CORETYPE=Prescott ATEN_CPU_CAPABILITY=default python -m benchmarks orthogonal run --kind SSE

The gradient is Gaussian and lr such that a step's skew matrix has norm 0.1 (spectral, estimated); matrix exponentials
and Newton-Schulz steps cost more at larger norms. `share` is the counted
arithmetic per second over that of this machine's matrix product of the same size, measured in the same run; for steps
that a single pass over the memory makes (`ONE_PASS`) it is their bytes per second over those of a plain copy. Writes
results/orthogonal.json and, beside it, a figure. A cheap step is not a fast method: see tasks.py.
"""

import argparse
import math
import time

import torch

from benchmarks.harness import limit_threads
from benchmarks.options import drawing_parser, peer_packages
from benchmarks.orthogonal.figures import draw_steps
from benchmarks.orthogonal.methods import Step, add_peers, our_steps, peer_steps
from benchmarks.stored import read_json, write_json
from nearkin.linalg.haar import haar_orthogonal

NORM = 0.1
SIZES = "16x16,32x32,64x64,128x128,256x256,512x512,1024x1024,2048x2048,4096x4096,1024x64,4096x64"
KIND_SIZES = "64x64,512x512,1024x1024"  # on a kind of CPU that is not this machine's own
ONE_PASS = ("givens random", "flow s=2", "plain copy")
SLOW = ("geotorch", "torch parametrization, matrix_exp")


def flops(name: str, d: int, k: int) -> float | None:
    """Counted additions and multiplications of one step, or None where a factorisation hides them (flows, Table 1)."""
    square, product = d == k, 2 * d * k * k
    s = {"flow s=2": 2, "flow s=8": 8, "flow s=d/log d": math.ceil(d / math.log(d))}.get(name, 0)
    if name.startswith("givens random") or s == 2:
        return 2 * d * k + 4 * d * k  # d/2 entries of 4 k each, d/2 rotations of 8 k: flops.py
    if name == "givens greedy":
        return 2 * d * d * k + 4 * d * k
    if s:
        return 4 * d * s * k + 4 * 2 * d * s * s  # blocks, their exponentials (four products at this norm), their use
    counts = {
        "taylor": 4 if square else 5,  # at this norm, for an error below 1e-6
        "exp": 5,
        "newton-schulz": 5 if square else 4,
        "qr": 4.2 if square else 4.1,  # the factor of the Gram matrix and a triangular solve
        "POGO's rule": 6,
        "Landing": 5,
    }
    return counts[name] * product if name in counts else None


def now() -> float:
    """The process' seconds, which a busy neighbour does not lengthen; on several threads, the clock's."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def step_times(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Seconds per step, all methods in turn until the time is used, each in blocks of about 10 ms.

    The lower quartile over blocks, because a busy neighbour only ever adds. A method slower than a tenth of the time is
    measured twice, and one of more than a second a step is not warmed up.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    cost = {}
    for name, step in steps.items():  # warm up: compilation, allocation
        for _ in range(2):
            start = now()
            step()
            cost[name] = now() - start
            if cost[name] > 1:
                times[name].append(cost[name])
                break
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 2:
        for name, step in steps.items():
            if len(times[name]) >= 2 and cost[name] > seconds / 10:
                continue
            count = max(1, round(0.01 / cost[name]))
            start = now()
            for _ in range(count):
                step()
            times[name].append((now() - start) / count)
        rounds += 1
    return {name: sorted(values)[len(values) // 4] for name, values in times.items()}


def measure(d: int, k: int, seconds: float, packages: list[str], slow: bool, words: list[str]) -> dict[str, dict]:
    X = haar_orthogonal(d, k, random_state=0)
    G = torch.randn(d, k, generator=torch.Generator().manual_seed(1))
    lr = NORM / (2 * math.sqrt(2 * d) if d == k else 2 * math.sqrt(d))  # over the norm of a Gaussian Omega
    makers = {**our_steps(lr), **peer_steps(lr, packages)}
    if d > k:
        makers = {
            name: make
            for name, make in makers.items()
            if name not in ("flow s=d/log d", "givens greedy", "givens random, columns")
        }
    if not slow:
        makers = {
            name: make for name, make in makers.items() if name not in ("geotorch", "torch parametrization, matrix_exp")
        }
    if max(d, k) > 1024 and d > k:  # seconds a step: torch's map completes a tall matrix to a square one
        makers.pop("torch parametrization, cayley")
    steps = {name: make(X, G) for name, make in makers.items() if any(word in name for word in words)}
    copied = torch.empty_like(X)
    steps["plain copy"] = lambda: copied.copy_(X)
    times = step_times(steps, seconds)
    products, copies = rates(d, k)
    rows = {}
    for name, value in times.items():
        counted = flops(name, d, k)
        share = counted and counted / value / products
        if name in ONE_PASS:  # X and G are read, and X is read again and written; a copy reads and writes
            share = (8 if name == "plain copy" else 16) * d * k / value / copies
        rows[name] = {"ms": 1e3 * value, "mflop": counted and counted / 1e6, "share": share}
    return rows


def rates(d: int, k: int) -> tuple[float, float]:
    """Floating-point operations per second of X @ B, (d, k) by (k, k), and bytes per second of a copy of X."""
    A, B = torch.randn(d, k), torch.randn(k, k)
    C = torch.empty_like(A)
    times = step_times({"product": lambda: A @ B, "copy": lambda: C.copy_(A)}, 0.2)
    return 2 * d * k * k / times["product"], 8 * d * k / times["copy"]


def table(size: str, rows: dict[str, dict]) -> str:
    geoopt = rows.get("geoopt SGD, euclidean", {}).get("ms")
    torch_map = rows.get("torch parametrization, cayley", {}).get("ms", float("nan"))
    lines = [f"\n{size:34}{'ms':>10}{'x geoopt':>10}{'x torch':>10}{'Mflop':>10}{'share':>8}"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["ms"]):
        ratio = f"{geoopt / row['ms']:.1f}" if geoopt else "-"
        mflop = f"{row['mflop']:.1f}" if row["mflop"] else "-"
        share = f"{row['share']:.0%}" if row["share"] else "-"
        lines.append(f"{name:34}{row['ms']:10.3f}{ratio:>10}{torch_map / row['ms']:10.1f}{mflop:>10}{share:>8}")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    options = drawing_parser(__doc__)
    options.add_argument("--sizes", help="such as 64x64,1024x64")
    options.add_argument("--kind", default="", help="name of a kind of CPU that the environment chose, as in small.py")
    options.add_argument("--seconds", type=float, default=6.0, help="per size")
    options.add_argument(
        "--methods", default="", help="only those whose name holds one of these words, comma separated"
    )
    options.add_argument("--slow", action="store_true", help="geotorch and torch's matrix_exp above d = 512 too")
    return options.parse_args()


def main() -> None:
    arguments = parse()
    limit_threads(arguments.threads)
    packages = add_peers(peer_packages(arguments.peers))
    sizes = arguments.sizes or (KIND_SIZES if arguments.kind else SIZES)
    sizes = "64x64,256x256,1024x64" if arguments.quick else sizes
    seconds = 0.5 if arguments.quick else arguments.seconds
    peers = ", ".join(packages) or "geoopt, geotorch missing"
    print(f"threads: {arguments.threads}; torch {torch.__version__}; peers: {peers}")
    mark = "_quick" if arguments.quick else f"_{arguments.kind}" if arguments.kind else ""
    name = f"orthogonal{mark}_{arguments.threads}t"
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / f"{name}.json"
    results = read_json(file)["sizes"] if file.exists() else {}
    for size in sizes.split(","):
        d, k = map(int, size.split("x"))
        words = arguments.methods.split(",")
        rows = measure(d, k, seconds, packages, arguments.slow or max(d, k) <= 512, words)
        results[size] = results.get(size, {}) | rows
        print(table(size, results[size]), flush=True)
        record = {"threads": arguments.threads, "norm": NORM, "torch": torch.__version__, "sizes": results}
        write_json(file, record)
    if arguments.kind:
        return
    arguments.figures.mkdir(parents=True, exist_ok=True)
    draw_steps(results, arguments.figures / f"{name}.png")


if __name__ == "__main__":
    main()
