"""Stochastic flows on O(d): Tables 1, 2 and Figures 3 to 6 (sections 5, 6, appendices 9.2, 9.3)."""

from collections import Counter
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.judging import Gap, interval, paired, told, unpaired
from benchmarks.papers.record import Claim, Findings, Paper, from_json
from benchmarks.table import number
from nearkin._fields import counted

TITLE = "Flows"
SEEDS = 3  # of Figures 4 and 5, whose means and deviations are stored
POINTS = ("points ahead", "points behind", "", 2)  # words of a gap
TABLE_1 = {  # 10^4 operations a step: s = 2, exact and s = r*
    "ES-200": ((68, "<"), (1600, ">")),
    "ES-400": ((272, "<"), (12_800, ">")),
    "MNIST": ((8.5, "<"), (200, ">"), (43, "<")),
    "CIFAR": ((2000, "<"), (49_000, ">"), (14_000, "<")),
}
TABLE_2 = {  # eta: share of pairs in order, stochastic and exact (whose error is NaN from 0.001 on)
    0.00005: (1.0, 0.75),
    0.0001: (1.0, 0.72),
    0.00015: (1.0, 0.52),
    0.001: (1.0, 0.0),
    0.0015: (0.8, 0.0),
    0.01: (0.67, 0.0),
    0.015: (0.6, 0.0),
    0.1: (0.59, 0.0),
    0.15: (0.58, 0.0),
}


@from_json("Table 1", "papers_flows_counts")
def table_1(found: Any) -> Findings:
    """Operations of one update; "ortinit" is a free step and every p-th a projection, a QR with its factor formed."""
    ours, claims = {row["setting"]: row for row in found}, list[Claim]()
    for setting, printed in TABLE_1.items():
        for method, (said, sign) in zip(("s = 2", "exact", "s = r*"), printed, strict=False):
            count = ours[setting][method]
            text = f"{setting}: {method.replace('r*', 'd / log d')}, 10^4 operations"
            holds = count / 1e4 < said if sign == "<" else count / 1e4 > said
            claims.append(Claim(text, f"{sign} {said:,}", number(count / 1e4), holds))
    for d in (200, 400):
        flow = ours[f"ES-{d}"]["s = 2"]
        for p in (20, 10, 8, 5, 4):
            said, here = (2 * d**3 / p + d**2) / 1e4, (8 / 3 * d**3 / p + 2 * d**2) / 1e4
            claims.append(Claim(f"ES-{d}: ortinit with p = {p}", f"> {said:,.0f}", number(here), here > said))
        here = (8 / 3 * d**3 / 20 + 2 * d**2) / 1e4
        claims.append(
            Claim(f"ES-{d}: s = 2 is cheaper than ortinit with every p up to 20", "cheaper",
                  f"{number(flow / 1e4)} against {number(here)} at p = 20", flow / 1e4 < here)
        )  # fmt: skip
    d, s = 100, 22
    why = (
        "Counted while a step runs, the skew gradient included; MNIST is the hidden 100 x 100 layer alone, as the "
        "paper's 200 = 2 d^3 shows; a projection of ortinit is a QR with its factor formed. The paper's 43 for "
        f"s = d / log d on MNIST is the product of the blocks with X alone, 2 d^2 s = {2 * d * d * s / 1e4:.0f}."
    )
    decides = (
        f"s = d / log d on MNIST: {number(ours['MNIST']['s = r*'] / 1e4)} with the blocks' entries and exponentials, "
        "which the paper's 43 leaves out."
    )
    return claims, why, decides


