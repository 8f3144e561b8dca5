"""Stochastic flows on O(d): Tables 1, 2, Figures 3 to 6 and Theorem 5.1 (sections 5, 6, appendices 9.2, 9.3).

python -m benchmarks.papers.flows
"""

from collections import Counter
from statistics import mean, pstdev
from typing import Any

import numpy as np

from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured, show
from benchmarks.table import Results, number
from nearkin._fields import counted

TITLE = "Flows"
TABLE_1 = {  # 10^4 operations a step: exact (more than), s = 2 and s = r* (less than)
    "ES-200": (1600, 68, None),
    "ES-400": (12_800, 272, None),
    "MNIST": (200, 8.5, 43),
    "CIFAR": (49_000, 2000, 14_000),
}
TABLE_2 = {  # eta: share of pairs in order, stochastic and exact (whose error is NaN from 0.001 on)
    0.0001: (1.0, 0.72),
    0.00015: (1.0, 0.52),
    0.001: (1.0, 0.0),
    0.0015: (0.8, 0.0),
    0.01: (0.67, 0.0),
    0.015: (0.6, 0.0),
    0.1: (0.59, 0.0),
    0.15: (0.58, 0.0),
}


def table_1(results: Results) -> Figure:
    """Operations of one update."""
    name, source = "Table 1", "orthogonal_flops, papers_flows_counts"
    found, recount = results.read("orthogonal_flops"), results.read("papers_flows_counts")
    if not found or not recount:
        return not_measured(
            name, "Run `python -m benchmarks orthogonal flops`, `python -m benchmarks.papers --run flows_counts`."
        )
    [recount] = recount
    claims, hidden = [], recount["MNIST hidden"]
    for setting, (exact, two, star) in TABLE_1.items():
        ours = hidden if setting == "MNIST" else {
            "exact": found["exp"][setting], "s = 2": found["flow s=2"][setting],
            "s = r*": found["flow s=d/log d"][setting]
        }  # fmt: skip
        claims += [
            Claim(
                f"{setting}: s = 2, 10^4 operations",
                f"< {two:,}",
                number(ours["s = 2"] / 1e4),
                ours["s = 2"] / 1e4 < two,
            ),
            Claim(f"{setting}: exact", f"> {exact:,}", number(ours["exact"] / 1e4), ours["exact"] / 1e4 > exact),
        ]
        if star:
            claims.append(
                Claim(
                    f"{setting}: s = d / log d",
                    f"< {star:,}",
                    number(ours["s = r*"] / 1e4),
                    ours["s = r*"] / 1e4 < star,
                )
            )
    for d, periods in recount["ortinit"].items():
        flow = recount["flow s=2"][d]
        claims += [
            Claim(f"ES-{d}: ortinit with p = {p}", f"> {printed / 1e4:,.0f}", number(counted / 1e4), counted > printed)
            for p, (printed, counted) in periods.items()
        ]
        cheapest = min(counted for _, counted in periods.values())
        claims.append(
            Claim(f"ES-{d}: s = 2 is cheaper than ortinit with every p up to 20", "cheaper",
                  f"{number(flow / 1e4)} against {number(cheapest / 1e4)} at p = 20", flow < cheapest)
        )  # fmt: skip
    why = (
        "Counted while a step runs, the skew gradient included; MNIST is the hidden 100 x 100 layer alone, as the "
        "paper's 200 = 2 d^3 shows; a projection of ortinit is a QR with its factor formed."
    )
    d, s = 100, 22
    decides = (
        f"What s = d / log d is said to take: on MNIST the product of the blocks with X alone is 2 d^2 s = "
        f"{2 * d * d * s / 1e4:.0f}, the paper's 43; the entries of the blocks and their exponentials, which it leaves "
        f"out, bring ours to {number(hidden['s = r*'] / 1e4)}."
    )
    return Figure(name, tuple(claims), why, source, decides)


