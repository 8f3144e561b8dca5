"""GCD (Givens coordinate descent): Figures 2 to 4 and Table 1 (sections 3.1, 3.2, appendix B)."""

from statistics import mean, median, stdev
from typing import Any

from scipy.stats import f

from benchmarks.judging import Gap, relative, told
from benchmarks.papers import theory_rows
from benchmarks.papers.gcd_joint import figure_3, table_1
from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured
from benchmarks.table import Results, number

TITLE = "GCD"
SIMILAR = 2.0  # per cent: two distortions are "similar" if the whole interval of their gap lies within
LAMBDA = 1e-4  # the paper's, in section 3.1
ABOUT = 1.5  # "about 5 times" is 5 times within this factor, at the median n


@from_json("Fig. 2 (a)", "papers_gcd_figure_2", "python -m benchmarks.papers --run gcd_figure_2")
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


@from_json("Fig. 2 (b, c)", "papers_gcd_figure_2", "python -m benchmarks.papers --run gcd_figure_2")
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


def figure_4a(results: Results) -> Figure:
    """Growth of an update's cost with n, on a GPU."""
    name, source = "Fig. 4 (a)", "rotation"
    updates = {row["n"]: row for row in results.read(source) or []}
    if not updates:
        return not_measured(name, "Run `python -m benchmarks quantization rotation`.")
    growth = {method: updates[1024][method] / updates[512][method] for method in ("GCD-R", "Cayley")}
    claims = [
        Claim(f"{method} grows with n^{power} (ours on one CPU thread)", f"{2**power} times from n to 2 n",
              f"{number(growth[method])} times from 512 to 1024")
        for method, power in (("GCD-R", 2), ("Cayley", 3))
    ]  # fmt: skip
    return not_measured(
        name,
        "No GPU was at hand (`python -m benchmarks gpu` measures it on one); a CPU thread's growth is given.",
        source,
        tuple(claims),
        decides="No GPU was at hand.",
    )


@from_json("Fig. 4 (b)", "rotation", "python -m benchmarks quantization rotation")
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


FIGURES: Paper = (figure_2a, figure_2bc, figure_3, table_1, figure_4a, figure_4b, theory_rows.gcd)
