"""Stochastic flows on O(d): Tables 1, 2 and Figures 3 to 6 (section 6, appendices 9.2 and 9.3).

python -m benchmarks.papers.flows
"""

from statistics import mean
from typing import Any

from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured, show
from benchmarks.table import Results, number

TITLE = "Flows"
TABLE_1 = {  # 10^4 operations a step: exact (more than), s = 2 and s = r* (less than)
    "ES-200": (1600, 68, None),
    "ES-400": (12_800, 272, None),
    "MNIST": (200, 8.5, 43),
    "CIFAR": (49_000, 2000, 14_000),
}
TABLE_2 = {  # eta: share of pairs in order, stochastic and exact (whose error is NaN from 0.001 on)
    0.001: (1.0, 0.0),
    0.0015: (0.8, 0.0),
    0.01: (0.67, 0.0),
    0.015: (0.6, 0.0),
    0.1: (0.59, 0.0),
    0.15: (0.58, 0.0),
}


@from_json("Table 1", "orthogonal_flops", "python -m benchmarks orthogonal flops")
def table_1(found: Any) -> Findings:
    """Operations of one update."""
    claims = []
    for setting, (exact, two, star) in TABLE_1.items():
        ours = {method: found[row][setting] / 1e4 for method, row in
                {"exact": "exp", "s = 2": "flow s=2", "s = r*": "flow s=d/log d"}.items()}  # fmt: skip
        claims += [
            Claim(f"{setting}: s = 2, 10^4 operations", f"< {two:,}", number(ours["s = 2"]), ours["s = 2"] < two),
            Claim(f"{setting}: exact", f"> {exact:,}", number(ours["exact"]), ours["exact"] > exact),
        ]
        if star:
            claims.append(
                Claim(f"{setting}: s = d / log d", f"< {star:,}", number(ours["s = r*"]), ours["s = r*"] < star)
            )
    why = (
        "We count the skew gradient too, and on MNIST both matrices, where the paper's 200 is 2 d^3 at d = 100 and "
        "leaves the 784 x 100 one out; elsewhere s = 2 is as cheap as claimed, s = d / log d is not."
    )
    return claims, why


@from_json("Table 2", "papers_sorting", "python -m benchmarks.papers --run sorting")
def table_2(found: Any) -> Findings:
    """Sorting by a flow: on the manifold, and in order?"""
    rows = {(row["integrator"], row["eta"]): row for row in found}
    flow, exact = "stochastic, s = 2", "exact"
    worst = {method: max(rows[method, eta]["error"] for eta in TABLE_2) for method in (flow, exact)}
    longest = max(eta for method, eta in rows if method == "Taylor, 8 terms")
    broken = rows["Taylor, 8 terms", longest]["error"]
    short, long = (rows[flow, eta]["sorted"] for eta in (min(TABLE_2), max(TABLE_2)))
    claims = [
        Claim("the flow stays on O(d) at every step length, largest error", "1.8e-12", f"{worst[flow]:.1e}",
              worst[flow] < 1e-11),
        Claim("the flow sorts worse at long steps, 0.001 and 0.15", "1.0 and 0.58", f"{short:.2f} and {long:.2f}",
              long < 0.75 * short),
        Claim("the exact integrator is NaN from 0.001 on, largest error", "NaN", f"{worst[exact]:.1e}",
              worst[exact] > 1e-3),
        *(
            Claim(f"step {eta:g}: share in order, flow / exact", " / ".join(f"{share:.2f}" for share in paper),
                  f"{rows[flow, eta]['sorted']:.2f} / {rows[exact, eta]['sorted']:.2f}")
            for eta, paper in TABLE_2.items()
        ),
        Claim(f"a series of eight terms in place of the exponential, step {longest:g}: error", "",
              f"{broken:.1e}" if broken < 1e6 else "blown up"),
    ]  # fmt: skip
    why = (
        "d = 16 and q uniform on [0, 1], neither of which the paper gives: the true exponential never leaves O(d), a "
        "truncated series (appendix 9.1.2 has one) does at long steps; those below 0.001 take too many iterations."
    )
    return claims, why


def figure_3(results: Results) -> Figure:
    """Reinforcement learning."""
    del results
    return not_measured(
        "Fig. 3", "Humanoid and the control suite are no matter of minutes of one core; "
        "`examples/evolution_strategies.py` asks the same in small."
    )  # fmt: skip


@from_json("Fig. 4", "papers_mlp", "python -m benchmarks.papers --run mlp")
def figure_4(found: Any) -> Findings:
    """A tanh network on MNIST."""
    rows = {row["method"]: row for row in found}
    flow, exact, vanilla = (rows[method] for method in ("flow, s = 2", "exact", "vanilla SGD"))
    shown = {method: f"{row['test']:.3f} ± {row['test std']:.3f}" for method, row in rows.items()}
    claims = (
        Claim("s = 2 is competitive with exact, test accuracy (within 0.01)", "competitive",
              f"{shown['flow, s = 2']} against {shown['exact']}", flow["test"] > exact["test"] - 0.01),
        Claim("s = 2 outperforms vanilla training, test accuracy", "outperforms",
              f"{shown['flow, s = 2']} against {shown['vanilla SGD']}", flow["test"] > vanilla["test"]),
        Claim("beside them: Givens greedy, s = d / log d", "",
              f"{shown['Givens greedy']}, {shown['flow, s = d / log d']}"),
    )  # fmt: skip
    why = (
        f"{vanilla['images']:,} images, {vanilla['epochs']} epochs, all step lengths from one grid; the paper does not "
        "give its own; two layers have no gradients to rescue, and a layer that can only turn fits less."
    )
    return claims, why


def figure_5(results: Results) -> Figure:
    """A deep plain network on CIFAR-10."""
    del results
    return not_measured(
        "Fig. 5", "CIFAR-10 is not at hand, and 110 layers are no matter of minutes of one core; "
        "`examples/plain_convnet.py` asks the same in small."
    )  # fmt: skip


@from_json("Fig. 6", "papers_entries", "python -m benchmarks.papers --run entries")
def figure_6(found: Any) -> Findings:
    """How the entries of Omega spread, along evolution strategies."""
    d = found["d"]
    rho = {int(s): values for s, values in found["rho"].items()}
    drift = max(max(values) / min(values) for values in rho.values())
    factor = {s: mean(values) * s / d for s, values in rho.items()}
    peak = (d - 1) / mean(rho[2])
    claims = (
        Claim("rho hardly changes over the iterations, largest over smallest (at most 1.2)", "almost constant",
              f"{drift:.2f}", drift <= 1.2),
        Claim("rho is d/s times one constant, for s = 2 to 50 (within a factor of 2)", "not too small a constant",
              f"{min(factor.values()):.2f} to {max(factor.values()):.2f}",
              max(factor.values()) <= 2 * min(factor.values())),
        Claim("the entries of Omega are of very similar size: the d/2 largest over the mean (at most 2)",
              "very similar", f"{peak:.1f}", peak <= 2),
    )  # fmt: skip
    why = (
        f"CartPole from positions for Humanoid, d = {d}, {len(rho[2])} generations: the bound that speeds up sampling "
        "holds; the entries spread more widely than the paper infers from it."
    )
    return claims, why


FIGURES: Paper = (table_1, table_2, figure_3, figure_4, figure_5, figure_6)

if __name__ == "__main__":
    show(TITLE, FIGURES)
