"""One step in every layout: `orthogonal_optimizer` as called beside POGO's rule and geoopt, in one run.

    python -m benchmarks orthogonal layouts --kind AVX2     # a name for this kind of CPU

Matrices lie rows first or as `torch.linalg.qr` returns them, columns first; gradients lie as autograd makes them, like
their parameter. The ratio is POGO's time over ours, the median of blocks taken in turn, with its quartiles.
"""

import math
import statistics
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.jobs import Job, Row, command
from benchmarks.options import peer_packages
from benchmarks.orthogonal.methods import add_peers, our_steps, peer_steps
from benchmarks.orthogonal.run import NORM, now

SHAPES = ("16x16", "32x32", "64x64", "96x96", "128x128", "256x256", "64x24x24", "16x64x64", "64x8", "512x32", "32x512")
LAYOUTS = ("rows first", "columns first")
METHODS = ("riemannian auto", "POGO's rule", "geoopt SGD, euclidean")


def matrices(shape: list[int], layout: str) -> tuple[Tensor, Tensor]:
    """An orthonormal tensor and a gradient of its strides."""
    *batch, d, k = shape
    generator = torch.Generator().manual_seed(0)
    X = torch.linalg.qr(torch.randn(*batch, max(d, k), min(d, k), generator=generator)).Q
    X = X if d >= k else X.mT
    X = X.contiguous() if layout == "rows first" else X.mT.contiguous().mT
    return X, torch.empty_like(X).copy_(torch.randn(X.shape, generator=generator))


def measured(size: str, layout: str, seconds: float, packages: list[str]) -> Iterator[Row]:
    """A row for each method: microseconds a step, and the ratio to the plain call in blocks taken in turn."""
    shape = [int(side) for side in size.split("x")]
    lr = NORM / (2 * math.sqrt(2 * max(shape[-2:])))
    steps = {**our_steps(lr), **peer_steps(lr, packages)}
    steps = {name: steps[name](*matrices(shape, layout)) for name in METHODS if name in steps}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(5):  # compiles
            step()
    begin = now()
    while now() - begin < seconds or len(times[METHODS[0]]) < 20:
        for name, step in steps.items():
            start, count = now(), 0
            while now() - start < 0.005:
                step()
                count += 1
            times[name].append((now() - start) / count)
    for name, values in times.items():
        ratios = sorted(theirs / ours for theirs, ours in zip(values, times[METHODS[0]], strict=True))
        quartiles = [round(ratios[len(ratios) * part // 4], 3) for part in (1, 3)]
        yield {
            "method": name,
            "us": 1e6 * statistics.median(values),
            "ratio": statistics.median(ratios),
            "quartiles": quartiles,
        }


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    packages = add_peers(peer_packages(given.peers))
    for size in ("16x16", "64x8") if given.quick else given.shapes:
        for layout in LAYOUTS:
            work = partial(measured, size, layout, 0.2 if given.quick else given.seconds, packages)
            yield "orthogonal_layouts", Job({"kind": given.kind, "size": size, "layout": layout}, work)


def main() -> None:
    command(__doc__, jobs, {"norm": NORM}, shapes=SHAPES, seconds=2.0, kind="AVX2")


if __name__ == "__main__":
    main()
