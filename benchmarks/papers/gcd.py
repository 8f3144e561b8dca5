"""GCD (Givens coordinate descent): Figures 2 to 4 and Table 1 (sections 3.1, 3.2, appendix B).

python -m benchmarks.papers.gcd
"""

from statistics import mean, stdev
from typing import Any

from benchmarks.papers.gcd_joint import figure_3, figure_3_printed, table_1, table_1_printed
from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, not_measured, show
from benchmarks.table import Results, number

TITLE = "GCD"
SIMILAR = 0.02  # two distortions are "similar" within so much
LAMBDA = 1e-4  # the paper's, in section 3.1
ABOUT = 0.9  # "about 50 times" is this share of it at least


@from_json("Fig. 2 (a)", "papers_gcd_figure_2", "python -m benchmarks.papers --run gcd_figure_2")
def figure_2a_printed(found: Any) -> Findings:
    """Convergence of Algorithm 2 as printed: five steps of lambda a round, one codebook update."""
    lines: dict[tuple[str, float], list[list[float]]] = {}
    every = max(row["rows"] for row in found)
    for row in found:
        if row["rows"] == every:
            lines.setdefault((row["rule"], row["lambda"]), []).append(row["curve"])
    end = {key: mean(curve[-1] for curve in curves) for key, curves in lines.items()}
    opq, opq_random = end["OPQ, identity start", 0.0], end["OPQ, random start", 0.0]
    greedy, steepest, random = (end[rule, LAMBDA] for rule in ("GCD-G", "GCD-S", "GCD-R"))
    rates = sorted({rate for _, rate in lines} - {0.0})

    def beyond(value: float, other: float) -> str:
        return f"ends {value / other - 1:+.1%}"

    def rows(rule: str) -> str:
        shown = [f"{end[rule, rate]:,.0f} at {rate:g}" for rate in rates if (rule, rate) in end]
        return ", ".join(shown)

    def swinging(rule: str, rate: float) -> str:
        curves = lines[rule, rate]
        return f"{sum(curve[-1] > 1.01 * min(curve) for curve in curves)} of {len(curves)}"

    overlapping, apart = end["GCD-G, overlapping", 2 * LAMBDA], end["GCD-G", 2 * LAMBDA]
    claims = (
        Claim("GCD-G converges as well as OPQ from the identity", "similar curves", beyond(greedy, opq),
              greedy / opq - 1 <= SIMILAR),
        Claim("GCD-G converges as well as OPQ from a random start (FAISS's)", "similar curves",
              beyond(greedy, opq_random), greedy / opq_random - 1 <= SIMILAR),
        Claim("GCD-G converges as GCD-S", "similar curves", beyond(greedy, steepest),
              abs(greedy / steepest - 1) <= SIMILAR),
        Claim("GCD-R is worse than GCD-G", "worse", beyond(random, greedy), random > greedy),
        Claim("GCD-G with overlapping pairs does not converge well, at the printed lambda", "fails",
              beyond(end["GCD-G, overlapping", LAMBDA], greedy), end["GCD-G, overlapping", LAMBDA] > 1.02 * greedy),
        Claim("the same at twice the lambda, where disjoint pairs converge", "fails", beyond(overlapping, apart),
              overlapping > 1.02 * apart),
        Claim("overlapping pairs do not harm GCD-R", "little effect",
              beyond(end["GCD-R, overlapping", LAMBDA], random),
              abs(end["GCD-R, overlapping", LAMBDA] / random - 1) <= SIMILAR),
        *(
            Claim(f"{rule}: distortion by lambda", "1e-4", rows(rule))
            for rule in ("GCD-G", "GCD-R", "GCD-G, overlapping")
        ),
        Claim("seeds that end 1 % above their best round: GCD-G at 1e-4, at 2e-4, overlapping at 1e-4", "",
              ", ".join(swinging(*line) for line in (("GCD-G", LAMBDA), ("GCD-G", 2 * LAMBDA),
                                                     ("GCD-G, overlapping", LAMBDA)))),
    )  # fmt: skip
    count, seeds = len(lines["GCD-G", LAMBDA][0]), {len(curves) for curves in lines.values()}
    shown = f"{max(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    why = (
        f"sift_bsds for SIFT1M, {every:,} unscaled rows, 8 bytes, {count} rounds, means over "
        f"{shown} seeds; lambda is of half the squared error, as the paper does not say."
    )
    decides = (
        f"OPQ's start and lambda: OPQ ends at {opq:,.0f} from the identity and at {opq_random:,.0f} from a random "
        f"start, GCD-G at {greedy:,.0f}; {LAMBDA:g} is too short to arrive in {count} rounds: twice of it ends at "
        f"{apart:,.0f}, half of it at {end['GCD-G', LAMBDA / 2]:,.0f}."
    )
    return claims, why, decides