@from_json("Table 2", "papers_flows_sorting", "python -m benchmarks.papers --run flows_sorting")
def table_2(found: Any) -> Findings:
    """Sorting by a flow: on the manifold, and in order?"""
    rows = {(row["integrator"], row["eta"]): row for row in found}
    flow, exact = "stochastic, s = 2", "exact"
    etas = [eta for eta in TABLE_2 if (flow, eta) in rows]
    series = [name for name in dict.fromkeys(name for name, _ in rows) if name.startswith("Taylor")]
    worst = {method: max(rows[method, eta]["error"] for eta in etas) for method in (flow, exact)}
    broken = {name: sum(rows[name, eta]["broken"] for eta in etas if (name, eta) in rows) for name in (exact, *series)}
    shares = {eta: rows[flow, eta]["sorted"] for eta in etas}
    claims = [
        Claim("the flow stays on O(d) at every step length, largest error", "2.0e-12", f"{worst[flow]:.1e}",
              worst[flow] < 1e-11),
        Claim("the flow sorts at short steps: share in order at the shortest", "1.0", f"{shares[min(etas)]:.2f}",
              shares[min(etas)] > 0.99),
        Claim("and at .015, .1 and .15 hardly better than chance (.5, within .1)", "0.60, 0.59, 0.58",
              ", ".join(f"{shares[eta]:.2f}" for eta in (0.015, 0.1, 0.15)),
              all(abs(shares[eta] - 0.5) <= 0.1 for eta in (0.015, 0.1, 0.15))),
        Claim("the exact integrator is NaN from 0.001 on, largest error of the true exponential", "NaN",
              f"{worst[exact]:.1e}", worst[exact] > 1e-3),
        Claim("a series in place of the exponential blows up, of 8, 20 and 100 terms, runs", "NaN",
              ", ".join(f"{broken[name]}" for name in series), any(broken[name] for name in series)),
        *(
            Claim(f"step {eta:g}: share in order, flow / exact", " / ".join(f"{share:.2f}" for share in TABLE_2[eta]),
                  f"{shares[eta]:.2f} / {rows[exact, eta]['sorted']:.2f}")
            for eta in etas
        ),
        *(
            Claim(f"step {eta:g}: error of a series of 8 / 20 / 100 terms, median", "",
                  " / ".join(finite(rows[name, eta]["error"]) for name in series))
            for eta in etas if (series[0], eta) in rows
        ),
    ]  # fmt: skip
    why = (
        f"q a random permutation of 1 to 16 (its range the paper does not give), d = 16, {found[0]['of']} runs of time "
        "50, steps from 1e-4 on: 1e-5 is five million iterations a run."
    )
    long = min(eta for eta in etas if (series[0], eta) in rows and rows[series[0], eta]["broken"])
    decides = (
        f"What the exponential was: the true one is {worst[exact]:.1e} from O(d) at worst and never NaN; eight terms "
        f"of its series are NaN or beyond 1e6 in {rows[series[0], long]['broken']} of {found[0]['of']} runs at "
        f"{long:g}, a hundred in none."
    )
    return claims, why, decides


def finite(error: float) -> str:
    return f"{error:.1e}" if error < 1e6 else "blown up"


