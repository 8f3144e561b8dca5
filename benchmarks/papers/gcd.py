"""GCD (Givens coordinate descent): Figures 2 to 4 and Table 1 (sections 3.1, 3.2, appendix B)."""

from math import log
from statistics import mean, median, stdev
from typing import Any

from scipy.stats import f, f_oneway

from benchmarks.judging import Gap, paired, relative, told
from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured
from benchmarks.table import Results, number

TITLE = "GCD"
SIMILAR = 2.0  # per cent: two distortions are "similar" if the whole interval of their gap lies within
LAMBDA = 1e-4  # the paper's, in section 3.1
SLACK = 0.25  # a slope may lie so much above that of a bound
ABOUT = 1.5  # "about 5 times" is 5 times within this factor, at the median n
MOVIELENS = {  # Table 1, p@100 and r@100 in per cent
    "frozen": (7.78, 35.53),
    "Cayley": (7.73, 35.59),
    "GCD-R": (7.82, 35.78),
    "GCD-G": (7.83, 35.89),
    "GCD-S": (7.94, 36.35),
}
PRINTED = "papers_gcd_figure_3"
HIGHER = ("points higher", "points lower", "")  # words of a gap
LAST = 20  # distortions whose mean is judged
Runs = dict[str, list[dict[str, Any]]]  # rule -> its runs, seed by seed


@from_json("Fig. 2 (a)", "papers_gcd_figure_2")
def figure_2a(found: Any) -> Findings:
    """Convergence of Algorithm 2 as printed: five steps of lambda a round, one codebook update."""
    lines: dict[tuple[str, float], list[list[float]]] = {}
    every = max(row["rows"] for row in found)
    for row in sorted(found, key=lambda row: row["seed"]):
        if row["rows"] == every:
            lines.setdefault((row["rule"], row["lambda"]), []).append(row["curve"])
    ends = {key: [curve[-1] for curve in curves] for key, curves in lines.items()}
    end = {key: mean(values) for key, values in ends.items()}
    rates = sorted({rate for _, rate in lines} - {0.0})
    greedy = ("GCD-G", LAMBDA)

    def beyond(one: tuple[str, float], other: tuple[str, float]) -> Gap:
        """By how many per cent the distortion of the first ends above the second's."""
        return relative(ends[one], ends[other])

    def similar(text: str, one: tuple[str, float], other: tuple[str, float], paper: str = "similar curves") -> Claim:
        gap = beyond(one, other)
        return Claim(f"{text} (within {SIMILAR} %, both sides)", paper, ended(gap), gap.within(SIMILAR))

    def fails(text: str, one: tuple[str, float], other: tuple[str, float]) -> Claim:
        gap = beyond(one, other)
        return Claim(text, "fails", ended(gap), gap.above(SIMILAR))

    def rows(rule: str) -> str:
        shown = [f"{end[rule, rate]:,.0f} at {rate:g}" for rate in rates if (rule, rate) in end]
        return ", ".join(shown)

    def swinging(rule: str, rate: float) -> str:
        curves = lines[rule, rate]
        return f"{sum(curve[-1] > 1.01 * min(curve) for curve in curves)} of {len(curves)}"

    random = beyond(("GCD-R", LAMBDA), greedy)
    claims = (
        similar("GCD-G converges as well as OPQ from the identity", greedy, ("OPQ, identity start", 0.0)),
        similar("GCD-G converges as well as OPQ from a random start, FAISS's", greedy, ("OPQ, random start", 0.0)),
        similar("GCD-S converges as well as OPQ from the identity", ("GCD-S", LAMBDA), ("OPQ, identity start", 0.0)),
        similar("GCD-G converges as GCD-S", greedy, ("GCD-S", LAMBDA)),
        Claim("GCD-R is worse than GCD-G", "worse", ended(random), random.ahead),
        fails("GCD-G with overlapping pairs does not converge well, printed lambda", ("GCD-G, overlapping", LAMBDA),
              greedy),
        fails("the same at twice the lambda, where disjoint pairs converge", ("GCD-G, overlapping", 2 * LAMBDA),
              ("GCD-G", 2 * LAMBDA)),
        similar("overlapping pairs do not harm GCD-R", ("GCD-R, overlapping", LAMBDA), ("GCD-R", LAMBDA),
                "little effect"),
        Claim("Cayley does not converge as fast", "slower", "no printed step"),
        *(
            Claim(f"{rule}: distortion by lambda", "1e-4", rows(rule))
            for rule in ("GCD-G", "GCD-R", "GCD-G, overlapping")
        ),
        Claim("seeds that end 1 % above their best round: GCD-G at 1e-4, at 2e-4, overlapping at 1e-4", "",
              ", ".join(swinging(*line) for line in (greedy, ("GCD-G", 2 * LAMBDA), ("GCD-G, overlapping", LAMBDA)))),
    )  # fmt: skip
    count, seeds = len(lines["GCD-G", LAMBDA][0]), {len(curves) for curves in lines.values()}
    shown = f"{max(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    why = (
        f"sift_bsds for SIFT1M, {every:,} unscaled rows, 8 bytes, {count} rounds, {shown} seeds; lambda is of half "
        f"the squared error, as the paper does not say. At {LAMBDA:g} {count} rounds are short: GCD-G ends at "
        f"{end[greedy]:,.0f}, with twice of it at {end['GCD-G', 2 * LAMBDA]:,.0f}, with half at "
        f"{end['GCD-G', LAMBDA / 2]:,.0f}."
    )
    decides = (
        f"OPQ's start: final distortion {end['OPQ, identity start', 0.0]:,.0f} from the identity, "
        f"{end['OPQ, random start', 0.0]:,.0f} from a random start, GCD-G {end[greedy]:,.0f}."
    )
    return claims, why, decides


