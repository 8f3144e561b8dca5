"""Find a hidden rotation from pairs of points, by every method of the engine, and by the closed form.

python examples/orthogonal_procrustes.py
"""

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

import nearkin as nk
from nearkin.linalg.orthonormal import nearest_orthogonal

METHODS = {
    "Riemannian, taylor": lambda p: nk.orthogonal.RiemannianDescent(p, lr=0.5, retraction="taylor"),
    "Riemannian, exp": lambda p: nk.orthogonal.RiemannianDescent(p, lr=0.5, retraction="exp"),
    "Givens greedy, 8 matchings": lambda p: nk.orthogonal.GivensDescent(p, lr=0.5, selection="greedy", n_matchings=8),
    "Givens greedy, exact angles": lambda p: nk.orthogonal.GivensDescent(p, lr=1.0, selection="greedy", angle="exact"),
    "flow, s = d / log d": lambda p: nk.orthogonal.StochasticFlow(p, 0.5, "d/log d", scale="none"),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("orthogonal_procrustes.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    d = options.d
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(4 * d, d, generator=generator)
    W = torch.randn(d, d, generator=generator)
    W = W - W.T
    R = torch.matrix_exp(2 * W / torch.linalg.matrix_norm(W, 2))  # planes turn by up to 2 radians
    B = A @ R + 0.1 * torch.randn(4 * d, d, generator=generator)

    # ||A X||_F does not depend on an orthogonal X: the objective is linear, which exact angles want to see
    linear, constant = A.T @ B / len(A), float((A**2).sum() + (B**2).sum()) / (2 * len(A))

    def loss(X: torch.Tensor) -> torch.Tensor:  # ||A X - B||_F^2 / (2 n)
        return constant - (X * linear).sum()

    best = float(loss(nearest_orthogonal(linear, special=True)))
    print(f"closed form (one SVD): loss {best:.5f}\n{'':30}{'loss':>10}{'ms/step':>10}")
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, build in METHODS.items():
        X = torch.nn.Parameter(torch.eye(d))
        optimizer, history = build([X]), []
        start = time.perf_counter()
        for _ in range(options.steps):
            optimizer.zero_grad()
            value = loss(X)
            value.backward()
            optimizer.step()
            history.append(float(value.detach()) - best)
        spent = time.perf_counter() - start
        print(f"{name:30}{float(loss(X.detach())):10.5f}{1e3 * spent / options.steps:10.2f}")
        axes.semilogy(history, label=name)
    axes.set(xlabel="step", ylabel="loss above the closed form", title=f"Orthogonal Procrustes, d = {d}")
    axes.legend(fontsize=8)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
