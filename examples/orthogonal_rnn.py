"""Remember symbols across a delay: an RNN whose hidden matrix stays orthogonal, on the copying task (flows, section 1).

    python examples/orthogonal_rnn.py

The network sees `--symbols` symbols, then `--delay` blanks, then must repeat the symbols. Guessing gives the baseline
loss of a network without memory. The recurrence is linear in an orthogonal matrix with a modReLU, so gradients keep
their norm.
"""

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nearkin as nk

ADAM = nk.orthogonal.Adam()
METHODS: dict[str, Callable | None] = {
    "unconstrained": None,
    "Riemannian, taylor": lambda p: nk.orthogonal.RiemannianDescent(p, 3e-4, "taylor", momentum=ADAM),
    "Givens, 8 matchings": lambda p: nk.orthogonal.GivensDescent(p, 0.01, "random", n_matchings=8, momentum=ADAM),
    "flow, s = d / log d": lambda p: nk.orthogonal.StochasticFlow(p, 0.01, "d/log d", scale="none", momentum=ADAM),
}


class Recurrent(nn.Module):
    """h <- modrelu(h W + V x), y = U h: W is the hidden matrix (d, d)."""

    def __init__(self, n_symbols: int, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inputs = nn.Linear(n_symbols + 2, width, bias=False)
        self.hidden = nn.Parameter(torch.empty(width, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.outputs = nn.Linear(width, n_symbols + 2)
        nn.init.normal_(self.hidden, std=width**-0.5)

    def forward(self, x: Tensor) -> Tensor:  # (batch, length, n_symbols + 2) to logits of the same shape
        drive = self.inputs(x)
        h, states = torch.zeros_like(drive[:, 0]), []
        for t in range(x.shape[1]):
            h = h @ self.hidden + drive[:, t]
            h = torch.sign(h) * torch.relu(h.abs() + self.bias)
            states.append(h)
        return self.outputs(torch.stack(states, 1))


def copying(batch: int, symbols: int, delay: int, n_symbols: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (batch, 2 symbols + delay): blank is n_symbols, the signal to repeat n_symbols + 1."""
    message = torch.randint(n_symbols, (batch, symbols), generator=generator)
    x = torch.full((batch, 2 * symbols + delay), n_symbols)
    y = x.clone()
    x[:, :symbols], x[:, symbols + delay - 1], y[:, symbols + delay :] = message, n_symbols + 1, message
    return x, y


def train(build: Callable | None, steps: int, symbols: int, delay: int, width: int) -> list[float]:
    n_symbols = 8
    net = Recurrent(n_symbols, width)
    weights = [nk.orthogonal.orthogonal_(net, "hidden", random_state=0)] if build else []
    rest = [p for p in net.parameters() if not any(p is weight for weight in weights)]
    optimizers = [torch.optim.Adam(rest, lr=0.003)] + ([build(weights)] if build else [])
    generator, losses = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        x, y = copying(64, symbols, delay, n_symbols, generator)
        loss = F.cross_entropy(net(F.one_hot(x, n_symbols + 2).float()).flatten(0, 1), y.flatten())
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(rest, 1.0)
        for optimizer in optimizers:
            optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--symbols", type=int, default=5)
    parser.add_argument("--delay", type=int, default=20)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("orthogonal_rnn.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    baseline = options.symbols * math.log(8) / (2 * options.symbols + options.delay)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    print(f"loss without memory: {baseline:.4f}")
    for name, build in METHODS.items():
        start = time.perf_counter()
        losses = train(build, options.steps, options.symbols, options.delay, options.width)
        last = sum(losses[-20:]) / len(losses[-20:])
        print(f"{name:22}{last:.4f}   {time.perf_counter() - start:.1f} s", flush=True)
        axes.semilogy(losses, label=name, lw=1)
    axes.axhline(baseline, color="k", lw=0.6)
    axes.set(
        xlabel="step", ylabel="cross-entropy", title=f"Copying {options.symbols} symbols across {options.delay} blanks"
    )
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
