"""Can a recurrent policy be learned from rewards alone, with its memory kept orthogonal? (flows, section 6.1, in small)

    pip install nearkin[rl]
    python examples/evolution_strategies.py

Gymnasium's CartPole, but the policy sees positions only: velocities must come from its memory. Evolution strategies
(Salimans et al. 2017): all policies of a generation are this one plus and minus Gaussian noise, and the rank-weighted
mean of the noise is the gradient. The hidden matrix moves by the stochastic flow with s = 2, by the exact exponential,
or freely, from the same orthogonal start (the paper's "ortinit").
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

import nearkin as nk

METHODS: dict[str, Callable] = {
    "stochastic flow, s = 2": lambda p: nk.orthogonal.StochasticFlow(p, 0.5, scale="none", maximize=True),
    "exact exponential": lambda p: nk.orthogonal.RiemannianDescent(p, 0.05, maximize=True),
    "free, orthogonal start": lambda p: torch.optim.SGD(p, 0.05, maximize=True),
}
LONGEST = 200  # steps of an episode
NOISE = 0.1


def policy(width: int, seed: int) -> nn.ParameterDict:
    """h <- tanh(h W + x V); push right if h u > 0."""
    generator = torch.Generator().manual_seed(seed)
    module = nn.ParameterDict(
        {
            "W": nn.Parameter(torch.empty(width, width)),
            "V": nn.Parameter(torch.randn(2, width, generator=generator)),
            "u": nn.Parameter(torch.randn(width, 1, generator=generator) / width**0.5),
        }
    )
    nk.orthogonal.orthogonal_(module, "W", random_state=seed)
    return module


def rewards(environments: Any, W: Tensor, V: Tensor, u: Tensor, seed: int) -> Tensor:
    """Return the length of one episode for each of the b policies: W (b, h, h), V (b, 2, h), u (b, h, 1)."""
    observation, _ = environments.reset(seed=seed)
    hidden = torch.zeros(len(W), 1, W.shape[1])
    alive, total = np.ones(len(W), bool), np.zeros(len(W))
    for _ in range(LONGEST):
        seen = torch.from_numpy(observation[:, [0, 2]] * np.float32([0.4, 5.0])).unsqueeze(1)
        hidden = torch.tanh(hidden @ W + seen @ V)
        action = ((hidden @ u).flatten() > 0).long().numpy()
        observation, _, terminated, truncated, _ = environments.step(action)
        total += alive
        alive &= ~(terminated | truncated)
        if not alive.any():
            break
    return torch.from_numpy(total)


def estimate(module: nn.ParameterDict, half: int, draw: torch.Generator, play: Callable[[dict], Tensor]) -> float:
    """Give each parameter the gradient that `half` mirrored pairs of policies tell; returns their mean reward.

    `play` takes the policies, a dict of parameters with a leading axis of 2 * half, and gives the reward of each.
    """
    noise = {name: torch.randn(half, *p.shape, generator=draw) for name, p in module.items()}
    reward = play({name: p.detach() + NOISE * torch.cat([noise[name], -noise[name]]) for name, p in module.items()})
    ranks = reward.argsort().argsort().float() / (len(reward) - 1) - 0.5
    weight = (ranks[:half] - ranks[half:]) / NOISE
    for name, p in module.items():
        p.grad = torch.einsum("b,b...->...", weight, noise[name]) / half
    return float(reward.mean())


def train(environments: Any, build: Callable, generations: int, width: int, seed: int) -> list[float]:
    """Return the mean reward of each generation."""
    module, half = policy(width, seed), environments.num_envs // 2
    optimizers = [build([module["W"]]), torch.optim.Adam([module["V"], module["u"]], 0.05, maximize=True)]
    draw, means = torch.Generator().manual_seed(seed), []
    for generation in range(generations):
        play = partial(rewards, environments, seed=1000 * seed + generation)
        means.append(estimate(module, half, draw, lambda policies, play=play: play(**policies)))
        for optimizer in optimizers:
            optimizer.step()
    return means


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=30)
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("evolution_strategies.png"))
    options = parser.parse_args(arguments)
    try:
        import gymnasium
    except ImportError:
        raise SystemExit("this example needs gymnasium; type: pip install 'nearkin[rl]'") from None
    torch.set_num_threads(1)
    environments = gymnasium.make_vec(
        "CartPole-v1", options.population, vectorization_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    )
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    print(f"mean reward (at most {LONGEST}) of the last five generations, one figure a seed")
    for name, build in METHODS.items():
        start = time.perf_counter()
        runs = [train(environments, build, options.generations, options.width, seed) for seed in range(options.seeds)]
        last = " ".join(f"{np.mean(run[-5:]):6.1f}" for run in runs)
        print(f"{name:26}{last}   {time.perf_counter() - start:.1f} s", flush=True)
        (line,) = axes.plot(np.mean(runs, 0), lw=2, label=name)
        for run in runs:
            axes.plot(run, lw=0.6, color=line.get_color())
    axes.set(xlabel="generation", ylabel="mean reward", title="CartPole from positions only, evolution strategies")
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
