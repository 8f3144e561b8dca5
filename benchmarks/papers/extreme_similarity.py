"""ESL (extreme similarity learning): its costs, eqs. 15 and 28, and all pairs beside sampled ones.

The text at hand ends inside section 3.4, before the experiments: there are claims to judge, and no curves.
"""

import math
from typing import Any

from benchmarks.judging import relative, told
from benchmarks.papers.record import Claim, Figure, Findings, Paper, from_json, mean_of, not_measured, run
from benchmarks.table import Results, number

TITLE = "ESL"
SAMPLED = ("in-batch softmax", "sampled bce")


def solvers(results: Results) -> dict[str, dict[str, Any]]:
    """Data -> way -> its row."""
    found: dict[str, dict[str, Any]] = {}
    for row in results.read("two_tower_solvers") or []:
        found.setdefault(row["set"], {})[row["way"]] = row
    return found


def cost(results: Results) -> Figure:
    """One gradient in O(m + n), beside all m n pairs, beside one value."""
    name, source = "Eqs. 15, 28: cost", "two_tower_scaling"
    rows = results.read(source)
    if not rows:
        return not_measured(name, run(source))
    brute = [row for row in rows if row.get("brute force")]

    def slope(part: str, first: dict, last: dict) -> float:
        return math.log(last[part] / first[part]) / math.log(last["m"] / first["m"])

    first, last = brute[0], brute[-1]
    near, far = slope("gradient", first, last), slope("gradient", last, rows[-1])
    square = slope("brute force", first, last)
    claims = [
        Claim(f"the gradient's cost is linear in m + n, slope from {first['m']:,} to {last['m']:,}", "1",
              f"{near:.2f}", near <= 1.3),
        Claim(f"and from there to {rows[-1]['m']:,}", "1",
              f"{far:.2f}; the products it cannot do without {slope('floor', last, rows[-1]):.2f}", far <= 1.3),
        Claim("all m n pairs one by one cost m n, slope", "2", f"{square:.2f}", square > 1.7),
        Claim(f"at m = n = {last['m']:,}: all pairs over ours", "far more",
              f"{number(last['brute force'] / last['gradient'])} times", last["brute force"] > 10 * last["gradient"]),
    ]  # fmt: skip
    measured = results.read("papers_value_and_gradient")
    if measured:
        shares = [row["gradient"] / row["value"] for row in measured]
        claims.append(
            Claim("a value costs about what a gradient does (a third at least)", "similar",
                  f"the gradient {min(shares):.1f} to {max(shares):.1f} times the value", max(shares) <= 3)
        )  # fmt: skip
    why = (
        "Random pairs, k = 64, 100 pairs a row, one thread, medians of CPU time; 'linear' is a slope of 1.3 at most. "
        "The work is linear, but once a table does not fit the cache every pair fetches its row from memory."
    )
    decides = (
        f"The cache: slope {near:.2f} up to {last['m']:,} rows, {far:.2f} beyond; that of the products alone "
        f"{slope('floor', last, rows[-1]):.2f}."
    )
    return Figure(name, tuple(claims), why, f"{source}, papers_value_and_gradient", decides)


def all_pairs(results: Results) -> Figure:
    """All pairs against sampled ones (section 1)."""
    name, source = "Section 1: all pairs", "two_tower_solvers"
    found = solvers(results)
    claims, shown = [], []
    for data in ("ml100k", "gowalla"):
        rows = found.get(data, {})
        if not {"als", *SAMPLED} <= rows.keys():
            continue
        best = max(SAMPLED, key=lambda method: rows[method]["ndcg@100"])
        gap = relative(rows[best]["runs"], rows["als"]["runs"])
        several = len(rows["als"]["runs"]) > 1
        shown.append(f"{data}: {best} {told(gap, 'better', 'worse')}")
        claims.append(
            Claim(f"{data}: sampling unobserved pairs is inferior, NDCG@100", "inferior",
                  f"{best} {told(gap, 'better', 'worse')}", gap.behind if several else None)
        )  # fmt: skip
    if not claims:
        return not_measured(name, run(source))
    why = "ALS on id tables of 64 dimensions, and sampled losses within the time given, over the same splits."
    return Figure(name, tuple(claims), why, source, f"{'; '.join(shown)}.")


@from_json("Section 1: all pairs, networks", "papers_esl_towers")
def all_pairs_networks(found: Any) -> Findings:
    """One loss, one solver, one budget: the unobserved pairs exactly, or sampled."""
    rows = sorted(found, key=lambda row: row["seed"])
    by = {zeros: [row for row in rows if row["zeros"] == zeros] for zeros in (0, 1, 4, 16)}
    whole, sampled = by.pop(0), by
    gaps, claims = {}, []
    for budget, text in (("in seconds", "the same CPU seconds"), ("in steps", "the same steps")):
        for zeros, of in sampled.items():
            gap = gaps[budget, zeros] = relative([row[budget] for row in of], [row[budget] for row in whole])
            claims.append(
                Claim(f"{zeros} sampled zeros a pair are inferior to all pairs, test NDCG@100, {text}", "inferior",
                      told(gap, "better", "worse"), gap.behind)
            )  # fmt: skip
    for budget, text in (("objective", "the same CPU seconds"), ("objective in steps", "the same steps")):
        shown = ", ".join(f"{mean_of(rows, budget):.4f}" for rows in (whole, *sampled.values()))
        claims.append(Claim(f"the exact objective: all pairs, then 1, 4, 16 zeros a pair, {text}", "", shown))
    steps = [round(mean_of(rows, "steps in the seconds")) for rows in (whole, *sampled.values())]
    why = (
        f"ml100k, {len(whole)} splits, {whole[0]['seconds']:g} CPU seconds; towers of one hidden layer on singular "
        "vectors of the training graph; squared loss, full-batch Adam, its rate chosen for each on validation pairs; "
        "the zeros are drawn again for every step and weighted up to the whole. In the same seconds all pairs make "
        f"{steps[0]} steps, 1, 4 and 16 zeros {steps[1]}, {steps[2]} and {steps[3]}."
    )
    few, many = gaps["in seconds", 1], gaps["in seconds", 16]
    decides = f"In the same seconds: 1 zero {told(few, 'better', 'worse')}, 16 zeros {told(many, 'better', 'worse')}."
    return claims, why, decides


FIGURES: Paper = (cost, all_pairs, all_pairs_networks)