@from_json("Table 2", "papers_flows_sorting")
def table_2(found: Any) -> Findings:
    """Sorting by a flow: on the manifold, and in order?"""
    rows = {(row["integrator"], row["eta"]): row for row in found}
    flow, exact = "stochastic, s = 2", "exact"
    etas = [eta for eta in TABLE_2 if (flow, eta) in rows]
    worst = {method: max(rows[method, eta]["error"] for eta in etas) for method in (flow, exact)}
    shares = {(name, eta): 100 * np.array(row["sorted"]) for (name, eta), row in rows.items()}
    short, long = [eta for eta in etas if eta < 0.001], [eta for eta in etas if eta >= 0.015]
    gaps = {eta: paired(list(shares[flow, eta]), list(shares[exact, eta])) for eta in etas}
    claims = [
        Claim("the flow stays on O(d) at every step length, largest error", "2.0e-12", f"{worst[flow]:.1e}",
              worst[flow] < 1e-11),
        *(
            Claim(f"step {eta:g}: the flow sorts more pairs than the exact integrator, whose steps are finite",
                  " against ".join(f"{share:.2f}" for share in TABLE_2[eta]),
                  told(gaps[eta], "points more", "points less", ""), gaps[eta].ahead)
            for eta in short
        ),
        Claim("the exact integrator is NaN from 0.001 on and sorts nothing, largest error of the true exponential",
              "NaN", f"{worst[exact]:.1e}", worst[exact] > 1e-3),
        Claim("the flow sorts at short steps: share in order at the shortest", "1.0",
              f"{shares[flow, min(etas)].mean() / 100:.2f}", shares[flow, min(etas)].mean() > 99),
        Claim("and hardly better than chance, .5, at .015, .1 and .15 (interval within .1 of it)", "0.60, 0.59, 0.58",
              ", ".join(f"{shares[flow, eta].mean() / 100:.2f}" for eta in long),
              all(abs(gap.mean) + gap.half <= 10 for gap in (interval(list(shares[flow, eta] - 50)) for eta in long))),
        *(
            Claim(f"step {eta:g}: share in order, flow / exact", " / ".join(f"{share:.2f}" for share in TABLE_2[eta]),
                  f"{shares[flow, eta].mean() / 100:.2f} / {shares[exact, eta].mean() / 100:.2f}")
            for eta in etas
        ),
    ]  # fmt: skip
    why = (
        "q a random permutation of 1 to 16 (its range the paper does not give), d = 16, "
        f"{found[0]['of']} runs of time 50, paired; the paper's steps from 5e-5 on: 1e-5 is five million iterations a "
        "run and left out. What its NaN was the paper does not say; at 5e-5 to 1.5e-4 'exact' is a series of 20 terms, "
        "exact to rounding."
    )
    decides = (
        f"The true exponential is {worst[exact]:.1e} from O(d) at worst, never NaN; at 1e-4 it sorts "
        f"{shares[exact, 0.0001].mean() / 100:.2f}, the flow {shares[flow, 0.0001].mean() / 100:.2f}."
    )
    return claims, why, decides


