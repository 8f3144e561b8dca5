"""What one gradient and one Gauss-Newton product cost against m + n, and brute force where it fits."""

import resource
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch

import nearkin as nk
from benchmarks.harness import median_ms
from benchmarks.jobs import Job, command
from benchmarks.options import RESULTS
from benchmarks.table import Results
from benchmarks.two_tower.figures import draw_scaling


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for m in (1000, 4000, 16000) if given.quick else (1000, 2000, 4000, 8000, 16000, 32000, 64000):
        yield "two_tower_scaling", Job({"m": m}, partial(one_size, m, brute=m <= (4000 if given.quick else 16000)))


def main() -> None:
    command(__doc__, jobs, {})
    draw_scaling(Results(RESULTS).read("two_tower_scaling"))


def one_size(m: int, brute: bool) -> dict:
    """k = 64 and 100 random pairs a row."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, m, 100 * m), np.arange(0, 100 * m + 1, 100)
    pairs = sp.csr_matrix((np.ones(100 * m, np.float32), *places), shape=(m, m))
    loss = nk.embedding.AllPairsLoss(pairs, omega=0.01, labels=1.0)
    P, Q, W, H = (torch.from_numpy(rng.standard_normal((m, 64), dtype=np.float32)) / 8 for _ in range(4))
    point, values = loss.at(P, Q), torch.zeros(len(loss.pairs.indices))
    functions = {
        "gradient": lambda: loss.gradient(P, Q),
        "product": lambda: point.gauss_newton_product(W, H),
        "floor": lambda: floor(loss, P, Q, values),
    }
    row = {**median_ms(functions, 3 if m > 8000 else 5), "peak_gb": peak_gb()}
    if brute:
        observed = torch.from_numpy(pairs.toarray()) > 0
        row |= median_ms({"brute force": lambda: brute_force(P, Q, observed)}, 2)
    return row


def floor(loss, P: torch.Tensor, Q: torch.Tensor, values: torch.Tensor) -> None:
    """The products that no gradient can do without: both Gramians and P Q_c, Q P_c, and three passes over the pairs."""
    P @ (Q.T @ Q), Q @ (P.T @ P)
    loss.pairs.dots(P, Q), loss.pairs.times_right(values, Q), loss.pairs.times_left(values, P)


def brute_force(P: torch.Tensor, Q: torch.Tensor, observed: torch.Tensor) -> None:
    P, Q = P.clone().requires_grad_(), Q.clone().requires_grad_()
    Z = P @ Q.T
    torch.where(observed, 0.5 * (1 - Z) ** 2, 0.005 * Z**2).sum().backward()
