"""Does it help to keep the layers of a tanh network orthogonal while it learns? (flows, section 6.2, Figure 4)

    python examples/orthogonal_mlp.py --data ../shared/data     # MNIST, if the folder has mnist.npz
    python examples/orthogonal_mlp.py                           # scikit-learn's digits

Two hidden layers of 100 tanh units. Vanilla SGD with momentum against orthogonal layers moved by the exact exponential,
by the stochastic flow with s = 2 and s = d / log d, and by Givens rotations. Every method chooses its step length for
the two weights from the same grid, by the accuracy on held-out training images after a third of the epochs (seed 0);
then it runs on three other seeds. Thin lines are training, bold ones test accuracy, means over the seeds.

The paper reports that the orthogonal variants outperform vanilla training, without its batch size and step lengths.
Here they do not (MNIST, 10,000 images, 6 epochs): test accuracy 0.946 vanilla (lr 0.3), 0.906 Givens greedy, 0.903
exact (lr 0.03), 0.899 flow with s = 2, 0.892 with s = d / log d. A shallow network does not need
orthogonality against vanishing gradients, and a layer that can only rotate fits less. In `plain_convnet.py` it helps.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

import nearkin as nk

METHODS: dict[str, Callable | None] = {
    "vanilla SGD": None,
    "exact": lambda p, lr: nk.orthogonal.RiemannianDescent(p, lr, momentum=0.9),
    "default": lambda p, lr: nk.orthogonal.orthogonal_optimizer(p, lr, momentum=0.9),
    "flow, s = 2": lambda p, lr: nk.orthogonal.StochasticFlow(p, lr, scale="none", momentum=0.9),
    "flow, s = d / log d": lambda p, lr: nk.orthogonal.StochasticFlow(p, lr, "d/log d", scale="none", momentum=0.9),
    "Givens greedy": lambda p, lr: nk.orthogonal.GivensDescent(p, lr, "greedy", momentum=0.9),
}
GRID = (0.01, 0.03, 0.1, 0.3, 1.0)


def read(folder: Path | None) -> tuple[Tensor, Tensor, Tensor, Tensor, str]:
    """Return training and test images (n, p) and labels, and the data's name."""
    file = folder / "mnist.npz" if folder else None
    if file and file.exists():
        with np.load(file) as archive:
            X, y = archive["X_train"][:10000], archive["y_train"][:10000]
            X_test, y_test = archive["X_test"], archive["y_test"]
        name, top = "MNIST", 255.0
    else:
        digits = load_digits()
        X, X_test, y, y_test = train_test_split(digits.data, digits.target, test_size=0.3, random_state=0)
        name, top = "digits", 16.0
    images = [torch.from_numpy(np.asarray(A, np.float32) / np.float32(top)) - 0.2 for A in (X, X_test)]
    labels = [torch.from_numpy(np.asarray(b, np.int64)) for b in (y, y_test)]
    return images[0], labels[0], images[1], labels[1], name


def network(n_inputs: int, seed: int, width: int = 100) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(n_inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 10)
    )


def accuracy(net: nn.Module, X: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((net(X[:10000]).argmax(1) == y[:10000]).float().mean())


def train(build: Callable | None, lr: float, data: tuple, epochs: int, seed: int) -> list[tuple[float, float]]:
    """Return training and test accuracy after each epoch."""
    X, y, X_test, y_test = data
    net = network(X.shape[1], seed)
    weights = [nk.orthogonal.orthogonal_(net[i], "weight", random_state=seed) for i in (0, 2)] if build else []
    chosen = [net[i].weight for i in (0, 2)]
    rest = [p for p in net.parameters() if not any(p is weight for weight in chosen)]
    optimizers = [torch.optim.SGD(rest, lr=0.05, momentum=0.9)]
    optimizers.append(build(chosen, lr) if build else torch.optim.SGD(chosen, lr=lr, momentum=0.9))
    generator = torch.Generator().manual_seed(seed)
    accuracies = []
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=generator).split(128):
            for optimizer in optimizers:
                optimizer.zero_grad()
            F.cross_entropy(net(X[rows]), y[rows]).backward()
            for optimizer in optimizers:
                optimizer.step()
        accuracies.append((accuracy(net, X, y), accuracy(net, X_test, y_test)))
    if not all(nk.orthogonal.is_orthogonal(weight) for weight in weights):
        raise RuntimeError("a layer left the manifold")
    return accuracies


def choose(build: Callable | None, data: tuple, epochs: int) -> float:
    """Return the step length of the grid that is best on a fifth of the training images, learned from the others."""
    X, y = data[:2]
    cut = len(X) * 4 // 5
    split = (X[:cut], y[:cut], X[cut:], y[cut:])
    return max(GRID, key=lambda lr: train(build, lr, split, max(1, epochs // 3), 0)[-1][1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mnist.npz")
    parser.add_argument("--epochs", type=int, help="6 for MNIST, 20 for digits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("orthogonal_mlp.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    *data, name = read(options.data)
    epochs = options.epochs or (6 if name == "MNIST" else 20)
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    print(f"{name}: {len(data[0])} images, {epochs} epochs, {options.seeds} seeds")
    print(f"{'':22}{'lr':>6}{'train':>8}{'test':>8}{'+-':>8}{'seconds':>9}")
    for method, build in METHODS.items():
        start = time.perf_counter()
        lr = choose(build, tuple(data), epochs)
        runs = np.array([train(build, lr, tuple(data), epochs, seed) for seed in range(1, options.seeds + 1)])
        (train_curve, test_curve), spread = runs.mean(0).T, runs[:, -1, 1].std()
        last = f"{lr:6.2f}{train_curve[-1]:8.4f}{test_curve[-1]:8.4f}{spread:8.4f}"
        print(f"{method:22}{last}{time.perf_counter() - start:9.1f}", flush=True)
        (line,) = axes.plot(range(1, epochs + 1), test_curve, lw=2.2, label=method)
        axes.plot(range(1, epochs + 1), train_curve, lw=0.8, color=line.get_color())
    axes.set(xlabel="epoch", ylabel="accuracy", title=f"{name}: thin training, bold test")
    axes.set_ylim(bottom=max(0.5, axes.get_ylim()[0]))
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