@from_json("Fig. 3", "papers_flows_rl")
def figure_3(found: Any) -> Findings:
    """Reinforcement learning."""
    ends: dict[tuple[str, str], list[float]] = {}
    for row in sorted(found, key=lambda row: row["seed"]):
        if row["factor"] == 1.0:
            ends.setdefault((row["task"], row["method"]), []).append(mean(row["curve"][-5:]))
    tasks, points = list(dict.fromkeys(task for task, _ in ends)), ("ahead", "behind", "", 0)
    names = {"exact-ortRNN": "did well, in particular in comparison", "vanRNN": "ahead", "ortinit-vanRNN": "ahead"}
    claims, ahead = [], 0
    for task in tasks:
        for rival, paper in names.items():
            gap = paired(ends[task, "stoch-ortRNN"], ends[task, rival])
            ahead += gap.ahead
            claims.append(Claim(f"{task}: stoch-ortRNN's return is ahead of {rival}'s", paper, told(gap, *points),
                                gap.ahead))  # fmt: skip
        gap = paired(ends[task, "affine"], ends[task, "stoch-ortRNN"])
        claims.append(Claim(f"{task}: an affine policy against stoch-ortRNN", "inferior behaviour", told(gap, *points)))
    seeds, generations = len(ends[tasks[0], "vanRNN"]), len(found[0]["curve"])
    tuned = best_steps(found)
    tried = counted(min(Counter((row["task"], row["method"], row["factor"]) for row in found).values()), "seed")
    wins = sum(tuned[task, "stoch-ortRNN"][0] > tuned[task, "vanRNN"][0] for task in tasks) if tuned else 0
    affine = sum(mean(ends[task, "affine"]) >= mean(ends[task, "stoch-ortRNN"]) for task in tasks)
    why = (
        f"CartPole, Acrobot and Pendulum for MuJoCo's tasks, {seeds} paired seeds (the paper: ten), {generations} "
        "generations of 32 policies on one thread for 800 machines. h = |x| and hidden size 200 as in the paper, which "
        "has 400 as well; ortinit projects every p = 5 steps where its figure has p = 20. The mean of the last five "
        f"generations. With the best of three step lengths for each ({tried} tried) stoch-ortRNN is ahead of vanRNN on "
        f"{wins} of {len(tasks)} tasks; affine is level or ahead on {affine}: the tasks need no memory of 200 units."
    )
    decides = f"Ahead of a rival on {ahead} of {len(tasks) * len(names)}; no task here needs a memory of 200 units."
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


@from_json("Fig. 4", "papers_flows_mlp")
def figure_4(found: Any) -> Findings:
    """A tanh network on MNIST, its hidden layer alone kept orthogonal."""
    claims, gaps = of_mlp(found, 0.5)
    rows = {row["method"]: row for row in found}
    claims += [
        Claim(f"learning rates and places tried of {method}", "",
              f"lr {row['lr']:.3g}, hidden x {row['of the hidden layer']:.3g}, {row['tried']} tried")
        for method, row in rows.items()
    ]  # fmt: skip
    vanilla, start = rows["vanilla SGD"], "vanilla SGD, orthogonal start"
    alone = unpaired(spread_of(rows[start]), spread_of(vanilla), SEEDS, 100)
    claims.append(
        Claim("an orthogonal start alone is comparable to vanilla (section 6.1; within 0.5 points)", "comparable",
              told(alone, *POINTS), alone.within(0.5))
    )  # fmt: skip
    why = (
        f"All {vanilla['images']:,} images, {vanilla['epochs']} epochs of 128, three seeds, of which means and "
        "deviations are stored, so that intervals are not paired; only the hidden 100 x 100 layer is orthogonal; two "
        "learning rates from a climb that ends inside its grid, on 12,000 images."
    )
    return claims, why, f"One layer held: the flow is {told(gaps['vanilla SGD'], *POINTS)} of vanilla training."


def spread_of(row: dict[str, Any]) -> tuple[float, float]:
    return row["test"], row["test std"]


def of_mlp(found: list[dict[str, Any]], margin: float) -> tuple[list[Claim], dict[str, Gap]]:
    """What Figure 4 claims of the flow, and its gaps to the exact step and to vanilla training, in points."""
    rows = {row["method"]: row for row in found}
    flow = spread_of(rows["flow, s = 2"])
    gaps = {method: unpaired(flow, spread_of(rows[method]), SEEDS, 100) for method in ("exact", "vanilla SGD")}
    claims = [
        Claim(f"s = 2 is competitive with exact, test accuracy (within {margin:g} points, both sides)", "competitive",
              told(gaps["exact"], *POINTS), gaps["exact"].within(margin)),
        Claim("s = 2 outperforms vanilla training, test accuracy", "outperforms", told(gaps["vanilla SGD"], *POINTS),
              gaps["vanilla SGD"].ahead),
        *(Claim(f"{method}: test accuracy", "", f"{row['test']:.4f} ± {row['test std']:.4f}")
          for method, row in rows.items()),
    ]  # fmt: skip
    return claims, gaps