def ended(gap: Gap) -> str:
    """How two final distortions differ."""
    return f"ends {told(gap, 'worse', 'better')}"


def spread_claim(text: str, paper: str, first: list[float], second: list[float]) -> Claim:
    """Whether the first varies less: the F interval of the two standard deviations' ratio lies below 1."""
    ours, theirs = (stdev(values) / mean(values) for values in (first, second))
    ratio, n = (stdev(first) / stdev(second)), len(first) - 1
    low, high = (ratio * float(f.ppf(q, n, len(second) - 1)) ** -0.5 for q in (0.975, 0.025))
    return Claim(text, paper, f"spread {ours:.2%} against {theirs:.2%}: {ratio:.2f} times ({low:.2f} to {high:.2f})",
                 high < 1)  # fmt: skip


@from_json("Fig. 2 (b, c)", "papers_gcd_figure_2")
def figure_2bc(found: Any) -> Findings:
    """Spread over seeds and small data, OPQ from both starts."""
    ends: dict[tuple[str, int], list[float]] = {}
    for row in sorted(found, key=lambda row: row["seed"]):
        if row["lambda"] in (0.0, LAMBDA):
            ends.setdefault((row["rule"], row["rows"]), []).append(row["curve"][-1])
    claims, starts = [], {"OPQ, identity start": "the identity", "OPQ, random start": "a random start"}
    few, every = min(row["rows"] for row in found), max(row["rows"] for row in found)
    for count, share in ((every, "100 %"), (few, "10 %")):
        for rule, start in starts.items():
            claims.append(
                spread_claim(f"GCD-G varies less than OPQ from {start}, {share} of the rows",
                             "significantly lower variance", ends["GCD-G", count], ends[rule, count])
            )  # fmt: skip
            if count == few:
                gap = relative(ends["GCD-G", few], ends[rule, few])
                text = f"GCD-G is better than OPQ from {start} on 10 % of the rows"
                claims.append(Claim(text, "better", ended(gap), gap.behind))
    seeds = [len(ends["GCD-G", count]) for count in (every, few)]
    why = (
        f"sift_bsds for SIFT1M, {seeds[0]} seeds on all {every:,} rows and {seeds[1]} on 10 %, drawn again for each "
        "(the paper: ten), 20 rounds. FAISS's OPQ, and probably the paper's, starts from a random rotation."
    )
    small = {rule: mean(ends[rule, few]) for rule in ("GCD-G", *starts)}
    decides = (
        f"OPQ's start: on 10 % GCD-G ends at {small['GCD-G']:,.0f}, OPQ at {small['OPQ, identity start']:,.0f} from "
        f"the identity, {small['OPQ, random start']:,.0f} from a random one."
    )
    return claims, why, decides


