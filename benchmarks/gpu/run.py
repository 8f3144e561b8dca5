"""Everything that is measured on a GPU, and the same on the CPU beside it, in one command of less than ten minutes.

    python -m benchmarks gpu --threads 16           # on the CUDA device
    python -m benchmarks gpu --device cpu --small   # the same code in seconds, to see that it runs

Five parts: GCD's Figure 4 (a), a step of GCD-R, GCD-G, GCD-S and Cayley by the side n; the step table; the loss over
all pairs of 10^6 x 10^6, its gradient and its Gauss-Newton product; an epoch of towers; a step through the indexing
layer. A method whose step has taken more than `LIMIT` seconds
is left out at larger sizes. Seconds are the clock's, on a machine without other work. Writes results/gpu.json.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import nearkin as nk
from benchmarks.harness import save
from benchmarks.options import parser
from benchmarks.orthogonal.methods import FiveLoops, Maker, PogoRule, Step, from_gradient, our_steps
from nearkin.embedding import Adam, AllPairsLoss, GaussNewton
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import GivensDescent, RiemannianDescent

LIMIT = 2.0  # seconds of a step
FIGURE_4 = ("GCD-R", "GCD-G", "GCD-S", "Cayley")


def clock(device: str) -> float:
    """Seconds of the clock, once the device has finished."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def step_ms(step: Step, device: str, seconds: float) -> float:
    """Milliseconds of a step: the mean over as many as fit into `seconds`, after two to warm up."""
    for _ in range(2):  # the first also compiles
        start = clock(device)
        step()
        first = clock(device) - start
    if first > LIMIT:
        return 1e3 * first
    count = max(1, min(1000, int(seconds / max(first, 1e-6))))
    start = clock(device)
    for _ in range(count):
        step()
    return 1e3 * (clock(device) - start) / count


def makers(lr: float) -> dict[str, Maker]:
    """Every method of the two tables that draws from a given gradient."""
    return {
        "GCD-R": from_gradient(lambda p: GivensDescent(p, lr, "random")),
        "GCD-G": from_gradient(lambda p: GivensDescent(p, lr, "greedy")),
        "GCD-S": from_gradient(lambda p: GivensDescent(p, lr, "steepest")),
        "Cayley": from_gradient(lambda p: RiemannianDescent(p, lr, "cayley")),
        **{name: make for name, make in our_steps(lr).items() if name.startswith(("flow", "qr", "newton", "taylor"))},
        "newton-schulz, capturable": from_gradient(
            lambda p: RiemannianDescent(p, lr, "newton-schulz", check_finite=False, capturable=True)
        ),
        "POGO's rule": from_gradient(lambda p: PogoRule(p, lr)),
        "SGDG": from_gradient(lambda p: FiveLoops(p, lr)),
    }


def steps(device: str, sides: list[int], seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of a step by side and method: Figure 4 (a) and the step table."""
    found: dict[str, dict[str, float]] = {}
    slow: set[str] = set()
    for d in sides:
        X = haar_orthogonal(d, d, random_state=0).to(device)
        G = torch.randn(d, d, generator=torch.Generator().manual_seed(1)).to(device)
        row = found[str(d)] = {}
        for name, make in makers(0.1 / (2 * math.sqrt(2 * d))).items():
            if name not in slow:
                row[name] = step_ms(make(X, G), device, seconds)
                if row[name] > 250 * LIMIT:  # of twice the side it would be beyond
                    slow.add(name)
        print(d, device, {name: round(value, 3) for name, value in row.items()}, flush=True)
    return found


def all_pairs(device: str, size: int, k: int, seconds: float) -> dict[str, float]:
    """Milliseconds of value, gradient and Gauss-Newton product over size^2 pairs, ten of them observed a row."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(size), 10), rng.integers(size, size=10 * size)
    observed = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(size, size))
    loss = AllPairsLoss(observed, omega=0.1)
    generator = torch.Generator().manual_seed(0)
    P, Q, W, H = (0.1 * torch.randn(size, k, generator=generator).to(device) for _ in range(4))
    calls: dict[str, Callable[[], Any]] = {
        "value": lambda: loss.value(P, Q),
        "gradient": lambda: loss.gradient(P, Q),
        "Gauss-Newton product": lambda: loss.gauss_newton_product(P, Q, W, H),
    }
    found = {name: step_ms(call, device, seconds) for name, call in calls.items()}
    print(f"all pairs, {size:,} x {size:,}, k = {k}, {device}:", {name: round(v, 2) for name, v in found.items()})
    return found