@from_json("Fig. 3", "papers_flows_rl", "python -m benchmarks.papers --run flows_rl")
def figure_3(found: Any) -> Findings:
    """Reinforcement learning."""
    ends: dict[tuple[str, str], list[float]] = {}
    for row in found:
        if row["factor"] == 1.0:
            ends.setdefault((row["task"], row["method"]), []).append(mean(row["curve"][-5:]))
    tasks = list(dict.fromkeys(task for task, _ in ends))

    def shown(task: str, method: str) -> str:
        return f"{mean(ends[task, method]):.0f} ± {pstdev(ends[task, method]):.0f}"

    def close(task: str, one: str, other: str) -> bool:
        """Whether the first is not behind the second by more than both spreads together."""
        slack = pstdev(ends[task, one]) + pstdev(ends[task, other])
        return mean(ends[task, one]) >= mean(ends[task, other]) - slack

    claims = []
    for task in tasks:
        claims += [
            Claim(f"{task}: stoch-ortRNN not behind exact-ortRNN", "did well, in particular in comparison",
                  f"{shown(task, 'stoch-ortRNN')} against {shown(task, 'exact-ortRNN')}",
                  close(task, "stoch-ortRNN", "exact-ortRNN")),
            Claim(f"{task}: stoch-ortRNN ahead of vanRNN", "ahead",
                  f"{shown(task, 'stoch-ortRNN')} against {shown(task, 'vanRNN')}",
                  mean(ends[task, "stoch-ortRNN"]) > mean(ends[task, "vanRNN"])),
            Claim(f"{task}: ortinit-vanRNN, affine", "", f"{shown(task, 'ortinit-vanRNN')}, {shown(task, 'affine')}"),
        ]  # fmt: skip
    seeds, generations = len(ends[tasks[0], "vanRNN"]), len(found[0]["curve"])
    why = (
        f"CartPole, Acrobot and Pendulum for MuJoCo's tasks, d = 200, {seeds} seeds (the paper: ten), "
        f"{generations} generations of 32 policies on one thread for 800 machines; h = |x|; ortinit projects every "
        "five steps; also an affine policy."
    )
    one, tuned = {key: mean(of) for key, of in ends.items()}, best_steps(found)
    for task in tasks if tuned else ():
        shown_best = ", ".join(f"{method} {value:.0f} (x {factor:g})" for (of, method), (value, factor) in tuned.items()
                               if of == task)  # fmt: skip
        claims.append(Claim(f"{task}: with the best of three step lengths of W, first seeds", "", shown_best))

    def wins(of: dict[tuple[str, str], float]) -> int:
        return sum(of[task, "stoch-ortRNN"] > of[task, "vanRNN"] for task in tasks)

    tried = counted(min(Counter((row["task"], row["method"], row["factor"]) for row in found).values()), "seed")
    affine = sum(one[task, "affine"] >= one[task, "stoch-ortRNN"] for task in tasks)
    best = ""
    if tuned:
        ahead = wins({key: of[0] for key, of in tuned.items()})
        best = f", and on {ahead} with the best of three for each ({tried} tried)"
    decides = (
        "The tasks, none of which needs a memory of 200 units: affine is level with or ahead of stoch-ortRNN on "
        f"{affine} of {len(tasks)}. Stoch-ortRNN is ahead of vanRNN on {wins(one)} of {len(tasks)} with one step "
        f"length of W{best}."
    )
    return claims, why, decides


def best_steps(found: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float]]:
    """(task, method) -> the best mean return over the first seeds, and the factor of the step length that has it."""
    seeds = {row["seed"] for row in found if row["factor"] != 1.0}
    ends: dict[tuple[str, str, float], list[float]] = {}
    for row in found:
        if row["seed"] in seeds and row["method"] != "affine":
            ends.setdefault((row["task"], row["method"], row["factor"]), []).append(mean(row["curve"][-5:]))
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for (task, method, factor), values in ends.items():
        best[task, method] = max(best.get((task, method), (float("-inf"), 1.0)), (mean(values), factor))
    return best


