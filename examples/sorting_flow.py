"""Sort numbers by a flow on O(d): which integrator stays on the manifold, and which one sorts? (flows, section 9.3,
Table 2)

    python examples/sorting_flow.py

max tr(N X^T Q X) over O(16) with N = diag(16, ..., 1) and Q = diag(q): at the maximum X is the permutation that sorts q
in decreasing order. The paper does not give the range of q, on which its table depends: here q is uniform on [0, 1] and
time runs to 50. Two things differ from the paper. Its eq. 11 as printed descends and sorts the other way; the sign is
changed here. Its "exact" integrator fails with NaN at long steps because of a truncated Taylor series. The last rows
compare that series with the true exponential, which never leaves O(d), and with Jacobi's rule, which maximises each
pair exactly and needs no step length.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from nearkin.linalg.givens import rotate_columns
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal.matching import round_robin

D = 16
N = torch.arange(D, 0, -1, dtype=torch.float64)


def ascent(X: Tensor, q: Tensor) -> Tensor:
    """Omega (b, d, d) of X <- X exp(eta Omega): X^T Q X N - N X^T Q X, half the right skew gradient."""
    M = X.mT @ (q[:, :, None] * X)
    return M * (N[None, None, :] - N[None, :, None])


def exact_step(X: Tensor, q: Tensor, eta: float, generator: torch.Generator) -> Tensor:
    return X @ torch.matrix_exp(eta * ascent(X, q))


def taylor_step(X: Tensor, q: Tensor, eta: float, generator: torch.Generator) -> Tensor:
    """The exponential by eight terms of its series: what breaks at long steps."""
    Omega = eta * ascent(X, q)
    total = term = torch.eye(D, dtype=X.dtype).expand_as(X)
    for order in range(1, 9):
        term = term @ Omega / order
        total = total + term
    return X @ total


def stochastic_step(X: Tensor, q: Tensor, eta: float, generator: torch.Generator) -> Tensor:
    """A uniform matching of a round-robin (non-intersecting, s = 2): p = 1 / (d - 1), angles d - 1 times larger."""
    pairs = ROUNDS[torch.randint(len(ROUNDS), (len(X),), generator=generator)]
    Omega = ascent(X, q)
    entries = torch.stack([W[p[:, 0], p[:, 1]] for W, p in zip(Omega, pairs, strict=True)])
    return rotate_columns(X, pairs, -(D - 1) * eta * entries)  # R[i, j] = -sin(theta)


def jacobi_step(X: Tensor, q: Tensor, eta: float, generator: torch.Generator) -> Tensor:
    """The same pairs, each by the angle that gives the axis with the larger n the larger value: no step length."""
    pairs = ROUNDS[torch.randint(len(ROUNDS), (len(X),), generator=generator)]
    M = X.mT @ (q[:, :, None] * X)
    index = torch.arange(len(X))[:, None]
    i, j = pairs[..., 0], pairs[..., 1]
    theta = torch.atan2(2 * M[index, i, j], M[index, i, i] - M[index, j, j]) / 2
    return rotate_columns(X, pairs, theta + torch.where(N[i] > N[j], 0.0, torch.pi / 2))


ROUNDS = round_robin(D)
INTEGRATORS = {
    "stochastic, s = 2": stochastic_step,
    "exact": exact_step,
    "Taylor, 8 terms": taylor_step,
    "Jacobi angles": jacobi_step,
}


def sorted_share(X: Tensor, q: Tensor) -> float:
    """The share of pairs i < j with p_i > p_j, p the permutation of q nearest to X."""
    shares = []
    for matrix, values in zip(X, q, strict=True):
        if not float(matrix.abs().max()) < 1e6:  # blown up, or NaN
            shares.append(0.0)
            continue
        rows, columns = linear_sum_assignment(-(matrix.numpy() ** 2))
        p = torch.empty(D, dtype=values.dtype)
        p[columns] = values[rows]
        above = torch.triu(torch.ones(D, D, dtype=torch.bool), 1)
        shares.append(float((p[:, None] > p[None, :])[above].double().mean()))
    return sum(shares) / len(shares)


def integrate(step, eta: float, time: float, n_runs: int) -> tuple[float, float]:
    """Return (median of ||X X^T - I||_F, share of sorted pairs) over runs with different q and X(0)."""
    generator = torch.Generator().manual_seed(0)
    q = torch.rand(n_runs, D, generator=generator, dtype=torch.float64)
    X = haar_orthogonal(n_runs, D, D, random_state=1, dtype=torch.float64)
    for _ in range(round(time / eta)):
        X = step(X, q, eta, generator)
        if not bool(torch.isfinite(X).all()):
            break
    errors = torch.linalg.matrix_norm(X @ X.mT - torch.eye(D, dtype=X.dtype))
    return float(errors.nan_to_num(torch.inf).median()), sorted_share(X, q)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etas", default="0.01,0.02,0.05,0.1,0.15,0.5,2")
    parser.add_argument("--time", type=float, default=50.0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("sorting_flow.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    etas = [float(eta) for eta in options.etas.split(",")]
    print(f"d = {D}, q uniform on [0, 1], time {options.time:g}, {options.runs} runs")
    print(f"{'eta':28}" + "".join(f"{eta:>10g}" for eta in etas))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, step in INTEGRATORS.items():
        results = [integrate(step, eta, options.time, options.runs) for eta in etas]
        errors, shares = zip(*results, strict=True)
        print(f"{name:18}{'error':10}" + "".join(f"{error:>10.1e}" for error in errors))
        print(f"{'':18}{'sorted':10}" + "".join(f"{share:>10.3f}" for share in shares))
        left.loglog(etas, [max(error, 1e-16) if error < 1e10 else float("nan") for error in errors], "o-", label=name)
        right.semilogx(etas, shares, "o-", label=name)
    left.set(xlabel="step length", ylabel="||X X^T - I||_F", title="On the manifold?")
    right.set(xlabel="step length", ylabel="share of pairs in order", title="Sorted?")
    right.legend(fontsize=7)
    figure.savefig(options.out, dpi=130)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