@from_json("Fig. 5", "papers_flows_convnet")
def figure_5(found: Any) -> Findings:
    """A deep plain network: what the start gives, and what staying orthogonal does."""
    rows = {row["method"]: row for row in found}
    free, flow = "SGD, orthogonal start", "flow, s = d / log d"

    def gap(one: str, other: str) -> Gap:
        return unpaired(spread_of(rows[one]), spread_of(rows[other]), SEEDS, 100)

    claims = [
        Claim("orthogonal optimisation improves training, test accuracy, over SGD from its usual start", "improves",
              told(gap(flow, "SGD"), *POINTS), gap(flow, "SGD").ahead),
        Claim("it improves over an orthogonal start that is then left free: s = d / log d", "improves",
              told(gap(flow, free), *POINTS), gap(flow, free).ahead),
        Claim("the same of the exact step", "improves", told(gap("exact", free), *POINTS), gap("exact", free).ahead),
        Claim("s = d / log d is competitive with exact (within 3 points, both sides)", "competitive",
              told(gap(flow, "exact"), *POINTS), gap(flow, "exact").within(3)),
        Claim("s = 2 is too noisy: behind s = d / log d", "too noisy", told(gap("flow, s = 2", flow), *POINTS),
              gap("flow, s = 2", flow).behind),
        *(Claim(f"s = {text} does not train properly (below .5)", "did not train",
                f"{rows[f'flow, s = {s}']['test']:.3f}; s = d / log d {rows[flow]['test']:.3f}",
                rows[f"flow, s = {s}"]["test"] < 0.5)
          for s, text in ((5, "O(log d)"), (12, "O(sqrt d)"))),
        *(Claim(f"{method}: test accuracy", "", f"{row['test']:.3f} ± {row['test std']:.3f} (lr {row['lr']:.3g})")
          for method, row in rows.items()),
    ]  # fmt: skip
    why = (
        "Sixteen plain tanh convolutions on scikit-learn's digits, 6 epochs, three seeds, of which means and standard "
        "deviations are stored, so that intervals are not paired; each method's learning rate from a climb, for 110 "
        "layers on CIFAR-10's images, which are not at hand. A start that is left free is not in the paper's figure."
    )
    decides = (
        f"The start alone: SGD has {rows['SGD']['test']:.3f}, from an orthogonal start {rows[free]['test']:.3f}; "
        f"staying orthogonal {rows['exact']['test']:.3f} (exact), {rows[flow]['test']:.3f} (flow)."
    )
    return claims, why, decides


def of_noise(d: int, s: int) -> float:
    """rho of a skew matrix of Gaussian noise, of entries as printed."""
    magnitudes = np.sort(np.abs(np.random.default_rng(0).standard_normal(d * (d - 1) // 2)))[::-1]
    return float(magnitudes.sum() / magnitudes[: d * (s - 1) // 4].sum())


@from_json("Fig. 6", "papers_entries")
def figure_6(found: Any) -> Findings:
    """How the entries of Omega spread, along evolution strategies."""
    [found] = found
    d = found["d"]
    rho = {int(s): values for s, values in found["rho"].items()}
    drift = max(max(values) / min(values) for values in rho.values())
    factor = {s: mean(values) * s / d for s, values in rho.items()}
    peak, noise = (2 * (d - 1) / value for value in (mean(rho[2]), of_noise(d, 2)))
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
    why = (
        f"CartPole from positions for Humanoid, d = {d}, {len(rho[2])} generations, one seed; the generations are the "
        "sample. rho as printed: the sum of all entries over the d (s - 1) / 2 largest entries, of which a pair has "
        "two. The bound that speeds up sampling holds for any noise."
    )
    decides = (
        f"Omega is noise from the first generation: its largest entries are {peak:.1f} times the mean, a Gaussian "
        f"skew matrix's {noise:.1f}."
    )
    return claims, why, decides


FIGURES: Paper = (table_1, table_2, figure_3, figure_4, figure_5, figure_6)