def runs_of(found: list[dict[str, Any]]) -> Runs:
    runs: Runs = {}
    for row in sorted(found, key=lambda row: row["seed"]):
        runs.setdefault(row["rule"], []).append(row)
    return runs


def below(runs: Runs, one: str, other: str) -> Gap:
    """By how many per cent the first ends below the second, over paired seeds: means of the last distortions."""
    first, second = ([-mean(run["curve"][-LAST:]) for run in runs[rule]] for rule in (one, other))
    return relative(first, second)


@from_json("Fig. 3", PRINTED)
def figure_3(found: Any) -> Findings:
    """Distortion while towers, index and rotation learn in mini-batches, one plain lambda for all rules."""
    runs = runs_of(found)
    seeds, claims = len(runs["frozen"]), []
    order = (("GCD-G", "GCD-R"), ("GCD-S", "GCD-G"), ("GCD-S", "Cayley"))
    expected = dict(zip(order, ("between R and S", "the lowest", "best of all"), strict=True))
    frozen = [(rule, "frozen") for rule in ("Cayley", "GCD-R", "GCD-G", "GCD-S")]
    for one, other in (*frozen, *order):
        gap = below(runs, one, other)
        text = f"{one} ends below {'the frozen rotation' if other == 'frozen' else other}"
        claims.append(Claim(text, expected.get((one, other), "clearly"), told(gap, "below", "above"), gap.ahead))
    turned = {rule: mean(run["turned"] for run in runs[rule]) for rule in ("GCD-R", "GCD-S", "Cayley")}
    why = (
        f"ml100k for MovieLens (the industrial set is closed, Amazon Books not here), {seeds} seeds, the mean of the "
        f"last {LAST} distortions; cosine hinge of margin .1, one lambda (1) for all rules, 200 rounds of OPQ; "
        "id tables of 64 (the paper: 512), 256 pairs a batch, 8 x 4 bits, 2,500 and 300 steps are ours."
    )
    decides = (
        f"At one lambda Cayley, which moves every pair, turns R by {turned['Cayley']:.2f} in Frobenius norm, GCD-S by "
        f"{turned['GCD-S']:.2f}, GCD-R by {turned['GCD-R']:.2f}."
    )
    return claims, why, decides


@from_json("Table 1", PRINTED)
def table_1(found: Any) -> Findings:
    """Retrieval at the end of the same runs."""
    runs = runs_of(found)
    ours = {
        rule: {key: [100 * run[key] for run in runs[rule]] for key in ("precision@100", "recall@100")}
        for rule in MOVIELENS
    }
    claims = [
        Claim(f"{method}: p@100 / r@100, %", f"{p:.2f} / {r:.2f}",
              f"{mean(ours[method]['precision@100']):.2f} / {mean(ours[method]['recall@100']):.2f}")
        for method, (p, r) in MOVIELENS.items()
    ]  # fmt: skip
    recall = {method: values["recall@100"] for method, values in ours.items()}
    chance = float(f_oneway(recall["GCD-S"], recall["frozen"]).pvalue)
    claims += [
        *best_of(recall),
        Claim("GCD-S beats the frozen rotation in r@100 at p < 0.05 (ANOVA, the paper's test)", "p = 0.024",
              f"p = {chance:.2f}", chance < 0.05 and mean(recall["GCD-S"]) > mean(recall["frozen"])),
    ]  # fmt: skip
    why = "The runs of Figure 3; the last ten pairs of each history are asked for, of the first 1,000 users."
    return claims, why, decided(recall)


def best_of(recall: dict[str, list[float]]) -> list[Claim]:
    """GCD-S against each other rule in r@100, over paired seeds."""
    gaps = {rule: paired(recall["GCD-S"], recall[rule]) for rule in recall if rule != "GCD-S"}
    return [
        Claim(f"GCD-S has a higher r@100 than {rule}", "best", told(gap, *HIGHER), gap.ahead)
        for rule, gap in gaps.items()
    ]


def decided(recall: dict[str, list[float]]) -> str:
    gap, spread = paired(recall["GCD-S"], recall["frozen"]), max(recall["frozen"]) - min(recall["frozen"])
    return (
        f"GCD-S's r@100 against the frozen rotation's: {told(gap, *HIGHER)}; the latter's seeds lie {spread:.2f} apart."
    )


