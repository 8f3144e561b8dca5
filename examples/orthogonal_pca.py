"""Principal components as optimization on St(d, k): maximise the variance of X W over orthonormal W, from minibatches.

python examples/orthogonal_pca.py
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin.linalg.haar import haar_orthogonal

METHODS = {
    "Riemannian, newton-schulz": lambda p: nk.orthogonal.RiemannianDescent(p, 0.01, "newton-schulz", maximize=True),
    "Riemannian, exp": lambda p: nk.orthogonal.RiemannianDescent(p, 0.01, "exp", maximize=True),
    "Givens greedy": lambda p: nk.orthogonal.GivensDescent(p, 0.01, "greedy", maximize=True),
    "flow, s = 16": lambda p: nk.orthogonal.StochasticFlow(p, 0.01, 16, scale="none", maximize=True),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("orthogonal_pca.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    X = torch.from_numpy(load_digits().data).float()
    X = X - X.mean(0)
    total = float(torch.linalg.svdvals(X)[: options.k].square().sum())
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    print(f"share of the variance of the first {options.k} principal components")
    for name, build in METHODS.items():
        W = torch.nn.Parameter(haar_orthogonal(X.shape[1], options.k, random_state=0))
        optimizer, shares = build([W]), []
        generator = torch.Generator().manual_seed(0)
        for _ in range(options.steps):
            rows = torch.randint(len(X), (128,), generator=generator)
            optimizer.zero_grad()
            ((X[rows] @ W) ** 2).sum().div(len(rows) * 20).backward()
            optimizer.step()
            with torch.no_grad():
                shares.append(float(((X @ W) ** 2).sum()) / total)
        print(f"{name:28}{shares[-1]:.4f}")
        axes.plot(shares, label=name)
    axes.set(xlabel="step", ylabel="share of the best variance", title=f"PCA on St({X.shape[1]}, {options.k})")
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