@from_json("Fig. 4", "papers_flows_mlp", "python -m benchmarks.papers --run flows_mlp")
def figure_4_printed(found: Any) -> Findings:
    """A tanh network on MNIST, its hidden layer alone kept orthogonal."""
    rows = {row["method"]: row for row in found}
    flow, exact, vanilla = (rows[method] for method in ("flow, s = 2", "exact", "vanilla SGD"))
    shown = {method: f"{row['test']:.4f} ± {row['test std']:.4f}" for method, row in rows.items()}
    claims = [
        Claim("s = 2 is competitive with exact, test accuracy (within .005)", "competitive",
              f"{shown['flow, s = 2']} against {shown['exact']}", flow["test"] > exact["test"] - 0.005),
        Claim("s = 2 outperforms vanilla training, test accuracy", "outperforms",
              f"{shown['flow, s = 2']} against {shown['vanilla SGD']}", flow["test"] > vanilla["test"]),
        *(
            Claim(f"also: {method}", "", f"{shown[method]}; lr {row['lr']:.3g}, hidden x {row['of hidden']:.3g}")
            for method, row in ((name, {**row, "of hidden": row["of the hidden layer"]}) for name, row in rows.items())
        ),
    ]  # fmt: skip
    why = (
        f"All {vanilla['images']:,} images, {vanilla['epochs']} epochs of 128, three seeds; only the hidden 100 x 100 "
        "layer is orthogonal; two learning rates from a climb that ends inside its grid, on 12,000 images."
    )
    start = rows["vanilla SGD, orthogonal start"]["test"]
    decides = (
        "How much is lost by turning only: with one layer held the flow is "
        f"{100 * (flow['test'] - vanilla['test']):+.2f} points from vanilla training, with both (the row below) it was "
        f"4.7 behind; an orthogonal start alone, then free, is {100 * (start - vanilla['test']):+.2f}."
    )
    return claims, why, decides


@from_json("Fig. 4, both layers", "papers_mlp", "python -m benchmarks.papers --run mlp")
def figure_4(found: Any) -> Findings:
    """A tanh network on MNIST, both of its layers kept orthogonal."""
    rows = {row["method"]: row for row in found}
    flow, exact, vanilla = (rows[method] for method in ("flow, s = 2", "exact", "vanilla SGD"))
    shown = {method: f"{row['test']:.3f} ± {row['test std']:.3f}" for method, row in rows.items()}
    claims = (
        Claim("s = 2 is competitive with exact, test accuracy (within 0.01)", "competitive",
              f"{shown['flow, s = 2']} against {shown['exact']}", flow["test"] > exact["test"] - 0.01),
        Claim("s = 2 outperforms vanilla training, test accuracy", "outperforms",
              f"{shown['flow, s = 2']} against {shown['vanilla SGD']}", flow["test"] > vanilla["test"]),
        Claim("for comparison: Givens greedy, s = d / log d", "",
              f"{shown['Givens greedy']}, {shown['flow, s = d / log d']}"),
    )  # fmt: skip
    why = f"Ours: {vanilla['images']:,} images, {vanilla['epochs']} epochs, three seeds, one grid for all step lengths."
    decides = (
        f"The first layer, 784 x 100, that can only turn fits less: {100 * (flow['test'] - vanilla['test']):+.1f} "
        "points from vanilla training; two layers have no gradients to rescue."
    )
    return claims, why, decides


@from_json("Fig. 5", "papers_flows_convnet", "python -m benchmarks.papers --run flows_convnet")
def figure_5(found: Any) -> Findings:
    """A deep plain network: what the start gives, and what staying orthogonal does."""
    rows = {row["method"]: row for row in found}
    test = {method: row["test"] for method, row in rows.items()}
    shown = {method: f"{row['test']:.3f} ± {row['test std']:.3f} (lr {row['lr']:.3g})" for method, row in rows.items()}
    free, flow = "SGD, orthogonal start", "flow, s = d / log d"
    claims = [
        Claim("orthogonal optimisation improves training, test accuracy", "improves",
              f"{shown[flow]} against SGD's {shown['SGD']}", test[flow] > test["SGD"] + 0.02),
        Claim("s = d / log d is competitive with exact (within .03)", "competitive",
              f"{shown[flow]} against {shown['exact']}",
              test[flow] > test["exact"] - 0.03),
        Claim("s = 2 is too noisy", "too noisy", f"{shown['flow, s = 2']} against {shown[flow]}",
              test["flow, s = 2"] < test[flow] - 0.02),
        Claim("SGD from an orthogonal start, then free", "", shown[free]),
    ]  # fmt: skip
    why = (
        "Sixteen plain tanh convolutions on scikit-learn's digits, 6 epochs, three seeds, each method's learning rate "
        "from a climb, for 110 layers on CIFAR-10's images, which are not at hand."
    )
    decides = (
        f"The start: from an orthogonal one plain SGD has {test[free]:.3f}, from the usual one {test['SGD']:.3f}, and "
        f"staying orthogonal {test['exact']:.3f} (exact) and {test[flow]:.3f} (s = d / log d)."
    )
    return claims, why, decides