@from_json("Fig. 2 (b, c)", "papers_gcd_figure_2", "python -m benchmarks.papers --run gcd_figure_2")
def figure_2bc_printed(found: Any) -> Findings:
    """Spread over seeds and small data, OPQ from both starts."""
    ends: dict[tuple[str, int], list[float]] = {}
    for row in found:
        if row["lambda"] in (0.0, LAMBDA):
            ends.setdefault((row["rule"], row["rows"]), []).append(row["curve"][-1])
    claims, starts = [], {"OPQ, identity start": "the identity", "OPQ, random start": "a random start"}
    few, every = min(row["rows"] for row in found), max(row["rows"] for row in found)
    for count, share in ((every, "100 %"), (few, "10 %")):
        gcd = ends["GCD-G", count]
        for rule, start in starts.items():
            opq = ends[rule, count]
            ours, theirs = (stdev(values) / mean(values) for values in (gcd, opq))
            claims.append(
                Claim(f"GCD-G varies much less than OPQ from {start}, {share} of the rows (half at most)",
                      "significantly lower variance", f"std / mean {ours:.2%} against {theirs:.2%}", ours <= theirs / 2)
            )  # fmt: skip
            if count == few:
                claims.append(
                    Claim(f"GCD-G is better than OPQ from {start} on 10 % of the rows", "better",
                          f"ends {mean(gcd) / mean(opq) - 1:+.1%}", mean(gcd) < mean(opq))
                )  # fmt: skip
    seeds = [len(ends["GCD-G", count]) for count in (every, few)]
    why = (
        f"sift_bsds for SIFT1M, {seeds[0]} seeds on all {every:,} rows and {seeds[1]} on 10 %, drawn again for each "
        "(the paper: ten), 20 rounds."
    )
    small = {rule: mean(ends[rule, few]) for rule in ("GCD-G", *starts)}
    decides = (
        f"OPQ's start; FAISS's, and probably the paper's, is a random rotation. On 10 % of the rows GCD-G ends at "
        f"{small['GCD-G']:,.0f}, OPQ at {small['OPQ, identity start']:,.0f} from the identity and at "
        f"{small['OPQ, random start']:,.0f} from a random start."
    )
    return claims, why, decides


@from_json(
    "Fig. 2 (a), exact angles", "quantization_convergence", "python -m benchmarks quantization --parts convergence"
)
def figure_2a(found: Any) -> Findings:
    """Convergence of the updates on fixed vectors."""
    lines: dict[str, list] = found["lines"]
    end = {method: line[-1][1] for method, line in lines.items()}

    def beyond(method: str, other: str) -> float:
        return end[method] / end[other] - 1

    def similar(text: str, method: str, other: str, paper: str = "similar curves") -> Claim:
        share = beyond(method, other)
        return Claim(text, paper, f"ends {share:+.1%}", abs(share) <= SIMILAR)

    rounds = {
        method: next((k for k, (_, value) in enumerate(lines[method], 1) if value <= end["givens-greedy"]), None)
        for method in ("givens-greedy", "cayley")
    }
    late = rounds["cayley"] is None or rounds["cayley"] > rounds["givens-greedy"]
    random, broken = beyond("givens-random", "givens-greedy"), beyond("givens-overlapping-greedy", "givens-greedy")
    claims = (
        similar("GCD-G converges as OPQ", "givens-greedy", "procrustes"),
        similar("GCD-S converges as OPQ", "givens-steepest", "procrustes"),
        similar("GCD-G converges as GCD-S", "givens-greedy", "givens-steepest"),
        Claim("GCD-R is worse than GCD-G", "worse", f"ends {random:+.1%}", random > 0),
        Claim("GCD-G with overlapping pairs does not converge well", "fails", f"ends {broken:+.1%}", broken > SIMILAR),
        similar("overlapping pairs do not harm GCD-R", "givens-overlapping-random", "givens-random", "little effect"),
        Claim("Cayley is slower than GCD-G", "slower",
              f"GCD-G's final distortion after {rounds['cayley'] or 'no'} rounds, GCD-G's own "
              f"{rounds['givens-greedy']}", late),
    )  # fmt: skip
    why = "Ours: sift_bsds for SIFT1M, exact angles and 3 x 5 blocks a round where Figure 2 has five steps of lambda."
    decides = (
        "Only Cayley differs: ours begins at A = 0 in every round and takes its step length from the curvature, so "
        f"that it needs {rounds['cayley'] or 'more than 25'} rounds for what GCD-G has after "
        f"{rounds['givens-greedy']}; the paper does not give its own step."
    )
    return claims, why, decides


