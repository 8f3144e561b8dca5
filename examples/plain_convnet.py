"""A deep plain convolutional network, no skips, no normalisation: does it learn? (flows, section 6.2, Figure 5, in
small)

    python examples/plain_convnet.py

Sixteen 3 x 3 convolutions on scikit-learn's 8 x 8 digits. With ordinary SGD the signal fades on the way; with kernels
that start and stay orthonormal, as (C_in * 9, C_out) matrices, it does not.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

import nearkin as nk

METHODS: dict[str, Callable | None] = {
    "SGD": None,
    "orthogonal, newton-schulz": lambda p: nk.orthogonal.RiemannianDescent(
        p, 0.1, "newton-schulz", momentum=0.9, layout="convolution"
    ),
    "orthogonal, flow s = d / log d": lambda p: nk.orthogonal.StochasticFlow(
        p, 0.1, "d/log d", scale="none", momentum=0.9, layout="convolution"
    ),
}


def network(depth: int, channels: int) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(1, channels, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.Tanh(), nn.Conv2d(channels, channels, 3, padding=1)]
    return nn.Sequential(*layers, nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 10))


def train(build: Callable | None, data: list[Tensor], epochs: int, depth: int, channels: int) -> list[float]:
    """Return the test accuracy after each epoch."""
    net = network(depth, channels)
    inner = [layer for layer in net if isinstance(layer, nn.Conv2d) and layer.in_channels > 1]
    weights = [nk.orthogonal.orthogonal_(layer, "weight", random_state=i) for i, layer in enumerate(inner)]
    if build is None:
        net, weights = network(depth, channels), []
    rest = [p for p in net.parameters() if not any(p is weight for weight in weights)]
    optimizers = [torch.optim.SGD(rest, lr=0.05, momentum=0.9)] + ([build(weights)] if build else [])
    return learn(net, optimizers, rest, data, epochs, torch.Generator().manual_seed(0))


def learn(
    net: nn.Sequential,
    optimizers: list[torch.optim.Optimizer],
    clipped: list[nn.Parameter],
    data: list[Tensor],
    epochs: int,
    generator: torch.Generator,
) -> list[float]:
    """Train on batches of 64 images and return the test accuracy after each epoch; `clipped` have short gradients."""
    (X, X_test, y, y_test), accuracies = data, []
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=generator).split(64):
            for optimizer in optimizers:
                optimizer.zero_grad()
            F.cross_entropy(net(X[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(clipped, 1.0)
            for optimizer in optimizers:
                optimizer.step()
        with torch.no_grad():
            accuracies.append(float((net(X_test).argmax(1) == y_test).float().mean()))
    return accuracies


def digits() -> list[Tensor]:
    """Training and test images (n, 1, 8, 8) and their labels: X, X_test, y, y_test."""
    loaded = load_digits()
    images = torch.from_numpy(loaded.data).float().reshape(-1, 1, 8, 8) / 8 - 1
    parts = train_test_split(images.numpy(), loaded.target, test_size=0.3, random_state=0)
    return [torch.from_numpy(part) for part in parts]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("plain_convnet.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = digits()
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, build in METHODS.items():
        start = time.perf_counter()
        accuracies = train(build, data, options.epochs, options.depth, options.channels)
        print(f"{name:32}test accuracy {accuracies[-1]:.4f}   {time.perf_counter() - start:.1f} s", flush=True)
        axes.plot(range(1, options.epochs + 1), accuracies, "o-", ms=3, label=name)
    axes.set(xlabel="epoch", ylabel="test accuracy", title=f"{options.depth} plain convolutions on digits")
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