def towers(device: str, small: bool) -> dict[str, float]:
    """Milliseconds of a step of `TwoTower.fit`: networks of features, id tables as modules, and the indexing layer."""
    size, d, hidden, k = (300, 8, 16, 8) if small else (100_000, 256, 512, 64)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((size, d)).astype(np.float32)
    pairs = nk.Interactions.from_pairs(np.repeat(np.arange(size), 5), rng.integers(size, size=5 * size))
    pairs = nk.Interactions.from_pairs(
        pairs.rows, pairs.indices, left_ids=np.arange(size), right_ids=np.arange(size),
        left_features=features, right_features=features,
    )  # fmt: skip

    def network() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, k)).to(device)

    layer = nk.quantization.IndexingLayer(k, 8, 16 if small else 256, buffer_size=size // 2, random_state=0)
    batches = {"loss": "in-batch-softmax", "solver": Adam(max_iter=2)}
    found = {}
    for name, options in {
        "all pairs, Adam, a step": {"solver": Adam(max_iter=3)},
        "all pairs, Gauss-Newton, a step": {"solver": GaussNewton(max_iter=2)},
        "softmax in batches of 4,096, an epoch": batches,
        "the same through the indexing layer, an epoch": batches | {"index": layer},
    }.items():
        options = {"left": network(), "right": network(), "regularization": 1e-3, "random_state": 0} | options
        model = nk.TwoTower(k, validation_fraction=0.01, **options).fit(pairs)
        seconds = np.diff([record["seconds"] for record in model.history_])  # the first step also starts up
        found[name] = 1e3 * float(seconds.mean())
        print(device, name, round(found[name], 1), flush=True)
    return found


def layers(device: str, small: bool, seconds: float) -> dict[str, float]:
    """Milliseconds of a training step through the indexing layer on batches of 4,096 vectors, by rotation."""
    d, M, K, batch = (16, 4, 8, 64) if small else (256, 16, 256, 4096)
    x = torch.randn(batch, d, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()
    found = {}
    for rotation in ("frozen", "givens-random", "cayley"):
        layer = nk.quantization.IndexingLayer(d, M, K, rotation=rotation, buffer_size=batch, max_iter=3).to(device)
        optimizer = layer.rotation_optimizer()

        def step(layer: nk.quantization.IndexingLayer = layer, optimizer: Any = optimizer) -> None:
            quantized, distortion = layer(x)
            (quantized.square().sum() + distortion).backward()
            if optimizer is not None:
                optimizer.step()
            layer.zero_grad()

        step()  # trains the codebooks
        found[rotation] = step_ms(step, device, seconds)
    print("layer", device, {name: round(value, 2) for name, value in found.items()}, flush=True)
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cuda")
    options.add_argument("--small", action="store_true", help="small sizes and few steps")
    options.add_argument("--seconds", type=float, default=0.5, help="for each method and size")
    arguments = options.parse_args()
    device, small = arguments.device, arguments.small or arguments.quick
    if device != "cpu" and not torch.cuda.is_available():
        options.error(f"no {device} device is there; type --device cpu --small to see that the code runs")
    seconds = min(arguments.seconds, 0.02) if small else arguments.seconds
    torch.set_num_threads(arguments.threads)
    start, devices = time.perf_counter(), list(dict.fromkeys([device, "cpu"]))
    sides = [16, 64] if small else [2**power for power in range(6, 13)]
    parts: dict[str, Callable[[str], Any]] = {
        "towers": lambda on: towers(on, small),
        "layers": lambda on: layers(on, small, seconds),
        "all pairs": lambda on: all_pairs(on, 1000 if small else 10**6, 8 if small else 64, seconds),
        "steps": lambda on: steps(on, sides, seconds if on == device else min(seconds, 0.2)),
    }
    results: dict[str, Any] = {
        "device": "cpu" if device == "cpu" else torch.cuda.get_device_name(),
        **{name: {on: part(on) for on in devices} for name, part in parts.items()},
    }
    print(f"{time.perf_counter() - start:.0f} s")
    save("gpu", results, small=small, device=device)