@from_json(
    "Fig. 2 (b, c), exact angles", "quantization_convergence", "python -m benchmarks quantization --parts convergence"
)
def figure_2bc(found: Any) -> Findings:
    """Spread over ten runs, and small data."""
    spread = {key: [run[-1] for run in runs] for key, runs in found["spread"].items()}
    claims = []
    for share in ("100%", "10%"):
        opq, gcd = (spread[f"{method}, {share}"] for method in ("procrustes", "givens-greedy"))
        opq_spread, gcd_spread = (stdev(runs) / mean(runs) for runs in (opq, gcd))
        clear = gcd_spread < opq_spread / 2
        claims.append(
            Claim(f"GCD-G varies much less than OPQ, {share} of the rows", "significantly lower variance",
                  f"std / mean {gcd_spread:.2%} against {opq_spread:.2%}", clear)
        )  # fmt: skip
    better = mean(gcd) / mean(opq) - 1  # of the last share, 10 %
    claims.append(Claim("GCD-G is better than OPQ on 10 % of the rows", "better", f"ends {better:+.1%}", better < 0))
    why = f"Ours: as above, {len(opq)} seeds with separate rows and first centroids ('much less' asks for half)."
    decides = (
        f"Both start from the identity and spread alike, on 10 % by {gcd_spread:.2%} and {opq_spread:.2%}: the row as "
        "printed has the random start, with which OPQ spreads more."
    )
    return claims, why, decides


def figure_4a(results: Results) -> Figure:
    """Growth of an update's cost with n, on a GPU."""
    name, source = "Fig. 4 (a)", "rotation"
    updates = (results.read(source) or {}).get("update_ms")
    if not updates:
        return not_measured(name, "Run `python -m benchmarks quantization rotation`.")
    growth = {method: updates["1024"][method] / updates["512"][method] for method in ("GCD-R", "Cayley")}
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
    )


@from_json("Fig. 4 (b)", "rotation", "python -m benchmarks quantization rotation", "update_ms")
def figure_4b(updates: Any) -> Findings:
    """Cost of one update on a CPU."""
    cost = {n: dict(row) for n, row in updates.items()}
    for row in cost.values():
        row["bare"] = row["select random"] + row["apply"]
        row["with its derivatives"] = row["bare"] + row["angles of given pairs"]
        row["with all of A"] = row["bare"] + row["derivatives"]

    def faster(way: str) -> str:
        return ", ".join(f"{number(cost[n]['Cayley'] / cost[n][way])} at n = {n}" for n in ("64", "512", "1024"))

    def judged(way: str, times: int) -> bool:
        return cost["512"]["Cayley"] >= ABOUT * times * cost["512"][way]

    claims = [
        Claim("GCD-G is 5 times faster than Cayley (at the paper's n = 512; nine tenths of it at least)", "about 5",
              faster("GCD-G"), judged("GCD-G", 5)),
        Claim("GCD-R is 50 times faster, the derivatives of its n/2 pairs included", "about 50",
              faster("with its derivatives"), judged("with its derivatives", 50)),
        Claim("GCD-R, selection and rotation alone", "about 50", faster("bare")),
        Claim("GCD-R, with the whole A that Algorithm 2 prints", "about 50", faster("with all of A")),
    ]  # fmt: skip
    row = cost["512"]
    why = "One CPU thread of a shared machine, the gradient given."
    decides = (
        "What GCD-R is said to take: at n = 512 "
        f"{number(row['with its derivatives'])} ms with its n/2 derivatives, {number(row['bare'])} ms without any and "
        f"{number(row['with all of A'])} ms with all of A, where Cayley takes {number(row['Cayley'])} ms."
    )
    return claims, why, decides


FIGURES: Paper = (
    *(figure_2a_printed, figure_2bc_printed, figure_2a, figure_2bc),
    *(figure_3_printed, table_1_printed, figure_3, table_1),
    *(figure_4a, figure_4b),
)

if __name__ == "__main__":
    show(TITLE, FIGURES)
