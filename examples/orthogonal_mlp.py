"""Does it help to keep the layers of a tanh network orthogonal while it learns? (flows, section 6.2, Figure 4)

    python examples/orthogonal_mlp.py --data ../shared/data     # MNIST, if the folder has mnist.npz
    python examples/orthogonal_mlp.py                           # scikit-learn's digits

Two hidden layers of 100 tanh units. Vanilla SGD with momentum against orthogonal layers moved by the exact exponential,
by the stochastic flow with s = 2 and s = d / log d, and by Givens rotations; thin lines are training, bold ones test
accuracy. The paper reports that the orthogonal variants outperform vanilla training, without its batch size and step
lengths; with the ones here they do not (MNIST, 6 epochs: 0.96 vanilla, 0.95 exact, 0.94 flow with large components,
0.90 with s = 2): so shallow a network has no gradients to rescue. `plain_convnet.py` shows where orthogonality decides.
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
    "exact": lambda p: nk.orthogonal.RiemannianDescent(p, lr=0.02, retraction="exp", momentum=0.9),
    "flow, s = 2": lambda p: nk.orthogonal.StochasticFlow(p, lr=0.1, scale="none", momentum=0.9),
    "flow, s = d / log d": lambda p: nk.orthogonal.StochasticFlow(p, 0.05, "d/log d", scale="none", momentum=0.9),
    "Givens greedy": lambda p: nk.orthogonal.GivensDescent(p, 0.05, "greedy", momentum=0.9),
}


def read(folder: Path | None) -> tuple[Tensor, Tensor, Tensor, Tensor, str]:
    """Return training and test images (n, p) and labels, and the data's name."""
    file = folder / "mnist.npz" if folder else None
    if file and file.exists():
        with np.load(file) as archive:
            X, y = archive["X_train"][:30000], archive["y_train"][:30000]
            X_test, y_test = archive["X_test"], archive["y_test"]
        name, top = "MNIST", 255.0
    else:
        digits = load_digits()
        X, X_test, y, y_test = train_test_split(digits.data, digits.target, test_size=0.3, random_state=0)
        name, top = "digits", 16.0
    images = [torch.from_numpy(np.asarray(A, np.float32) / np.float32(top)) - 0.2 for A in (X, X_test)]
    labels = [torch.from_numpy(np.asarray(b, np.int64)) for b in (y, y_test)]
    return images[0], labels[0], images[1], labels[1], name


def network(n_inputs: int, width: int = 100) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(n_inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 10)
    )


def train(build: Callable | None, data: tuple, epochs: int) -> list[tuple[float, float]]:
    """Return training and test accuracy after each epoch."""
    X, y, X_test, y_test, _ = data
    net = network(X.shape[1])
    weights = [nk.orthogonal.orthogonal_(net[layer], "weight") for layer in (0, 2)] if build else []
    rest = [p for p in net.parameters() if not any(p is weight for weight in weights)]
    optimizers = [torch.optim.SGD(rest, lr=0.05, momentum=0.9)] + ([build(weights)] if build else [])
    generator = torch.Generator().manual_seed(0)
    accuracies = []
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=generator).split(128):
            for optimizer in optimizers:
                optimizer.zero_grad()
            F.cross_entropy(net(X[rows]), y[rows]).backward()
            for optimizer in optimizers:
                optimizer.step()
        with torch.no_grad():
            accuracies.append(
                tuple(
                    float((net(A[:10000]).argmax(1) == b[:10000]).float().mean()) for A, b in ((X, y), (X_test, y_test))
                )
            )
    if weights and not all(nk.orthogonal.is_orthogonal(weight) for weight in weights):
        raise RuntimeError("a layer left the manifold")
    return accuracies


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mnist.npz")
    parser.add_argument("--epochs", type=int, help="6 for MNIST, 40 for digits")
    parser.add_argument("--out", type=Path, default=Path("orthogonal_mlp.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = read(options.data)
    epochs = options.epochs or (6 if data[4] == "MNIST" else 40)
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    print(f"{data[4]}: {len(data[0])} images, {epochs} epochs\n{'':22}{'train':>8}{'test':>8}{'seconds':>9}")
    for name, build in METHODS.items():
        start = time.perf_counter()
        accuracies = train(build, data, epochs)
        print(
            f"{name:22}{accuracies[-1][0]:8.4f}{accuracies[-1][1]:8.4f}{time.perf_counter() - start:9.1f}", flush=True
        )
        train_curve, test_curve = zip(*accuracies, strict=True)
        (line,) = axes.plot(range(1, epochs + 1), test_curve, lw=2.2, label=name)
        axes.plot(range(1, epochs + 1), train_curve, lw=0.8, color=line.get_color())
    axes.set(xlabel="epoch", ylabel="accuracy", title=f"{data[4]}: thin training, bold test")
    axes.set_ylim(bottom=max(0.5, axes.get_ylim()[0]))
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