def of_noise(d: int, s: int) -> float:
    """rho of a skew matrix of Gaussian noise: the sum of all magnitudes over its d (s - 1) / 2 largest."""
    magnitudes = np.sort(np.abs(np.random.default_rng(0).standard_normal(d * (d - 1) // 2)))[::-1]
    return float(magnitudes.sum() / magnitudes[: d * (s - 1) // 2].sum())


@from_json("Fig. 6", "papers_entries", "python -m benchmarks.papers --run entries")
def figure_6(found: Any) -> Findings:
    """How the entries of Omega spread, along evolution strategies."""
    [found] = found
    d = found["d"]
    rho = {int(s): values for s, values in found["rho"].items()}
    drift = max(max(values) / min(values) for values in rho.values())
    factor = {s: mean(values) * s / d for s, values in rho.items()}
    peak = (d - 1) / mean(rho[2])
    noise = (d - 1) / of_noise(d, 2)
    claims = (
        Claim("rho hardly changes over the iterations, largest over smallest (at most 1.2)", "almost constant",
              f"{drift:.2f}", drift <= 1.2),
        Claim("rho is d/s times one constant, for s = 2 to 50 (within a factor of 2)", "not too small a constant",
              f"{min(factor.values()):.2f} to {max(factor.values()):.2f}",
              max(factor.values()) <= 2 * min(factor.values())),
        Claim("the entries of Omega are of very similar size: the d/2 largest over the mean (at most 2)",
              "very similar", f"{peak:.1f}", peak <= 2),
        Claim("rho of s = 2: first generation, mean of the later ones, Gaussian noise", "",
              f"{rho[2][0]:.1f}, {mean(rho[2][1:]):.1f}, {of_noise(d, 2):.1f}"),
    )  # fmt: skip
    why = f"CartPole from positions for Humanoid, d = {d}, {len(rho[2])} generations, one seed."
    decides = (
        f"Omega is noise from the first generation on: its d/2 largest entries are {peak:.1f} times the mean, those of "
        f"a Gaussian skew matrix {noise:.1f}, so that neither start nor optimisation shows; the bound that speeds up "
        "sampling holds for any such matrix."
    )
    return claims, why, decides


@from_json("Theorem 5.1", "papers_flows_theorem", "python -m benchmarks.papers --run flows_theorem")
def theorem(found: Any) -> Findings:
    """The theorem's conditions and its bound on a case whose constants are known."""
    [found] = found
    claims = [
        Claim("E hat Omega = Omega over all matchings, largest difference", "0", f"{found['bias']:.1e}",
              found["bias"] < 1e-10),
        Claim("the gradient is Lipschitz on O(d), largest ratio against L (eq. 10)", "at most L",
              f"{found['largest ratio']:.1f} against {found['L']:.1f}", found["largest ratio"] <= found["L"]),
        Claim("sigma^2 bounds E |hat Omega|^2 at every point tried", "at most sigma^2",
              f"{number(found['largest E |estimate|^2'])} against {number(found['sigma^2'])}",
              found["largest E |estimate|^2"] <= found["sigma^2"]),
        Claim("the least mean squared gradient is below the bound", "at most",
              f"{number(found['left'])} against {number(found['right'])}", found["left"] <= found["right"]),
    ]  # fmt: skip
    why = (
        f"tr(A X B X^T) over O({found['d']}), s = 2 unbiased, {found['chains']} chains of {found['steps']} steps of "
        "the length at which the bound is least."
    )
    decides = f"The bound is {found['right'] / found['left']:.0f} times what the chains reach: true, and loose."
    return claims, why, decides


FIGURES: Paper = (
    *(table_1, table_2, figure_3, figure_4_printed, figure_4, figure_5, figure_6),
    theorem,
)

if __name__ == "__main__":
    show(TITLE, FIGURES)