def figure_4a(results: Results) -> Figure:
    """Growth of an update's cost with n, on a GPU."""
    found = results.read("gpu")
    if not found or found["device"] == "cpu":
        return not_measured("Fig. 4 (a)", "Run `python -m benchmarks gpu` on a machine with a GPU.")
    cost = found["steps"]["cuda"]
    claims = tuple(
        Claim(f"{method} grows with n^{power}", f"{2**power} times from n to 2 n",
              f"{number(cost['4096'][method] / cost['2048'][method])} times from 2,048 to 4,096")
        for method, power in (("GCD-R", 2), ("Cayley", 3))
    )  # fmt: skip
    why = f"On an {found['device']}; below some thousand columns a step is the launch of its kernels. Not judged."
    decides = f"At n = 4,096 GCD-R takes {number(cost['4096']['GCD-R'])} ms, Cayley {number(cost['4096']['Cayley'])}."
    return not_measured("Fig. 4 (a)", why, "gpu", claims, decides=decides)


@from_json("Fig. 4 (b)", "rotation")
def figure_4b(found: Any) -> Findings:
    """Cost of one update on a CPU."""
    cost = {row["n"]: dict(row) for row in found}
    for row in cost.values():
        row["bare"] = row["select random"] + row["apply"]
        row["with its derivatives"] = row["bare"] + row["angles of given pairs"]
        row["with all of A"] = row["bare"] + row["derivatives"]

    def times(way: str) -> list[float]:
        return [row["Cayley"] / row[way] for row in cost.values()]

    def shown(way: str) -> str:
        low, middle, high = (number(pick(times(way))) for pick in (min, median, max))
        return f"{middle} times at the median n ({low} to {high})"

    def about(way: str, said: int) -> bool:
        return said / ABOUT <= median(times(way)) <= said * ABOUT

    sizes = ", ".join(map(str, cost))
    claims = [
        Claim("GCD-G is about 5 times faster than Cayley", "about 5", shown("GCD-G"), about("GCD-G", 5)),
        Claim("GCD-R is about 50 times faster, with all of A, as Algorithm 2 prints it", "about 50",
              shown("with all of A"), about("with all of A", 50)),
        Claim("GCD-R with the derivatives of its n/2 pairs only", "about 50", shown("with its derivatives")),
        Claim("GCD-R, selection and rotation alone", "about 50", shown("bare")),
        Claim("SVD over GCD-G (section 1: orders of magnitude, on GPUs)", "orders of magnitude",
              ", ".join(f"{number(row['SVD'] / row['GCD-G'])} at n = {n}" for n, row in cost.items())),
        Claim("SVD over GCD-R with all of A, as printed", "orders of magnitude",
              ", ".join(f"{number(row['SVD'] / row['with all of A'])} at n = {n}" for n, row in cost.items())),
    ]  # fmt: skip
    row = cost[512]
    why = (
        f"n = {sizes}, one CPU thread of a shared machine, medians, the gradient given; the paper names no n. 'About' "
        f"is within a factor of {ABOUT:g}. Section 1's orders of magnitude over the SVD are of GPUs and not judged."
    )
    decides = (
        f"At n = 512 GCD-R takes {number(row['with all of A'])} ms with all of A, "
        f"{number(row['with its derivatives'])} with its pairs' derivatives, {number(row['bare'])} without; Cayley "
        f"{number(row['Cayley'])}."
    )
    return claims, why, decides


@from_json("Section 2.4: costs", "rotation")
def costs(found: Any) -> Findings:
    """Slopes of the parts of a step in n."""
    cost, claims = {row["n"]: row for row in found}, list[Claim]()
    parts = {"derivatives": ("all derivatives A", 3), "select greedy": ("greedy selection, n^2 log n", 2),
             "apply": ("the rotation of R", 2)}  # fmt: skip
    for part, (text, power) in parts.items():
        slope = log(cost[1024][part] / cost[256][part]) / log(4)
        claims.append(Claim(f"cost of {text}, slope at most", f"{power}", f"{slope:.2f}", slope <= power + SLACK))
    why = f"CPU milliseconds of `rotation` from n = 256 to 1,024, at most {SLACK} above the power."
    return claims, why, f"Slopes: {', '.join(claim.ours for claim in claims)}."


FIGURES: Paper = (figure_2a, figure_2bc, figure_3, table_1, figure_4a, figure_4b, costs)
