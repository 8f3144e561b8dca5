"""Flows, Figure 6: rho(s) = ||Omega||_1 / (its d/s C(s, 2) largest entries) along evolution strategies.

CartPole from positions in place of Humanoid. As printed, both sums are over *entries*, of which a pair has two: the
d (s - 1) / 2 largest entries are d (s - 1) / 4 pairs. "of pairs" has d (s - 1) / 2 pairs, the edges of a graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gymnasium
import torch

from benchmarks.jobs import Job, Row
from examples import evolution_strategies
from nearkin.linalg.skew import right_skew

SIZES = (2, 4, 5, 10, 20, 25, 50)  # s


@dataclass(frozen=True)
class Size:
    """Hidden units, policies a generation, generations."""

    d: int = 200
    population: int = 64
    generations: int = 30


FULL, SMALL = Size(), Size(100, 4, 3)


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """One run of the flow with s = 2."""
    del data
    yield Job({"d": size.d}, partial(measured, size))


def measured(size: Size) -> Row:
    """rho of every s in every generation, and the mean rewards."""
    d, found, pairs = size.d, {s: list[float]() for s in SIZES}, {s: list[float]() for s in SIZES}

    def watched(parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        optimizer = evolution_strategies.METHODS["stochastic flow, s = 2"](parameters)
        optimizer.register_step_pre_hook(lambda *_: keep(parameters[0]))
        return optimizer

    def keep(W: torch.Tensor) -> None:
        Omega = right_skew(W.detach(), W.grad)
        magnitudes = Omega[*torch.triu_indices(d, d, 1)].abs().sort(descending=True).values.double()
        for s in SIZES:
            for kept, count in ((found, d * (s - 1) // 4), (pairs, d * (s - 1) // 2)):
                kept[s].append(float(f"{magnitudes.sum() / magnitudes[:count].sum():.5g}"))

    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    environments = gymnasium.make_vec("CartPole-v1", size.population, vectorization_mode=mode)
    reward = evolution_strategies.train(environments, watched, size.generations, d, 0)
    rho = {name: {str(s): values for s, values in of.items()} for name, of in (("rho", found), ("of pairs", pairs))}
    return {**rho, "reward": reward}
