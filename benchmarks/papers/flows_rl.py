"""Flows, Figure 3 in small: recurrent policies by evolution strategies on three gymnasium tasks without MuJoCo.

h <- tanh(h W + x V), d = 200, and an action affine in h. W moves by the stochastic flow (s = 2, matchings drawn by
|x|), by the exact exponential, freely from a Gaussian start, or freely from an orthogonal one with a projection every
5 steps; a purely affine policy stands beside. The paper has 800 machines, ten seeds and MuJoCo's tasks.

Figure 6: rho(s) = ||Omega||_1 / (its d/s C(s, 2) largest entries) along evolution strategies, on CartPole from
positions in place of Humanoid. As printed, both sums are over *entries*, of which a pair has two: the d (s - 1) / 2
largest entries are d (s - 1) / 4 pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

import nearkin as nk
from benchmarks.jobs import Job, Row
from examples import evolution_strategies
from examples.evolution_strategies import estimate
from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.linalg.skew import right_skew

TASKS = {"CartPole-v1": 2, "Acrobot-v1": 3, "Pendulum-v1": 1}  # actions, 1 for a real number
PERIOD = 5
SIZES = (2, 4, 5, 10, 20, 25, 50)  # s of Figure 6


@dataclass(frozen=True)
class Size:
    """Hidden units, policies a generation, generations, the longest episode, seeds.

    `factors` of W's step length are tried in the first `tried` seeds, to see what its choice decides.
    `entries` are the first three of Figure 6.
    """

    d: int = 200
    population: int = 32
    generations: int = 30
    longest: int = 200
    seeds: int = 10
    tried: int = 3
    factors: tuple[float, ...] = (0.25, 4.0)
    entries: tuple[int, int, int] = (200, 64, 30)


FULL, SMALL = Size(), Size(16, 4, 5, 20, 2, 1, entries=(100, 4, 3))
METHODS: dict[str, Callable[..., Any] | None] = {
    "stoch-ortRNN": lambda p, x: nk.orthogonal.StochasticFlow(p, 0.5 * x, 2, "abs", scale="none", maximize=True),
    "exact-ortRNN": lambda p, x: nk.orthogonal.RiemannianDescent(p, 0.05 * x, maximize=True),
    "ortinit-vanRNN": lambda p, x: torch.optim.SGD(p, 0.05 * x, maximize=True),
    "vanRNN": lambda p, x: torch.optim.SGD(p, 0.05 * x, maximize=True),
    "affine": None,
}


def policy(method: str, d: int, inputs: int, actions: int, seed: int) -> nn.ParameterDict:
    """The parameters: W, V, u of a recurrent policy, A, b of an affine one."""
    draw = torch.Generator().manual_seed(seed)
    if method == "affine":
        return nn.ParameterDict({"A": torch.zeros(inputs, actions), "b": torch.zeros(1, actions)})
    module = nn.ParameterDict(
        {
            "W": nn.Parameter(torch.randn(d, d, generator=draw) / d**0.5),
            "V": nn.Parameter(torch.randn(inputs, d, generator=draw)),
            "u": nn.Parameter(torch.randn(d, actions, generator=draw) / d**0.5),
        }
    )
    if method != "vanRNN":
        nk.orthogonal.orthogonal_(module, "W", random_state=seed)
    return module


def returns(environments: Any, p: dict[str, Tensor], actions: int, longest: int, seed: int) -> Tensor:
    """The sum of rewards of one episode for each of the b policies (b, ...)."""
    seen, _ = environments.reset(seed=seed)
    hidden = torch.zeros(len(seen), 1, p["W"].shape[-1] if "W" in p else 0)
    alive, total = np.ones(len(seen), bool), np.zeros(len(seen))
    for _ in range(longest):
        x = torch.from_numpy(np.asarray(seen, np.float32)).unsqueeze(1)
        if "W" in p:
            hidden = torch.tanh(hidden @ p["W"] + x @ p["V"])
            out = (hidden @ p["u"])[:, 0]
        else:
            out = (x @ p["A"])[:, 0] + p["b"][:, 0]
        act = out.argmax(1).numpy() if actions > 1 else 2 * torch.tanh(out).numpy()
        seen, reward, ended, cut, _ = environments.step(act)
        total += alive * reward
        alive &= ~(ended | cut)
        if not alive.any():
            break
    return torch.from_numpy(total)


def train(task: str, method: str, factor: float, size: Size, seed: int) -> list[float]:
    """The mean return of each generation."""
    actions = TASKS[task]
    environments = gymnasium.make_vec(task, size.population, vectorization_mode="sync")
    module = policy(method, size.d, environments.single_observation_space.shape[0], actions, seed)
    build, half = METHODS[method], size.population // 2
    rest = [value for name, value in module.items() if name != "W"]
    optimizers = [torch.optim.Adam(rest, 0.05, maximize=True)] + ([build([module["W"]], factor)] if build else [])
    draw, means = torch.Generator().manual_seed(seed), []
    for generation in range(size.generations):
        seeds = 1000 * seed + generation
        play = partial(returns, environments, actions=actions, longest=size.longest, seed=seeds)
        means.append(estimate(module, half, draw, play))
        for optimizer in optimizers:
            optimizer.step()
        if method == "ortinit-vanRNN" and (generation + 1) % PERIOD == 0:
            module["W"].data = nearest_orthogonal(module["W"].detach())
    environments.close()
    return means


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Figure 3 in small: the curves of every task, method and seed."""
    del data
    every = list(product(TASKS, METHODS))
    main = [(seed, *line, 1.0) for seed in range(size.seeds) for line in every]
    recurrent = [line for line in every if METHODS[line[1]] is not None]
    others = [(seed, *line, x) for seed in range(size.tried) for line in recurrent for x in size.factors]
    for seed, task, method, factor in main + others:
        key = {"task": task, "method": method, "factor": factor, "seed": seed, "generations": size.generations}
        yield Job(key, partial(measured, size, key))


def measured(size: Size, key: Row) -> Row:
    return {"curve": train(key["task"], key["method"], key["factor"], size, key["seed"])}


def entries(data: Path, size: Size) -> Iterator[Job]:
    """Figure 6: one run of the flow with s = 2."""
    del data
    yield Job({"d": size.entries[0]}, partial(spread, *size.entries))


def spread(d: int, population: int, generations: int) -> Row:
    """rho of every s in every generation, and the mean rewards."""
    found = {s: list[float]() for s in SIZES}

    def watched(parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        optimizer = evolution_strategies.METHODS["stochastic flow, s = 2"](parameters)
        optimizer.register_step_pre_hook(lambda *_: keep(parameters[0]))
        return optimizer

    def keep(W: torch.Tensor) -> None:
        Omega = right_skew(W.detach(), W.grad)
        magnitudes = Omega[*torch.triu_indices(d, d, 1)].abs().sort(descending=True).values.double()
        for s in SIZES:
            found[s].append(float(f"{magnitudes.sum() / magnitudes[: d * (s - 1) // 4].sum():.5g}"))

    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    environments = gymnasium.make_vec("CartPole-v1", population, vectorization_mode=mode)
    reward = evolution_strategies.train(environments, watched, generations, d, 0)
    return {"rho": {str(s): values for s, values in found.items()}, "reward": reward}
